package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestReconcilersOnARealAPIServer(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "reconcile", Minimal: true})
	t.Run("a kind that is missing in one member joins later, without a restart", func(t *testing.T) { missingKindSpec(t, c) })
	t.Run("a member that hangs on one kind delays nobody, and joins when it answers", func(t *testing.T) { hungKindSpec(t, c) })
	t.Run("a member that hangs costs the others nothing", func(t *testing.T) { hungMemberSpec(t, c) })
	t.Run("events behind a hold run when it is released, without a list", func(t *testing.T) { holdSpec(t, c) })
	t.Run("keys of a replica without the Lease wait, and run when it has it, without a list", func(t *testing.T) { leaseHoldSpec(t, c) })
	t.Run("a kubeconfig that is replaced lists again and keeps accepted orders", func(t *testing.T) { replacedMemberSpec(t, c) })
	t.Run("Events are in the member, once for the same thing", func(t *testing.T) { eventSpec(t, c) })
}

// reconcileSite is a provider of members and the controllers that work in them.
type reconcileSite struct {
	*memberSite
	runtime *reconcile.Runtime
}

// newReconcileSite makes a runtime, has build register controllers, and starts everything.
func newReconcileSite(t *testing.T, c *kube.Cluster, build func(s *reconcileSite)) *reconcileSite {
	t.Helper()
	return newReconcileSiteOf(t, c, scheme.Scheme, build)
}

// newReconcileSiteOf does so for the kinds of a scheme.
func newReconcileSiteOf(t *testing.T, c *kube.Cluster, kinds *runtime.Scheme, build func(s *reconcileSite)) *reconcileSite {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(memberPatience)
	s := &reconcileSite{memberSite: &memberSite{t: t, g: g, ctx: t.Context(), cluster: c, client: c.Client(),
		metrics: prometheus.NewRegistry(), log: &fleet.LogBuffer{}}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "reconcile-"}}
	g.Expect(s.client.Create(s.ctx, ns)).To(Succeed())
	s.namespace = ns.Name
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	var err error
	s.runtime, err = reconcile.NewRuntime(reconcile.Options{Log: log, Registerer: s.metrics, Deadline: time.Minute, Scheme: kinds})
	g.Expect(err).NotTo(HaveOccurred())
	build(s)
	s.provider, err = clusters.New(clusters.Options{
		Namespace: s.namespace, HubConfig: c.Config(), Scheme: kinds,
		Fence:         clusters.FenceFunc(func(string) error { return nil }),
		Rules:         kubeconfig.Rules{AllowedNetworks: memberNetworks},
		ProbeInterval: time.Second, ProbeTimeout: 2 * time.Second, WarmTimeout: 3 * time.Second,
		RetryMin: 50 * time.Millisecond, RetryMax: time.Second,
		Log: log, Registerer: s.metrics,
	})
	g.Expect(err).NotTo(HaveOccurred())
	var aware controllers
	for _, controller := range s.runtime.Controllers() {
		g.Expect(s.provider.AddKinds(controller.Kinds()...)).To(Succeed())
		aware = append(aware, controller)
		s.run(controller.Start)
	}
	s.run(func(ctx context.Context) error { return s.provider.Start(ctx, aware) })
	return s
}

// controllers are notified about members as a manager does it.
type controllers []*reconcile.Controller

func (cs controllers) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	for _, c := range cs {
		if err := c.Engage(ctx, name, cl); err != nil {
			return err
		}
	}
	return nil
}

// join registers a member behind a proxy of its own.
func (s *reconcileSite) join(name string) *kube.Proxy {
	s.t.Helper()
	proxy := s.proxy(s.namespace + "-" + name)
	s.register(name, s.kubeconfig(proxy))
	return proxy
}

// configMap creates an object of the kind that the controllers of these specs reconcile.
func (s *reconcileSite) configMap(name string) {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.g.Expect(s.client.Create(s.ctx, cm)).To(Succeed())
}

func (s *reconcileSite) key(controller, member, name string) reconcile.Key {
	return reconcile.Key{Controller: controller, Member: member,
		NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name}}
}

// record is what the ledger knows of an object in a member; nothing, if its key is not there.
func (s *reconcileSite) record(controller, member, name string) reconcile.Record {
	r, _ := s.runtime.Lookup(s.key(controller, member, name))
	return r
}

func (s *reconcileSite) state(controller, member, name string) func() reconcile.State {
	return func() reconcile.State { return s.record(controller, member, name).State }
}

// configMaps is a reconciler made of a function.
type configMaps func(ctx context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error)

func (f configMaps) Reconcile(ctx context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	return f(ctx, req)
}

var satisfied = configMaps(func(context.Context, reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	return reconcile.Done(), nil
})

