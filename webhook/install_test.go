package webhook

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

// site is one member "eu" with an installer that keeps its configuration.
type site struct {
	*Installer
	client  client.Client
	members registered
	wanted  Wanted
	// namespaces that "eu" is registered for
	namespaces []string
	events     []string
	patches    int
	refuse     error // what the next patches are answered with
}

func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	g := NewWithT(t)
	base, err := ParseBaseURL("https://hub.example:9443")
	g.Expect(err).NotTo(HaveOccurred())
	s := &site{members: registered{"eu": {UID: "1"}}, wanted: Wanted{BaseURL: base, Bundle: []byte("bundle"), EnabledLabel: "plimsoll.dev/enabled"}}
	s.client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if s.patches++; s.refuse != nil {
				return s.refuse
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	s.Installer, err = NewInstaller(InstallerOptions{
		Tokens: NewTokens(tokenKey, s.members.look), Wanted: func() Wanted { return s.wanted },
		Namespaces: func(string) []string { return s.namespaces }, Further: s.further,
	})
	g.Expect(err).NotTo(HaveOccurred())
	return s
}

// further is what the configuration holds beside the webhook for pods.
func (s *site) further(wanted Wanted, _ string) ([]admissionregistrationv1.MutatingWebhook, []string, error) {
	return []admissionregistrationv1.MutatingWebhook{other(wanted)}, nil, nil
}

func other(wanted Wanted) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Name: "others.plimsoll.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: wanted.Bundle}}
}

func empty() *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName, Labels: map[string]string{"kept": "yes"}}}
}

func (s *site) Normal(reason, format string, args ...any) {
	s.events = append(s.events, "Normal "+reason+" "+fmt.Sprintf(format, args...))
}

func (s *site) Warning(reason, format string, args ...any) {
	s.events = append(s.events, "Warning "+reason+" "+fmt.Sprintf(format, args...))
}

// reconcile hands the configuration as it is to the installer.
func (s *site) reconcile(g Gomega) (reconcile.Result, error) {
	return s.Reconcile(context.Background(), reconcile.Request[*configuration]{
		Member: "eu", Object: s.installed(g), Client: s.client, Live: s.client, Events: s,
	})
}

func (s *site) installed(g Gomega) *configuration {
	found := &configuration{}
	g.Expect(s.client.Get(context.Background(), types.NamespacedName{Name: ConfigurationName}, found)).To(Succeed())
	return found
}

func (s *site) token(g Gomega) string { return current(g, s.options.Tokens, "eu") }

func TestAnEmptyConfigurationIsFilledInAndThenLeftAlone(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonMissing), "not seen yet")
	for range 3 {
		result, err := s.reconcile(g)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result).To(Equal(reconcile.Done()))
	}
	g.Expect(s.patches).To(Equal(1))
	g.Expect(s.events).To(HaveLen(1))
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonCurrent))
	found := s.installed(g)
	g.Expect(found.Labels).To(HaveKeyWithValue("kept", "yes"))
	g.Expect(found.Webhooks).To(HaveLen(2), "of pods and another one")
	hook := found.Webhooks[0]
	g.Expect(*hook.ClientConfig.URL).To(Equal("https://hub.example:9443/webhook/v1/members/eu/" + s.token(g) + "/pods"))
	g.Expect(hook.ClientConfig.CABundle).To(Equal([]byte("bundle")))
	g.Expect(*hook.FailurePolicy).To(Equal(admissionregistrationv1.Ignore))
	g.Expect(*hook.TimeoutSeconds).To(Equal(int32(2)))
	g.Expect(*hook.SideEffects).To(Equal(admissionregistrationv1.SideEffectClassNoneOnDryRun))
	g.Expect(*hook.ReinvocationPolicy).To(Equal(admissionregistrationv1.IfNeededReinvocationPolicy))
	selector, err := metav1.LabelSelectorAsSelector(hook.NamespaceSelector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.String()).To(Equal("kubernetes.io/metadata.name notin (kube-system),plimsoll.dev/enabled in (true)"))
}

func TestWhateverDriftsIsBroughtBack(t *testing.T) {
	for name, drift := range map[string]func(*site, *configuration){
		"the policy": func(_ *site, c *configuration) {
			fail := admissionregistrationv1.Fail
			c.Webhooks[0].FailurePolicy = &fail
		},
		"the selector":     func(_ *site, c *configuration) { c.Webhooks[0].NamespaceSelector = nil },
		"the condition":    func(_ *site, c *configuration) { c.Webhooks[0].MatchConditions = nil },
		"one more webhook": func(_ *site, c *configuration) { c.Webhooks = append(c.Webhooks, *c.Webhooks[0].DeepCopy()) },
		"no webhook":       func(_ *site, c *configuration) { c.Webhooks = nil },
		"the bundle":       func(s *site, _ *configuration) { s.wanted.Bundle = []byte("another") },
		"the token":        func(s *site, _ *configuration) { s.members.generation("eu", "1") },
		"the registration": func(s *site, _ *configuration) { s.members["eu"].UID = "2" },
		"the namespaces": func(s *site, _ *configuration) {
			s.wanted.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSite(t, empty())
			_, err := s.reconcile(g)
			g.Expect(err).NotTo(HaveOccurred())
			found := s.installed(g)
			drift(s, found)
			g.Expect(s.client.Update(context.Background(), found)).To(Succeed())
			_, err = s.reconcile(g)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.patches).To(Equal(2))
			g.Expect(s.installed(g).Webhooks).To(Equal(append(Desired(s.wanted, "eu", s.token(g)), other(s.wanted))))
		})
	}
}

