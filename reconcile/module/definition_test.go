package module_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

const bundles = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bundles.example.com}
spec:
  group: example.com
  names: {kind: Bundle, listKind: BundleList, plural: bundles, singular: bundle}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
    - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func TestADefinitionCarriesTheRevisionOfItsOwnGroup(t *testing.T) {
	g := NewWithT(t)
	d, err := module.NewDefinition([]byte(bundles), 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Name()).To(Equal("bundles.example.com"))
	made := d.New()
	g.Expect(made.Annotations).To(Equal(map[string]string{"example.com/revision": "3"}))
	g.Expect(made.Spec.Versions[0].Served).To(BeTrue())
	g.Expect(made.Spec.Versions[1].Served).To(BeFalse(), "nobody converts it yet")
	made.Annotations["example.com/revision"] = "4"
	g.Expect(d.Refusal(made)).To(ContainSubstring("wrote revision 4 of it, this one knows 3"))
	made.Annotations["example.com/keep-current"] = "false"
	g.Expect(d.Kept(&made.ObjectMeta)).To(BeFalse())
	_, err = module.NewDefinition([]byte("metadata: 7"), 1)
	g.Expect(err).To(MatchError(ContainSubstring("read a CustomResourceDefinition")))
}

func TestCopiesOfADefinitionShareNothing(t *testing.T) {
	g := NewWithT(t)
	d := module.MustDefinition([]byte(bundles), 3)
	made := d.With(module.WebhookConversion("https://hub/x", nil))
	g.Expect(made.Spec.Versions).To(HaveEach(HaveField("Served", true)), "they are converted")
	made.Spec.Versions[0].Schema.OpenAPIV3Schema.Type = "string"
	made.Spec.Versions[0].Name = "v9"
	g.Expect(d.New().Spec.Versions[0]).To(And(HaveField("Name", "v1"), HaveField("Schema.OpenAPIV3Schema.Type", "object"), HaveField("Served", true)))
	g.Expect(d.New().Spec.Versions[1].Served).To(BeFalse())
}

func TestADefinitionOfAnotherKindIsRefused(t *testing.T) {
	g := NewWithT(t)
	m := module.Module{Name: "trust", Resources: []module.Resource{{
		Title: "Bundles", Group: "example.org", Kind: "Bundle", Plural: "bundles", Versions: []string{"v1"},
		Definition: module.MustDefinition([]byte(bundles), 1),
	}}}
	err := m.Validate()
	g.Expect(err).To(MatchError(ContainSubstring(`resource "bundles": its definition is bundles.example.com`)))
	g.Expect(err).To(MatchError(ContainSubstring("it has no versions, or no Go types")))
}