func (s *reconcileSite) mustRegister(_ *reconcile.Controller, err error) {
	s.t.Helper()
	s.g.Expect(err).NotTo(HaveOccurred())
}

func missingKindSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		s.mustRegister(reconcile.For(s.runtime, "plain", satisfied).Register())
		s.mustRegister(reconcile.For(s.runtime, "owning", satisfied).Owns(clusters.Kind{Object: &appsv1.Deployment{}}).Register())
	})
	var missing atomic.Bool
	missing.Store(true)
	lean, err := kube.NewProxy(c, kube.ProxyOptions{Name: "lean", ClusterUID: s.namespace + "-lean", Intercept: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if missing.Load() && strings.HasPrefix(r.URL.Path, "/apis/apps") {
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	s.g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(lean.Close)
	s.register("lean", s.kubeconfig(lean))
	s.join("whole")
	s.configMap("one")
	s.g.Eventually(s.state("owning", "whole", "one")).Should(Equal(reconcile.StateIdle))
	s.g.Eventually(s.state("plain", "lean", "one")).Should(Equal(reconcile.StateIdle), "a controller that does not need the kind works")
	s.g.Eventually(s.memberSite.state("lean")).Should(HavePrefix("Degraded/"))
	s.g.Expect(s.state("owning", "lean", "one")()).To(BeEmpty())

	before := s.record("owning", "whole", "one").Runs
	missing.Store(false)
	s.g.Eventually(s.state("owning", "lean", "one")).Should(Equal(reconcile.StateIdle))
	s.g.Eventually(s.memberSite.state("lean")).Should(Equal("Ready/Ready"))
	s.g.Expect(s.record("owning", "whole", "one").Runs).To(BeNumerically(">=", before), "the other member was not started again")
}

func hungKindSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		s.mustRegister(reconcile.For(s.runtime, "c", satisfied).Uses(clusters.Kind{Object: &corev1.Service{}}).Register())
	})
	hung := s.proxy(s.namespace + "-hung")
	hung.Hang(lists("services"))
	s.register("hung", s.kubeconfig(hung))
	s.g.Eventually(s.memberSite.state("hung")).Should(Equal("Degraded/KindsMissing"))
	s.join("healthy")
	s.configMap("one")
	s.g.Eventually(s.state("c", "healthy", "one")).Should(Equal(reconcile.StateIdle))
	s.g.Expect(s.state("c", "hung", "one")()).To(BeEmpty())
	s.g.Expect(hung.Restore()).To(Succeed())
	s.g.Eventually(s.state("c", "hung", "one")).Should(Equal(reconcile.StateIdle))
}

func hungMemberSpec(t *testing.T, c *kube.Cluster) {
	var asked sync.Map // members whose API server was asked
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		live := configMaps(func(ctx context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
			asked.Store(req.Member, true)
			return reconcile.Done(), req.Live.Get(ctx, client.ObjectKeyFromObject(req.Object), &corev1.ConfigMap{})
		})
		s.mustRegister(reconcile.For(s.runtime, "c", live).Register())
	})
	hung := s.join("hung")
	s.join("healthy")
	s.awaitReady("hung")
	s.awaitReady("healthy")
	isObject := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/configmaps/") }
	hung.Hang(isObject)
	const objects = 30 // more than all workers that one member may have
	for i := range objects {
		s.configMap(fmt.Sprint("object-", i))
	}
	s.g.Eventually(func() int {
		var running int
		for r := range s.runtime.Records("hung") {
			if r.State == reconcile.StateRunning {
				running++
			}
		}
		return running
	}).Should(Equal(5), "as many as a controller may run in one member")
	for i := range objects {
		s.g.Eventually(s.state("c", "healthy", fmt.Sprint("object-", i))).Should(Equal(reconcile.StateIdle))
	}
	var finished int
	for r := range s.runtime.Records("hung") {
		if r.LastOutcome == reconcile.OutcomeDone && strings.HasPrefix(r.Key.Name, "object-") {
			finished++
		}
	}
	s.g.Expect(finished).To(BeZero(), "the healthy member was done before the hung one gave a single answer")
	s.g.Expect(hung.Restore()).To(Succeed())
	for i := range objects {
		s.g.Eventually(s.state("c", "hung", fmt.Sprint("object-", i))).Should(Equal(reconcile.StateIdle))
	}
}

func holdSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		s.runtime.Decide(reconcile.HoldOwnership, func(string) string { return "owned by another replica" })
		s.mustRegister(reconcile.For(s.runtime, "c", satisfied).Register())
	})
	s.join("a")
	s.configMap("before")
	s.g.Eventually(s.state("c", "a", "before")).Should(Equal(reconcile.StateHeld))
	s.configMap("behind-the-hold")
	s.g.Eventually(s.state("c", "a", "behind-the-hold")).Should(Equal(reconcile.StateHeld))
	s.g.Expect(s.record("c", "a", "before").Runs).To(BeZero())

	mark, err := c.Audit().Mark()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.runtime.Decide(reconcile.HoldOwnership, func(string) string { return "" })
	for _, name := range []string{"before", "behind-the-hold"} {
		s.g.Eventually(s.state("c", "a", name)).Should(Equal(reconcile.StateIdle))
	}
	s.runtime.Decide(reconcile.HoldOwnership, func(string) string { return "handing over" })
	s.g.Expect(s.runtime.Drain(s.ctx)).To(Succeed())
	listed, err := c.Audit().Since(mark, kube.Lists, kube.OnResource("configmaps"))
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(listed).To(BeEmpty())
	s.configMap("after-the-hand-over")
	s.g.Eventually(s.state("c", "a", "after-the-hand-over")).Should(Equal(reconcile.StateHeld))
}

func replacedMemberSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		s.mustRegister(reconcile.For(s.runtime, "c", satisfied).Register())
	})
	s.join("a")
	s.configMap("one")
	s.g.Eventually(s.state("c", "a", "one")).Should(Equal(reconcile.StateIdle))
	first, _ := s.provider.Member("a")
	s.runtime.Hold("a", reconcile.HoldBreaker, "for this test")
	operation, err := s.runtime.Requeue(s.key("c", "a", "one"))
	s.g.Expect(err).NotTo(HaveOccurred())

	s.register("a", s.kubeconfig(s.proxy(s.namespace+"-a"))) // another address: a second member is warmed and swapped in
	s.g.Eventually(func() bool {
		member, ok := s.provider.Member("a")
		return ok && member != first
	}).Should(BeTrue())
	s.g.Eventually(func() reconcile.Record { return s.record("c", "a", "one") }).Should(
		And(HaveField("State", reconcile.StateHeld), HaveField("Runs", BeZero())), "the new member's record is new")
	s.runtime.Release("a", reconcile.HoldBreaker)
	ctx, cancel := context.WithTimeout(s.ctx, memberPatience)
	defer cancel()
	operation, err = s.runtime.Wait(ctx, operation.ID)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(operation.Record.LastOutcome).To(Equal(reconcile.OutcomeDone))
	s.configMap("two")
	s.g.Eventually(s.state("c", "a", "two")).Should(Equal(reconcile.StateIdle))
}

// nodeGreeter is a reconciler of a kind without namespaces.
type nodeGreeter struct{}

func (nodeGreeter) Reconcile(_ context.Context, req reconcile.Request[*corev1.Node]) (reconcile.Result, error) {
	req.Events.Normal("Greeted", "hello %s", req.Object.Name)
	return reconcile.Done(), nil
}

func eventSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		s.mustRegister(reconcile.For(s.runtime, "c", configMaps(
			func(_ context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
				req.Events.Warning("BadPolicy", "%s is %d", req.Object.Name, 120)
				return reconcile.Done(), nil
			})).Register())
		s.mustRegister(reconcile.For[*corev1.Node](s.runtime, "nodes", nodeGreeter{}).Register())
	})
	s.join("a")
	s.configMap("one")
	events := func(namespace, kind, name string) func() ([]corev1.Event, error) {
		return func() (found []corev1.Event, err error) {
			var list corev1.EventList
			err = s.client.List(s.ctx, &list, client.InNamespace(namespace))
			for _, e := range list.Items {
				if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
					found = append(found, e)
				}
			}
			return found, err
		}
	}
	s.g.Eventually(events(s.namespace, "ConfigMap", "one")).Should(HaveLen(1))
	for range 3 {
		operation, err := s.runtime.Requeue(s.key("c", "a", "one"))
		s.g.Expect(err).NotTo(HaveOccurred())
		_, err = s.runtime.Wait(s.ctx, operation.ID)
		s.g.Expect(err).NotTo(HaveOccurred())
	}
	s.configMap("two")
	s.g.Eventually(events(s.namespace, "ConfigMap", "two")).Should(HaveLen(1), "sent after all that is to come about the first")
	found, err := events(s.namespace, "ConfigMap", "one")()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(found).To(HaveLen(1))
	s.g.Expect(found[0].Message).To(Equal("one is 120"))
	s.g.Expect(found[0].Source.Component).To(Equal("plimsoll/c"))

	node := "greeted-" + s.namespace
	s.g.Expect(s.client.Create(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
	s.g.Eventually(events("default", "Node", node)).Should(HaveLen(1))
}
