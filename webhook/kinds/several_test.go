package kinds

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

const bundlesDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bundles.example.com"}, "spec": {
 "group": "example.com", "scope": "Namespaced", "names": {"kind": "Bundle", "listKind": "BundleList", "plural": "bundles", "singular": "bundle"},
 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`

// bundles are a kind of somebody else: none may be called "bad".
func bundles() module.Resource {
	return module.Resource{
		Title: "Bundles", Group: "example.com", Kind: "Bundle", Plural: "bundles", Versions: []string{"v1"},
		AddToScheme: func(*runtime.Scheme) error { return nil }, Definition: module.MustDefinition([]byte(bundlesDefinition), 1),
		Review: func(asked module.Review) (module.Judgement, error) {
			var is struct{ Metadata struct{ Name string } }
			if err := json.Unmarshal(asked.Object, &is); err != nil {
				return module.Judgement{}, err
			}
			if is.Metadata.Name == "bad" {
				return module.Judgement{Refusals: field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "none may be called bad")}}, nil
			}
			return module.Judgement{}, nil
		},
	}
}

func TestKindsOfSeveralModulesAreAnsweredEachWithItsToken(t *testing.T) {
	g := NewWithT(t)
	tokens := webhook.NewTokens(tokenKey, registered)
	kinds := []module.Resource{webapp.Resource(webapp.Policy{}), bundles()}
	handler, err := NewHandler(tokens, kinds, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	g.Expect(err).NotTo(HaveOccurred())
	s := &kindSite{Handler: handler, token: current(g, tokens.For("bundles"), "eu")}
	ask := func(name string) string {
		body := `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"7","name":"` + name + `","resource":{"group":"example.com","version":"v1","resource":"bundles"},` +
			`"object":{"metadata":{"name":"` + name + `"}}}}`
		answer := s.post(s.at("/bundles/validate"), []byte(body))
		g.Expect(answer.Code).To(Equal(http.StatusOK))
		return answer.Body.String()
	}
	g.Expect(ask("good")).To(ContainSubstring(`"allowed":true`))
	g.Expect(ask("bad")).To(And(ContainSubstring(`"allowed":false`), ContainSubstring(`Bundle.example.com \"bad\" is invalid: metadata.name: Forbidden: none may be called bad`)))
	g.Expect(testutil.ToFloat64(handler.answered.WithLabelValues("bundles", "validate", "refused"))).To(BeEquivalentTo(1))
	g.Expect(s.post(s.at("/webapps/validate"), []byte(`{}`)).Code).To(Equal(http.StatusNotFound), "the token is for calls about bundles")
	g.Expect(s.post(s.at("/bundles/default"), []byte(`{}`)).Code).To(Equal(http.StatusNotFound), "nobody completes bundles")

	_, err = NewHandler(tokens, append(kinds, bundles()), prometheus.NewRegistry(), s.Handler.log)
	g.Expect(err).To(MatchError("two kinds have the plural bundles"))
}

