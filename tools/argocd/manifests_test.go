package argocd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	argo "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var (
	separator = regexp.MustCompile(`(?m)^---\s*$`)
	fence     = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```")
)

// decode reads a document into Argo CD's type of its kind. It is false when the document is none of Argo CD's.
func decode(document string) (kind string, ours bool, err error) {
	var about metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &about); err != nil || about.APIVersion != argo.SchemeGroupVersion.String() {
		return "", false, nil //nolint:nilerr // not a manifest: a list, a template, or an example of something else
	}
	into := map[string]any{"Application": &argo.Application{}, "ApplicationSet": &argo.ApplicationSet{}, "AppProject": &argo.AppProject{}}[about.Kind]
	if into == nil {
		return about.Kind, false, nil // of another project in the same group, such as a Rollout
	}
	return about.Kind, true, yaml.UnmarshalStrict([]byte(document), into)
}

// documents are those of a YAML file, or of the YAML blocks of a page.
func documents(path, text string) []string {
	if filepath.Ext(path) != ".md" {
		return separator.Split(text, -1)
	}
	var all []string
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, separator.Split(block[1], -1)...)
	}
	return all
}

func TestEveryArgoCDManifestIsWhatArgoCDReads(t *testing.T) {
	found := map[string]int{}
	for _, folder := range []string{"deploy/gitops", "docs"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || entry.IsDir() || ext != ".md" && ext != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, document := range documents(path, string(text)) {
				kind, ours, wrong := decode(document)
				if wrong != nil {
					t.Errorf("%s: %s: %v", path, kind, wrong)
				}
				if ours {
					found[kind]++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found["Application"] < 2 || found["ApplicationSet"] < 4 {
		t.Errorf("only %v were found", found)
	}
}

func TestAMisspeltOrIllTypedFieldFails(t *testing.T) {
	good, err := os.ReadFile("../../deploy/gitops/argocd/by-list.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document := separator.Split(string(good), -1)[0]
	for old, bad := range map[string]string{
		"preserveResourcesOnDeletion: true": "preserveResourceOnDeletion: true",
		"goTemplate: true":                  "goTemplate: {}",
		"targetRevision: main":              "target-revision: main",
		"automated: {prune: true":           "automated: {prunes: true",
	} {
		if !strings.Contains(document, old) {
			t.Fatalf("%q is not in the manifest", old)
		}
		if _, ours, err := decode(strings.Replace(document, old, bad, 1)); !ours || err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
