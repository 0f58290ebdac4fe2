package crd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// revisions are the definitions that were released, by their revision.
var revisions = map[int]string{
	1: "e35648f9b59a4630",
}

func TestAChangedDefinitionHasANewRevision(t *testing.T) {
	sum := sha256.Sum256(definition)
	if is := hex.EncodeToString(sum[:8]); revisions[Revision] != is {
		t.Errorf("the definition is %s, and revision %d was %s: if that one was released raise crd.Revision, then write the new sum here", is, Revision, revisions[Revision])
	}
}

func TestWithoutAHubOnlyTheStoredVersionIsServed(t *testing.T) {
	g := NewWithT(t)
	served := func(made *apiextensionsv1.CustomResourceDefinition) map[string]bool {
		all := map[string]bool{}
		for _, v := range made.Spec.Versions {
			all[v.Name] = v.Served
			g.Expect(v.Storage).To(Equal(v.Name == "v1"))
			g.Expect(v.Subresources.Scale).NotTo(BeNil())
			g.Expect(v.Subresources.Status).NotTo(BeNil())
			g.Expect(v.AdditionalPrinterColumns).NotTo(BeEmpty())
		}
		return all
	}
	g.Expect(New().Name).To(Equal(Name))
	g.Expect([]string{Definition.Name(), Definition.RevisionAnnotation(), Definition.KeepAnnotation()}).To(Equal([]string{Name, RevisionAnnotation, KeepAnnotation}))
	g.Expect(New().Spec.Names.ShortNames).To(Equal([]string{"wa"}))
	g.Expect(served(New())).To(Equal(map[string]bool{"v1": true, "v1beta1": false, "v1alpha1": false}))
	whole := map[string]bool{"v1": true, "v1beta1": true, "v1alpha1": true}
	hubs := Definition.With(module.WebhookConversion("https://hub/x", []byte("ca")))
	g.Expect(served(hubs)).To(Equal(whole))
	g.Expect(*hubs.Spec.Conversion.Webhook.ClientConfig.URL).To(Equal("https://hub/x"))

	g.Expect(served(Definition.ForMember(nil))).To(Equal(served(New())))
	g.Expect(Definition.ForMember(hubs)).To(Equal(hubs), "installing again takes nothing away from what the hub wrote")
}

func TestAStoredVersionIsNeverLowered(t *testing.T) {
	with := func(annotation string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
		there := New()
		there.Annotations[RevisionAnnotation] = annotation
		there.Status.StoredVersions = stored
		return there
	}
	plain := New()
	plain.Annotations = nil
	for name, test := range map[string]struct {
		there *apiextensionsv1.CustomResourceDefinition
		want  string
	}{
		"ours":                      {with("1", "v1"), ""},
		"an older one":              {with("0", "v1alpha1", "v1"), ""},
		"one without annotation":    {plain, ""},
		"one of a newer Plimsoll":   {with("2", "v1"), "a newer Plimsoll wrote revision 2 of it, this one knows 1: update this one"},
		"a version unknown to us":   {with("1", "v1", "v2"), "objects are stored as v2, which this Plimsoll does not know"},
		"an annotation of nobody's": {with("latest"), `annotation apps.plimsoll.dev/revision: "latest": must be a whole number`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if test.want == "" {
				g.Expect(Definition.Refusal(test.there)).To(BeEmpty())
			} else {
				g.Expect(Definition.Refusal(test.there)).To(ContainSubstring(test.want))
			}
		})
	}
}

func TestADifferenceIsNamed(t *testing.T) {
	g := NewWithT(t)
	conversion := module.WebhookConversion("https://hub/x", nil)
	ours := Definition.With(conversion)
	g.Expect(Definition.Differs(ours.DeepCopy(), conversion)).To(BeEmpty())
	g.Expect(Definition.Differs(New(), conversion)).To(Equal("its conversion does not lead to this hub"))
	other := ours.DeepCopy()
	other.Annotations[RevisionAnnotation] = "0"
	g.Expect(Definition.Differs(other, conversion)).To(Equal(`annotation apps.plimsoll.dev/revision is "0", not "1"`))
	other = ours.DeepCopy()
	other.Spec.Versions[1].Served = false
	g.Expect(Definition.Differs(other, conversion)).To(ContainSubstring("is not served or stored as it should be"))
	other.Annotations[KeepAnnotation] = "false"
	g.Expect(Definition.Kept(&other.ObjectMeta)).To(BeFalse())
	g.Expect(Definition.Kept(&ours.ObjectMeta)).To(BeTrue())
}

func TestTheDefaultsInGoAreThoseOfTheDefinition(t *testing.T) {
	g := NewWithT(t)
	for _, version := range New().Spec.Versions {
		if version.Name != "v1" {
			continue
		}
		for _, said := range []v1.WebAppSpec{
			{}, {Autoscaling: &v1.Autoscaling{MaxReplicas: 3}}, {Service: &v1.Service{Type: "NodePort"}}, {Spot: &v1.Spot{}},
		} {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1.WebApp{Spec: said})
			g.Expect(err).NotTo(HaveOccurred())
			setDefaults(g, object, version.Schema.OpenAPIV3Schema)
			var app v1.WebApp
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object, &app)).To(Succeed())
			said.SetDefaults()
			g.Expect(app.Spec).To(Equal(said))
		}
	}
}

// setDefaults does what an API server does with an object and a schema.
func setDefaults(g *WithT, object map[string]any, schema *apiextensionsv1.JSONSchemaProps) {
	for name, property := range schema.Properties {
		if _, there := object[name]; !there && property.Default != nil {
			var value any
			g.Expect(json.Unmarshal(property.Default.Raw, &value)).To(Succeed())
			if number, ok := value.(float64); ok {
				value = int64(number)
			}
			object[name] = value
		}
		if below, ok := object[name].(map[string]any); ok {
			setDefaults(g, below, &property)
		}
	}
}
