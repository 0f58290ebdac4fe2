package integration

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// stamper writes a label into each ConfigMap that asks for it. It knows nothing of Plimsoll.
type stamper struct {
	manager mcmanager.Manager

	mu   sync.Mutex
	seen map[string]bool // by member
}

// Reconcile reads from the member's cache and writes to the member.
func (s *stamper) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrlreconcile.Result, error) {
	member, err := s.manager.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return ctrlreconcile.Result{}, err
	}
	s.mu.Lock()
	s.seen[req.ClusterName.String()] = true
	s.mu.Unlock()
	found := &corev1.ConfigMap{}
	if err := member.GetClient().Get(ctx, req.NamespacedName, found); err != nil {
		return ctrlreconcile.Result{}, client.IgnoreNotFound(err)
	}
	if found.Annotations["stamp"] == "" || found.Labels["stamped"] != "" {
		return ctrlreconcile.Result{}, nil
	}
	before := found.DeepCopy()
	if found.Labels == nil {
		found.Labels = map[string]string{}
	}
	found.Labels["stamped"] = req.ClusterName.String()
	return ctrlreconcile.Result{}, member.GetClient().Patch(ctx, found, client.MergeFrom(before))
}

// Whoever has controllers for multicluster-runtime keeps them: they run on our members as they are.
func TestAControllerOfMulticlusterRuntimeRunsOnOurProvider(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(memberPatience)
	c := kube.New(t, kube.Options{Name: "multicluster", Minimal: true})
	s := &reconcileSite{memberSite: &memberSite{t: t, g: g, ctx: t.Context(), cluster: c, client: c.Client(), metrics: prometheus.NewRegistry(), log: &fleet.LogBuffer{}}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "multicluster-"}}
	g.Expect(s.client.Create(s.ctx, ns)).To(Succeed())
	s.namespace = ns.Name
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	var err error
	s.provider, err = clusters.New(clusters.Options{
		Namespace: s.namespace, HubConfig: c.Config(), Scheme: scheme.Scheme, Fence: clusters.FenceFunc(func(string) error { return nil }),
		Rules: kubeconfig.Rules{AllowedNetworks: memberNetworks}, Kinds: []clusters.Kind{{Object: &corev1.ConfigMap{}}}, Log: log,
	})
	g.Expect(err).NotTo(HaveOccurred())
	local, err := manager.New(c.Config(), manager.Options{
		Scheme: scheme.Scheme, Logger: logr.FromSlogHandler(log.Handler()), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	g.Expect(err).NotTo(HaveOccurred())
	both, err := mcmanager.WithMultiCluster(local, s.provider)
	g.Expect(err).NotTo(HaveOccurred())
	stamps := &stamper{manager: both, seen: map[string]bool{}}
	g.Expect(mcbuilder.ControllerManagedBy(both).Named("stamper").For(&corev1.ConfigMap{}).Complete(stamps)).To(Succeed())

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- both.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()
	asks := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "asks", Annotations: map[string]string{"stamp": "yes"}}}
	g.Expect(s.client.Create(s.ctx, asks)).To(Succeed())
	s.join("a")
	label := func() (string, error) {
		found := &corev1.ConfigMap{}
		err := s.client.Get(s.ctx, client.ObjectKeyFromObject(asks), found)
		return found.Labels["stamped"], err
	}
	g.Eventually(label).Should(Equal("a"), "what was there when the member came")
	g.Expect(s.client.Patch(s.ctx, asks, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"stamped":null}}}`)))).To(Succeed())
	g.Eventually(label).Should(Equal("a"), "and what changed since")
	stamps.mu.Lock()
	defer stamps.mu.Unlock()
	g.Expect(stamps.seen).To(Equal(map[string]bool{"a": true}), "the hub cluster is no member")
}
