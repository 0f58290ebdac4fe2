package docs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// notOfAMember are groups of manifests that no API server of a member or of the hub cluster knows.
var notOfAMember = []string{"kind.x-k8s.io", "apiserver.config.k8s.io", "example.com"}

// manifests are the objects that the pages show whole, by their pages.
func manifests(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{}
	for _, page := range append(pagesOfDocs(t), "../README.md") {
		text, err := os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			found[page] = append(found[page], objectsOf(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"))...)
		}
	}
	return found
}

// objectsOf are the objects in a text of YAML; parts of configurations and lists are none.
func objectsOf(text string) (all []*unstructured.Unstructured) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var document any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) || err != nil {
			return all
		}
		content, _ := document.(map[string]any)
		object := &unstructured.Unstructured{Object: content}
		if object.GetKind() != "" && object.GetAPIVersion() != "" && object.GetName() != "" && !slices.Contains(notOfAMember, object.GroupVersionKind().Group) {
			all = append(all, object)
		}
	}
}

// What a page shows whole can be applied as it is: an API server takes it, and knows every field of it.
func TestAnAPIServerTakesTheManifestsOfThePages(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	cluster := kube.New(t, kube.Options{Name: "pages", Minimal: true})
	c, err := client.New(cluster.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, definition := range []string{"deploy/chart/plimsoll/files/fleetplacements.yaml", "deploy/member/webapps/definition.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(definition)))
		g.Expect(err).NotTo(HaveOccurred())
		for _, object := range objectsOf(string(text)) {
			g.Expect(c.Create(t.Context(), object)).To(Succeed(), definition)
		}
	}
	taken := 0
	for page, objects := range manifests(t) {
		for _, object := range objects {
			if namespace := object.GetNamespace(); namespace != "" {
				there := &unstructured.Unstructured{}
				there.SetAPIVersion("v1")
				there.SetKind("Namespace")
				there.SetName(namespace)
				g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), there))).To(Succeed())
			} else if object.GetKind() == "Deployment" {
				object.SetNamespace(metav1.NamespaceDefault) // as kubectl would
			}
			g.Eventually(func() error { // definitions take a moment to be served
				err := c.Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
					return err
				}
				if err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %s %s: %v", page, object.GetKind(), object.GetName(), err)
				}
				return nil
			}).Should(Succeed(), page)
			taken++
		}
	}
	g.Expect(taken).To(BeNumerically(">=", 8), "manifests that the pages show")
}
