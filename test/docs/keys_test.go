package docs

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

var (
	// key is what Kubernetes takes as the key of a label or annotation, with a prefix.
	key = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z][A-Za-z0-9._-]*$`)
	// version is at the end of an API version, which looks like a key.
	version = regexp.MustCompile(`/v[0-9][a-z0-9]*$`)
	// ownKey finds our own keys in a manifest.
	ownKey = regexp.MustCompile(`(?:[a-z]+\.)?plimsoll\.dev/[a-z][a-z0-9-]*`)
)

// notKeys look like keys and are something else.
var notKeys = map[string]string{
	"plimsoll.dev/controller-uid":                "an index of a cache",
	"authentication.kubernetes.io/credential-id": "an extra of a user",
	"k8s.io/initial-events-end":                  "a part of the watch protocol",
	"kubernetes.io/service-account-token":        "a type of Secrets of Kubernetes",
	"kubernetes.io/tls":                          "a type of Secrets of Kubernetes",
}

// keysOfTheCode are the keys that are constants of the code, those that policy.Keys makes, and our own ones in deploy/, by where they are.
func keysOfTheCode(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	s := readSource(t)
	for _, in := range s.packages {
		if base := filepath.Base(in.PkgPath); strings.HasSuffix(base, "test") || base == "sample" {
			continue // helpers of tests, and examples
		}
		for _, file := range in.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				if expression, is := node.(ast.Expr); is {
					if text, constant := textOf(in, expression); constant {
						found[text] = s.where(in, node)
					}
				}
				return true
			})
		}
	}
	keys := reflect.ValueOf(policy.Keys{Prefix: policy.DefaultPrefix})
	for i := range keys.NumMethod() {
		found[keys.Method(i).Call(nil)[0].String()] = "policy.Keys"
	}
	keysOfManifests(t, found)
	for text := range found {
		if !key.MatchString(text) || version.MatchString(text) || notKeys[text] != "" {
			delete(found, text)
		}
	}
	return found
}

// keysOfManifests adds our own keys in the manifests of deploy/.
func keysOfManifests(t *testing.T, found map[string]string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".tpl"}, filepath.Ext(path)) || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found1 := range ownKey.FindAllString(string(text), -1) {
			found[found1] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each key of the code has a row, and each row's keys are those of the code.
func TestTheReferenceOfKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "annotations.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(string(text), -1) {
		for _, word := range inCode.FindAllStringSubmatch(row[1], -1) {
			listed[word[1]] = true
		}
	}
	code := keysOfTheCode(t)
	if len(code) < 70 {
		t.Fatalf("%d keys: too few are found", len(code))
	}
	for key, where := range code {
		if !listed[key] {
			t.Errorf("annotations.md does not list %s (%s)", key, where)
		}
	}
	for key := range listed {
		if code[key] == "" && !strings.Contains(key, "<controller>") {
			t.Errorf("annotations.md lists %s, which the code does not have", key)
		}
	}
}

var inCode = regexp.MustCompile("`([^`]+)`")
