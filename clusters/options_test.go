package clusters

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func goodOptions() Options {
	return Options{Namespace: "plimsoll", Secrets: newFakeSecrets(), Scheme: scheme.Scheme, Fence: &switchableFence{}, Log: slog.New(slog.DiscardHandler)}
}

func TestOptionsThatCannotBeAreNamed(t *testing.T) {
	g := NewWithT(t)
	for want, spoil := range map[string]func(*Options){
		"Namespace":    func(o *Options) { o.Namespace = "" },
		"Scheme":       func(o *Options) { o.Scheme = nil },
		"Fence":        func(o *Options) { o.Fence = nil },
		"HubConfig":    func(o *Options) { o.Secrets = nil },
		"QPS":          func(o *Options) { o.QPS = -1 },
		"WarmTimeout":  func(o *Options) { o.WarmTimeout = -time.Second },
		"RetryMax":     func(o *Options) { o.RetryMin, o.RetryMax = time.Minute, time.Second },
		"hub cluster":  func(o *Options) { o.Secrets, o.HubConfig = nil, &rest.Config{Host: "http://%"} },
		"declare kind": func(o *Options) { o.Kinds = []Kind{podKind, {Object: &corev1.Pod{}, Labels: labels.Nothing()}} },
	} {
		o := goodOptions()
		spoil(&o)
		_, err := New(o)
		g.Expect(err).To(MatchError(ContainSubstring(want)), want)
	}
}

func TestMetricsThatAreTakenAlreadyAreAnError(t *testing.T) {
	g := NewWithT(t)
	o := goodOptions()
	o.Registerer = prometheus.NewRegistry()
	_, err := New(o)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = New(o)
	g.Expect(err).To(MatchError(ContainSubstring("metrics of members")))
}

func TestKindsAreDeclaredBeforeTheStartOnly(t *testing.T) {
	g := NewWithT(t)
	p, err := New(goodOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.AddKinds(podKind)).To(Succeed())
	g.Expect(p.AddKinds(Kind{Object: &corev1.Pod{}, Labels: labels.Nothing()})).NotTo(Succeed())
	g.Expect(p.AddAccess(Access{Resource: "pods", Verbs: []string{"get"}})).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.Expect(p.Start(ctx, newFakeAware())).To(Succeed())
	g.Expect(p.AddKinds(configMapKind)).To(MatchError(errStarted))
	g.Expect(p.AddAccess(Access{})).To(MatchError(errStarted))
	g.Expect(p.Start(ctx, newFakeAware())).To(MatchError(errStarted))
}

func TestAKindThatTheSchemeDoesNotKnowStopsTheStart(t *testing.T) {
	g := NewWithT(t)
	o := goodOptions()
	o.Scheme, o.Kinds = runtime.NewScheme(), []Kind{podKind}
	p, err := New(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Start(t.Context(), newFakeAware())).To(MatchError(ContainSubstring("*v1.Pod")))
}

func TestAnIndexOfAKindThatIsNotDeclaredStopsTheStart(t *testing.T) {
	g := NewWithT(t)
	p, err := New(goodOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.IndexField(t.Context(), &corev1.Pod{}, "app", func(client.Object) []string { return nil })).To(Succeed())
	g.Expect(p.Start(t.Context(), newFakeAware())).To(MatchError(ContainSubstring("not declared")))
}

func TestOnlyRegistrationSecretsOfOneNamespaceAreAskedFor(t *testing.T) {
	f := newFleet(t)
	f.g.Eventually(func() []string {
		f.secrets.mu.Lock()
		defer f.secrets.mu.Unlock()
		return slices.Sorted(maps.Keys(f.secrets.asked))
	}).Should(Equal([]string{
		"in plimsoll",
		"list " + AllMembersLabel + "=true", "list " + MemberLabel + "=true", "list " + MulticlusterRuntimeLabel + "=true",
		"watch " + AllMembersLabel + "=true", "watch " + MemberLabel + "=true", "watch " + MulticlusterRuntimeLabel + "=true",
	}))
}

func TestAMemberThatDoesNotAnswerIsAskedAsOftenAsOneThatDoes(t *testing.T) {
	g := NewWithT(t)
	for _, limits := range []Options{{}, {ProbeInterval: 500 * time.Millisecond}, {RetryMin: time.Minute, RetryMax: time.Hour}, {RetryMax: 2 * time.Second}} {
		o := goodOptions()
		o.ProbeInterval, o.RetryMin, o.RetryMax = limits.ProbeInterval, limits.RetryMin, limits.RetryMax
		o, err := o.withDefaults()
		g.Expect(err).NotTo(HaveOccurred())
		most := min(o.RetryMax, o.ProbeInterval)
		backoff := o.probeBackoff()
		for range 20 {
			g.Expect(backoff.Step()).To(BeNumerically("<=", most+most/5))
		}
		g.Expect(backoff.Step()).To(BeNumerically(">=", most), "it has grown to that")
	}
}
