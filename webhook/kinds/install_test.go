package kinds

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// webApps is the one kind of the tests.
func webApps(k *Installer) *module.Resource { return &k.kinds[0] }

// definitionSite is a member "eu" with a definition, and what keeps it.
type definitionSite struct {
	*Installer
	*site
	client  client.Client
	applied int
	refuse  error
}

func newDefinitionSite(t *testing.T, there *apiextensionsv1.CustomResourceDefinition) *definitionSite {
	t.Helper()
	g := NewWithT(t)
	d := &definitionSite{site: newSite(t)}
	var err error
	d.Installer, err = NewInstaller(d.site.options, d.site.kinds)
	g.Expect(err).NotTo(HaveOccurred())
	d.client = fake.NewClientBuilder().WithScheme(definitionScheme(g)).WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if d.applied++; d.refuse != nil {
				return d.refuse
			}
			return nil
		},
	}).Build()
	return d
}

func definitionScheme(g *WithT) *runtime.Scheme {
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// keep has the definition of WebApps looked at once, and returns its state.
func (d *definitionSite) keep(g *WithT) webhook.Installation { return d.look(g, webApps(d.Installer)) }

// look is keep of any kind.
func (d *definitionSite) look(g *WithT, kind *module.Resource) webhook.Installation {
	there := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(d.client.Get(context.Background(), client.ObjectKey{Name: kind.Definition.Name()}, there)).To(Succeed())
	_, _ = definitionKeeper{d.Installer}.Reconcile(context.Background(), reconcile.Request[*apiextensionsv1.CustomResourceDefinition]{
		Member: "eu", Object: there, Client: d.client, Events: d.site,
	})
	return d.State(kind, "eu")
}

// Each member has a definition, and each join, each resync and each change of it is a reconcile. To read the whole definition
// for that took tens of thousands of allocations.
func TestADefinitionThatIsCurrentIsCheapToCheck(t *testing.T) {
	g := NewWithT(t)
	d := newDefinitionSite(t, crd.New())
	keeper, kind := definitionKeeper{d.Installer}, webApps(d.Installer)
	conversion, _, err := keeper.conversion(kind, "eu")
	g.Expect(err).NotTo(HaveOccurred())
	there := &apiextensionsv1.CustomResourceDefinition{}
	keepDefinition(kind.Definition.With(conversion), there)
	there.Name = crd.Name
	check := func() {
		_, err := keeper.Reconcile(t.Context(), reconcile.Request[*apiextensionsv1.CustomResourceDefinition]{Member: "eu", Object: there, Client: d.client, Events: d.site})
		g.Expect(err).NotTo(HaveOccurred())
	}
	check()
	g.Expect(d.applied).To(Equal(1), "the cache does not show the schemas")
	g.Expect(testing.AllocsPerRun(10, check)).To(BeNumerically("<", 200))
	g.Expect(d.applied).To(Equal(1))
	there.Generation++
	check()
	g.Expect(d.applied).To(Equal(2), "somebody changed it")
}

func TestADefinitionIsKeptUnlessItMustNotBe(t *testing.T) {
	newer, theirs := crd.New(), crd.New()
	newer.Annotations[crd.RevisionAnnotation] = "99"
	theirs.Annotations[crd.KeepAnnotation] = "false"
	for name, test := range map[string]struct {
		there   *apiextensionsv1.CustomResourceDefinition
		tenant  bool
		applied int
		reason  string
	}{
		"one without a converter":   {there: crd.New(), applied: 1, reason: webhook.ReasonCurrent},
		"one of a newer Plimsoll":   {there: newer, reason: ReasonRefused},
		"one that its owner keeps":  {there: theirs, reason: ReasonOutdated},
		"one of a tenant's cluster": {there: crd.New(), tenant: true, reason: webhook.ReasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := newDefinitionSite(t, test.there)
			if test.tenant {
				d.namespaces = []string{"shop"}
			}
			d.setValidation("eu", webhook.Installation{Reason: webhook.ReasonCurrent})
			g.Expect(d.keep(g).Reason).To(Equal(test.reason))
			g.Expect(d.applied).To(Equal(test.applied))
		})
	}
}

func TestAnErrorAboutADefinitionDoesNotTellTheToken(t *testing.T) {
	g := NewWithT(t)
	d := newDefinitionSite(t, crd.New())
	d.refuse = &quoting{"no such host: " + ConvertURL(d.wanted.BaseURL, "eu", d.tokenFor(g, webhook.ForConversions))}
	state := d.keep(g)
	g.Expect(state.Reason).To(Equal(webhook.ReasonFailed))
	g.Expect(state.Message).To(And(ContainSubstring("<token>"), Not(ContainSubstring(d.tokenFor(g, webhook.ForConversions)))))
	definitionKeeper{d.Installer}.Forget(t.Context(), "eu", client.ObjectKey{Name: crd.Name})
	g.Expect(d.State(webApps(d.Installer), "eu").Reason).To(Equal(webhook.ReasonMissing))
}

