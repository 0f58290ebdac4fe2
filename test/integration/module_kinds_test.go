package integration

import (
	"encoding/json"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

var bundlesDefinition = module.MustDefinition([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bundles.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Bundle, listKind: BundleList, plural: bundles, singular: bundle}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`), 1)

// bundles is a module with a kind about which members ask: none may be called "bad", and each gets a label.
func bundles() hub.Module {
	return hub.Module{
		Name:     "bundles",
		Register: func(hub.Host) ([]*reconcile.Controller, error) { return nil, nil },
		Resources: []module.Resource{{
			Title: "Bundles", Group: "example.com", Kind: "Bundle", Plural: "bundles", Versions: []string{"v1"},
			AddToScheme: func(*runtime.Scheme) error { return nil }, Definition: bundlesDefinition,
			Complete: func(object *metav1.ObjectMeta) bool {
				if object.Labels == nil {
					object.Labels = map[string]string{}
				}
				object.Labels["example.com/seen"] = "yes"
				return true
			},
			Review: func(asked module.Review) (is module.Judgement, err error) {
				var object metav1.PartialObjectMetadata
				if err = json.Unmarshal(asked.Object, &object); err == nil && object.Name == "bad" {
					is.Refusals = field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "none may be called bad")}
				}
				return is, err
			},
		}},
	}
}

func bundle(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Bundle", "metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

// TestAKindOfSomebodyElseIsKeptInMembers has a member registered for the kind, as a person does, and the hub do the rest.
func TestAKindOfSomebodyElseIsKeptInMembers(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"eu"}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(f.Stop()).To(Succeed()) })
	dir := t.TempDir()
	s := &cliSite{hub: f.Hub, member: f.Members[0].Cluster, binary: filepath.Join(dir, "plimsoll"), kubeconfig: filepath.Join(dir, "config")}
	g.Expect(fleet.BuildCLI(t.Context(), "../..", s.binary)).To(Succeed())
	s.write(t, s.kubeconfig, s.hub.Kubeconfig(), s.member.Kubeconfig())
	s.ok(t, "register", "eu", "--context", "eu", "--hub-context", "hub", "--keeps", "bundles.example.com")

	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	member, err := client.New(s.member.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	definition := bundlesDefinition.New()
	definition.Annotations[bundlesDefinition.RevisionAnnotation()] = "0"
	g.Expect(member.Create(t.Context(), definition)).To(Succeed())

	h := startHubWith(t, f, "bundles", []hub.Option{hub.WithController(bundles())})
	g.Eventually(func() (map[string]string, error) {
		cluster, err := h.Cluster(t.Context(), "eu")
		conditions := map[string]string{}
		for _, c := range cluster.GetConditions() {
			conditions[c.GetType()] = c.GetReason()
		}
		return conditions, err
	}).WithTimeout(patience).Should(And(HaveKeyWithValue("Bundles", "Current"), HaveKeyWithValue("WebApps", "Missing")))
	g.Expect(member.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)).To(Succeed())
	g.Expect(definition.Annotations).To(HaveKeyWithValue(bundlesDefinition.RevisionAnnotation(), "1"), "the hub brought it up to date")

	g.Eventually(func() error { return member.Create(t.Context(), bundle("bad"), client.DryRunAll) }).WithTimeout(patience).
		Should(MatchError(ContainSubstring("metadata.name: Forbidden: none may be called bad")))
	good := bundle("good")
	g.Expect(member.Create(t.Context(), good)).To(Succeed())
	g.Expect(good.GetLabels()).To(HaveKeyWithValue("example.com/seen", "yes"))
}