func TestOnlyTheNamedConfigurationIsTouched(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	other := empty()
	other.Name = "plimsoll-of-somebody-else"
	_, err := s.Reconcile(t.Context(), reconcile.Request[*configuration]{Member: "eu", Object: other, Client: s.client, Events: s})
	g.Expect(err).NotTo(HaveOccurred())
	leaving := empty()
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = metav1.Now().Time
	_, err = s.Reconcile(t.Context(), reconcile.Request[*configuration]{Member: "eu", Object: leaving, Client: s.client, Events: s})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.patches).To(BeZero())
	g.Expect(s.Kind().Fields.String()).To(Equal("metadata.name=plimsoll"))
}

func TestATenantHasAConfigurationOfItsOwnForItsNamespacesOnly(t *testing.T) {
	g := NewWithT(t)
	own := empty()
	own.Name = "plimsoll-eu"
	s := newSite(t, empty(), own)
	s.namespaces = []string{"cart", "shop"}
	g.Expect(s.Installation("eu").Message).To(ContainSubstring("MutatingWebhookConfiguration plimsoll-eu"))
	for _, name := range []string{ConfigurationName, "plimsoll-eu"} {
		found := &configuration{}
		g.Expect(s.client.Get(context.Background(), types.NamespacedName{Name: name}, found)).To(Succeed())
		_, err := s.Reconcile(context.Background(), reconcile.Request[*configuration]{Member: "eu", Object: found, Client: s.client, Live: s.client, Events: s})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(s.installed(g).Webhooks).To(BeEmpty(), "that of the whole cluster is somebody else's")
	found := &configuration{}
	g.Expect(s.client.Get(context.Background(), types.NamespacedName{Name: "plimsoll-eu"}, found)).To(Succeed())
	selector, err := metav1.LabelSelectorAsSelector(found.Webhooks[0].NamespaceSelector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.Matches(labels.Set{"plimsoll.dev/enabled": "true", "kubernetes.io/metadata.name": "shop"})).To(BeTrue())
	g.Expect(selector.Matches(labels.Set{"plimsoll.dev/enabled": "true", "kubernetes.io/metadata.name": "pay"})).To(BeFalse())
	g.Expect(selector.Matches(labels.Set{"kubernetes.io/metadata.name": "shop"})).To(BeFalse())
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonCurrent))
}

func TestAMissingConfigurationIsNamedWithWhatToDo(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	_, err := s.reconcile(g)
	g.Expect(err).NotTo(HaveOccurred())
	s.Forget(t.Context(), "eu", types.NamespacedName{Name: ConfigurationName})
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonMissing))
	g.Expect(s.Installation("eu").Message).To(And(ContainSubstring("MutatingWebhookConfiguration plimsoll"), ContainSubstring("plimsoll register")))
}

// A cache that lags shows an older version than the one to be patched.
func TestAConfigurationThatChangedMeanwhileIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	stale := s.installed(g)
	newer := s.installed(g)
	newer.Labels["touched"] = "yes"
	g.Expect(s.client.Update(context.Background(), newer)).To(Succeed())
	result, err := s.Reconcile(t.Context(), reconcile.Request[*configuration]{Member: "eu", Object: stale, Client: s.client, Events: s})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(Equal(reconcile.Requeue("the webhook configuration changed meanwhile")))
	g.Expect(s.installed(g).Webhooks).To(BeEmpty())
}

func TestAMemberThatRefusesTheConfigurationIsReportedWithoutTheToken(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	url := callURL(s.wanted.BaseURL, "eu", s.token(g))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "MutatingWebhookConfiguration"}, ConfigurationName, nil)
	invalid.ErrStatus.Message = fmt.Sprintf("clientConfig.url: Invalid value: %q", url)
	s.refuse = invalid
	_, err := s.reconcile(g)
	g.Expect(err).To(MatchError(And(ContainSubstring("member eu: webhook configuration plimsoll: patch: "), ContainSubstring("members/eu/<token>/pods"))))
	for ; err != nil; err = errors.Unwrap(err) {
		g.Expect(err.Error()).NotTo(ContainSubstring(s.token(g)))
	}
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonFailed))
	g.Expect(s.Installation("eu").Message).NotTo(ContainSubstring(s.token(g)))
	g.Expect(s.events).To(BeEmpty())

	s.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, ConfigurationName, errors.New("no rule"))
	_, err = s.reconcile(g)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "an error that quotes no token keeps its kind")

	s.refuse = nil
	_, err = s.reconcile(g)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonCurrent))
}

func TestABadGenerationLeavesTheConfigurationAndIsReported(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, empty())
	_, err := s.reconcile(g)
	g.Expect(err).NotTo(HaveOccurred())
	before := s.installed(g)
	s.members.generation("eu", "two")
	_, err = s.reconcile(g)
	g.Expect(err).To(MatchError(ContainSubstring(TokenGenerationAnnotation)))
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonFailed))
	g.Expect(s.installed(g)).To(Equal(before))
}

func TestAnInstallerThatCannotKnowWhatIsWantedDoesNotStart(t *testing.T) {
	g := NewWithT(t)
	base, err := ParseBaseURL("https://hub.example")
	g.Expect(err).NotTo(HaveOccurred())
	tokens := NewTokens(tokenKey, registered{}.look)
	for _, wanted := range []Wanted{
		{EnabledLabel: "plimsoll.dev/enabled"},
		{BaseURL: base},
		{BaseURL: base, EnabledLabel: "plimsoll.dev/enabled", Namespaces: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
	} {
		_, err := NewInstaller(InstallerOptions{Tokens: tokens, Wanted: func() Wanted { return wanted }})
		g.Expect(err).To(MatchError(HavePrefix("webhook configuration: ")))
	}
	_, err = NewInstaller(InstallerOptions{Tokens: tokens})
	g.Expect(err).To(HaveOccurred())
}