// quoting is an API server's error that quotes what it was sent.
type quoting struct{ text string }

func (q *quoting) Error() string { return q.text }

func TestTheCachedDefinitionIsSmallAndSaysWhatCounts(t *testing.T) {
	g := NewWithT(t)
	conversion := module.WebhookConversion("https://hub/x", []byte("ca"))
	from, into := crd.Definition.With(conversion), &apiextensionsv1.CustomResourceDefinition{}
	from.Status.StoredVersions = []string{"v1"}
	keepDefinition(from, into)
	g.Expect(crd.Definition.Differs(into, conversion)).To(BeEmpty())
	g.Expect(into.Status.StoredVersions).To(Equal([]string{"v1"}))
	g.Expect(into.Spec.Versions).To(HaveEach(HaveField("Schema", BeNil())))
}

func TestTheValidationIsKeptAndThenLeftAlone(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	k, err := NewInstaller(s.options, s.kinds)
	g.Expect(err).NotTo(HaveOccurred())
	there := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	there.Name = webhook.ConfigurationName
	g.Expect(s.client.Create(t.Context(), there)).To(Succeed())
	k.setDefinition("eu", webApps(k), webhook.Installation{Reason: webhook.ReasonCurrent})
	g.Expect(k.State(webApps(k), "eu")).To(And(HaveField("Reason", webhook.ReasonMissing), HaveField("Message", ContainSubstring("ValidatingWebhookConfiguration plimsoll"))))
	for range 2 {
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(there), there)).To(Succeed())
		_, err = validationKeeper{k}.Reconcile(t.Context(), reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]{
			Member: "eu", Object: there, Client: s.client, Events: s,
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(s.patches).To(Equal(1))
	g.Expect(there.Webhooks).To(Equal([]admissionregistrationv1.ValidatingWebhook{Validation(webApps(k), s.wanted, "eu", s.tokenFor(g, webapp.Plural))}))
	g.Expect(k.State(webApps(k), "eu").Reason).To(Equal(webhook.ReasonCurrent))
	validationKeeper{k}.Forget(t.Context(), "eu", client.ObjectKeyFromObject(there))
	g.Expect(k.State(webApps(k), "eu").Reason).To(Equal(webhook.ReasonMissing))
}

func TestAValidationThatCannotBeWrittenIsTold(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	k, err := NewInstaller(s.options, s.kinds)
	g.Expect(err).NotTo(HaveOccurred())
	there := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	there.Name = webhook.ConfigurationName
	g.Expect(s.client.Create(t.Context(), there)).To(Succeed())
	s.refuse = &quoting{"no such host: " + ConvertURL(s.wanted.BaseURL, "eu", s.tokenFor(g, webapp.Plural))}
	k.setDefinition("eu", webApps(k), webhook.Installation{Reason: webhook.ReasonCurrent})
	_, err = validationKeeper{k}.Reconcile(t.Context(), reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]{
		Member: "eu", Object: there, Client: s.client, Events: s,
	})
	g.Expect(err).To(HaveOccurred())
	g.Expect(k.State(webApps(k), "eu")).To(And(HaveField("Reason", webhook.ReasonFailed), HaveField("Message", Not(ContainSubstring(s.tokenFor(g, webapp.Plural))))))
}

// The webhook for pods and those that complete kinds are one configuration.
func TestWhatCompletesKindsIsKeptBesideTheWebhookForPods(t *testing.T) {
	g := NewWithT(t)
	there := &admissionregistrationv1.MutatingWebhookConfiguration{}
	there.Name = webhook.ConfigurationName
	s := newSite(t, there)
	s.options.Further = Completing(append(s.kinds, bundles()), s.options.Tokens)
	installer, err := webhook.NewInstaller(s.options)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(there), there)).To(Succeed())
		_, err = installer.Reconcile(t.Context(), reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration]{
			Member: "eu", Object: there, Client: s.client, Live: s.client, Events: s,
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(s.patches).To(Equal(1))
	pods := current(g, s.options.Tokens, "eu")
	g.Expect(there.Webhooks).To(Equal(append(webhook.Desired(s.wanted, "eu", pods), Defaults(&s.kinds[0], s.wanted, "eu", s.tokenFor(g, webapp.Plural)))))

	s.wanted.Bundle = []byte("another")
	s.refuse = &quoting{"no such host: " + *there.Webhooks[1].ClientConfig.URL}
	_, err = installer.Reconcile(t.Context(), reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration]{
		Member: "eu", Object: there, Client: s.client, Live: s.client, Events: s,
	})
	g.Expect(err).To(MatchError(And(ContainSubstring("<token>"), Not(ContainSubstring(s.tokenFor(g, webapp.Plural))))))
}