// A module decodes into types of its own. Those of Kubernetes, unlike those of WebApps, bound nothing themselves: a quantity like this one
// would keep a processor busy for hours, and empty containers take a hundred times as much memory as they have bytes.
func TestObjectsOfEveryKindAreBoundedBeforeTheirModuleSeesThem(t *testing.T) {
	g := NewWithT(t)
	var seen []string
	kind := bundles()
	kind.AddToScheme = func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Bundle"}, &corev1.Pod{})
		return nil
	}
	kind.Convert = func(object []byte, _ string) ([]byte, error) {
		seen = append(seen, string(object))
		return object, nil
	}
	kind.Review = func(asked module.Review) (module.Judgement, error) {
		seen = append(seen, string(asked.Object), string(asked.Old))
		return module.Judgement{}, nil
	}
	tokens := webhook.NewTokens(tokenKey, registered)
	handler, err := NewHandler(tokens, []module.Resource{kind}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	handler.refusals = nil // nobody waits for them
	s := &kindSite{Handler: handler, token: current(g, tokens.For("bundles"), "eu")}
	s.converter = current(g, tokens.For(webhook.ForConversions), "eu")

	of := func(containers string) string {
		return `{"apiVersion":"example.com/v1","kind":"Bundle","metadata":{"name":"a"},"spec":{"containers":[` + containers + `]}}`
	}
	review := func(object string) int {
		return s.post(s.at("/bundles/validate"), fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"7","name":"a",`+
			`"resource":{"group":"example.com","version":"v1","resource":"bundles"},"object":%s,"oldObject":%[1]s}}`, object)).Code
	}
	conversion := func(object string) metav1.Status {
		return s.convert(t, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7",`+
			`"desiredAPIVersion":"example.com/v1","objects":[%s]}}`, object)).Result
	}
	quantity := func(cpu string) string { return of(`{"name":"a","resources":{"requests":{"cpu":"` + cpu + `"}}}`) }
	g.Expect(review(quantity("1e-2147483647"))).To(Equal(http.StatusOK))
	g.Expect(conversion(quantity("1e-2147483647")).Status).To(Equal(metav1.StatusSuccess))
	g.Expect(seen).To(HaveLen(3))
	g.Expect(seen).To(HaveEach(quantity("1e-0000000099")))

	seen = nil
	large := of(strings.Repeat("{},", 200_000) + "{}") // 600 KB
	g.Expect(review(large)).To(Equal(http.StatusBadRequest))
	g.Expect(conversion(large).Status).To(Equal(metav1.StatusFailure))
	g.Expect(seen).To(BeEmpty())
}

func TestTheDefinitionsOfSeveralModulesAreKeptOneByOne(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	k, err := NewInstaller(s.options, append(s.kinds, bundles()))
	g.Expect(err).NotTo(HaveOccurred())
	rt, err := reconcile.NewRuntime(reconcile.Options{Scheme: definitionScheme(g)})
	g.Expect(err).NotTo(HaveOccurred())
	controllers, err := k.Register(rt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(controllers).To(HaveLen(2))
	g.Expect(k.Kinds(controllers[0])[0].Names).To(Equal([]string{"webapps.apps.plimsoll.dev", "bundles.example.com"}), "a right to single ones is enough")

	of := &k.kinds[1]
	k.setDefinition("eu", webApps(k), webhook.Installation{Reason: webhook.ReasonCurrent})
	k.setValidation("eu", webhook.Installation{Reason: webhook.ReasonCurrent})
	g.Expect(k.State(webApps(k), "eu").Reason).To(Equal(webhook.ReasonCurrent))
	g.Expect(k.State(of, "eu")).To(And(HaveField("Reason", webhook.ReasonMissing), HaveField("Message", ContainSubstring("no definition of Bundles"))))
	conversion, _, err := definitionKeeper{k}.conversion(of, "eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conversion.Webhook).To(BeNil(), "nobody converts bundles")
	definition := newDefinitionSite(t, of.Definition.New())
	definition.Installer = k
	g.Expect(definition.look(g, of).Reason).To(Equal(webhook.ReasonCurrent))

	there := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	there.Name = webhook.ConfigurationName
	g.Expect(s.client.Create(t.Context(), there)).To(Succeed())
	_, err = validationKeeper{k}.Reconcile(t.Context(), reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]{
		Member: "eu", Object: there, Client: s.client, Events: s,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(there.Webhooks).To(HaveLen(2))
	g.Expect(there.Webhooks[1].Name).To(Equal("validation.bundles.plimsoll.dev"))
	g.Expect(there.Webhooks[1].Rules[0].Resources).To(Equal([]string{"bundles"}))
	g.Expect(strings.HasSuffix(*there.Webhooks[1].ClientConfig.URL, "/"+s.tokenFor(g, "bundles")+"/bundles/validate")).To(BeTrue())
}
