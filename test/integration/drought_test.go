package integration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// parched are settings with which a drought is found out, and found to be over, within moments.
var parched = fleet.Settings{
	"spot.pendingTimeout": "8s", "spot.probe.firstAfter": "2s", "spot.probe.atMostAfter": "4s", "spot.probe.timeout": "6s", "spot.nodeStartTimeout": "8s",
}

// TestDroughts takes spot nodes away and gives them back.
func TestDroughts(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "drought", parched)
	m := f.Members[0]

	t.Run("spot replicas are replaced on-demand, and come back after a probe was bound, without a ready one evicted to find out", func(t *testing.T) {
		droughtSpec(t, h, m, fleet.Policy(70, 1), 9)
	})
	t.Run("so do those that are released, and none is missing on the way back", func(t *testing.T) {
		policy := fleet.Policy(70, 1)
		policy[fleet.Keys.Strategy()] = "release"
		droughtSpec(t, h, m, policy, 10)
	})
	t.Run("ordinals of a StatefulSet are replaced and come back one at a time", func(t *testing.T) { ordinalDroughtSpec(t, h, m) })
	t.Run("a pod that finds a node at the last moment is not evicted", func(t *testing.T) { boundMeanwhileSpec(t, h, m) })
	t.Run("a pod that no spot node could ever take speaks for no other", func(t *testing.T) { impossibleSpec(t, h, m) })
	t.Run("a hub that starts in the middle of a drought knows of it", func(t *testing.T) { droughtRestartSpec(t, h, f) })
}

// droughtSpec has ten replicas with a policy of 70 % and a floor of one, of which at least so many serve on the way back.
func droughtSpec(t *testing.T, h *insideHub, m *fleet.Member, policy map[string]string, least int) {
	const replicas, percent, floor = 10, 70, 1
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, policy))
	p.exactly(w, replicas, percent, floor)
	history := p.follow(w)
	p.drain(replicas, w)

	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{OnDemand: replicas, Ready: replicas})).To(Succeed())
	gone := p.leftReady(history)
	before := len(p.moments(history))
	p.giveBack()
	p.mixed(w, replicas, percent, floor)
	p.Eventually(p.probes).Should(BeEmpty())
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: 7, OnDemand: 3, Ready: replicas})).To(Succeed())
	p.Expect(p.leftReady(history)-gone).To(Equal(7), "replicas that were moved back") // and none but these
	p.alwaysReady(p.moments(history)[before:], least)
}

// alwaysReady expects that many ready replicas at every moment.
func (p *placing) alwaysReady(moments []fleet.Moment, least int) {
	p.t.Helper()
	for _, moment := range moments {
		p.Expect(moment.Mix.Ready).To(BeNumerically(">=", least), "after a change of pod %s: %s", moment.Pod, moment.Mix)
	}
}

// ordinalDroughtSpec has a StatefulSet whose controller starts an ordinal when those before it are ready.
func ordinalDroughtSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, percent, floor = 4, 75, 1
	p := place(t, h, m, fleet.Enabled())
	set := fleet.StatefulSet(p.namespace, "db", replicas, fleet.Policy(percent, floor))
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	set.Annotations[fleet.Keys.PendingTimeout()] = "9s"
	w := p.create(set)
	p.exactly(w, replicas, percent, floor)
	history := p.follow(w)
	p.drain(replicas, w)
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{OnDemand: replicas, Ready: replicas})).To(Succeed())
	// Before that, three are lost at once: which of them the StatefulSet's controller makes first, and whether it makes a second one
	// before it has seen that the first is gone, is its own affair.
	drained := len(p.moments(history))

	p.giveBack()
	p.mixed(w, replicas, percent, floor)
	p.alwaysReady(p.moments(history)[drained:], replicas-1)
	var names []string
	for _, pod := range p.pods(w) {
		names = append(names, pod.Name)
	}
	p.Expect(names).To(ConsistOf("db-0", "db-1", "db-2", "db-3"))
	p.Eventually(p.probes).Should(BeEmpty())
}

// boundMeanwhileSpec has a hub that still sees pods wait for spot capacity which the scheduler has bound already: what it
// evicts for the drought must be the pod that it has seen, to the version.
func boundMeanwhileSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas = 3
	p := place(t, h, m, fleet.Enabled())
	p.takeAway()
	deployment := fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0))
	deployment.Annotations[fleet.Keys.PendingTimeout()] = "40s"
	w := p.create(deployment)
	p.Eventually(p.unschedulable(w)).Should(Equal(replicas))
	p.Eventually(func(g Gomega) { g.Expect(p.shown(w)(g).GetPods()).To(HaveLen(replicas)) }).Should(Succeed())
	p.reconciledAgain(deploymentController, w, 1) // and so the hub has seen the scheduler's word

	m.Proxy.DelayWatches(10 * time.Minute)
	t.Cleanup(func() { m.Proxy.DelayWatches(0) })
	p.giveBack()
	p.Expect(w.AwaitMix(p.ctx, replicas, 0)).To(Succeed())
	if len(p.audited(kube.EvictionAttempts)) > 0 {
		t.Skip("the machine took longer to bind the pods than they may wait")
	}
	p.Eventually(func() []kube.AuditEvent {
		return p.audited(kube.EvictionAttempts, fleet.ByHub, func(e kube.AuditEvent) bool { return e.Code == http.StatusConflict })
	}).ShouldNot(BeEmpty())
	m.Proxy.DelayWatches(0)
	p.settle(w, replicas)
	p.Eventually(p.probes).Should(BeEmpty())
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(w.Mix(p.ctx)).To(Equal(fleet.Mix{Spot: replicas, Ready: replicas}))
}

// unschedulable counts the pods of a workload for which the scheduler has found no node.
func (p *placing) unschedulable(w *fleet.Workload) func() int {
	return func() int {
		n := 0
		for _, pod := range p.pods(w) {
			for _, condition := range pod.Status.Conditions {
				if condition.Reason == corev1.PodReasonUnschedulable && pod.Spec.NodeName == "" {
					n++
				}
			}
		}
		return n
	}
}

// drain takes the spot nodes away and waits until all replicas are ready on-demand, and a probe looks for spot capacity.
func (p *placing) drain(replicas int, w *fleet.Workload) {
	p.t.Helper()
	evicted := len(p.evictions())
	p.takeAway()
	p.Expect(w.AwaitMix(p.ctx, 0, replicas)).To(Succeed())
	p.Eventually(p.probes).ShouldNot(BeEmpty())
	p.Expect(len(p.evictions())-evicted).To(BeNumerically(">", 0), "pods that waited for spot were evicted")
	p.Expect(p.audited(fleet.ByHub, kube.ByVerb("delete", "deletecollection"))).To(BeEmpty())
}

// impossibleSpec has a workload that asks for more than any node has beside one that does not.
func impossibleSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	p := place(t, h, m, fleet.Enabled())
	impossible := fleet.Deployment(p.namespace, "huge", 2, fleet.Policy(100, 0))
	impossible.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/gpu": "true"}
	huge := p.create(impossible)
	web := p.create(fleet.Deployment(p.namespace, "web", 10, fleet.Policy(70, 1)))
	p.placed(web, 10, 70, 1)

	p.Eventually(p.probes).ShouldNot(BeEmpty())
	p.Eventually(func() (fleet.Mix, error) { return huge.Mix(p.ctx) }).Should(Equal(fleet.Mix{OnDemand: 2}))
	p.Expect(web.Scale(p.ctx, 20)).To(Succeed())
	p.decided(web, fleet.Mix{Spot: 14, OnDemand: 6, Ready: 20})

	p.Expect(huge.Delete(p.ctx)).To(Succeed())
	p.Eventually(p.probes).Should(BeEmpty())
}

func droughtRestartSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	const replicas, percent, floor = 10, 70, 1
	p := place(t, h, f.Members[0], fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	p.drain(replicas, w)
	h.stop(t)
	before := p.probes()

	p.delayReplicaSets()
	p.hub = startHub(t, f, "drought-restarted", parched)
	evicted := len(p.evictions())
	p.Expect(w.Scale(p.ctx, replicas+4)).To(Succeed())
	p.Expect(p.ready(w, replicas+4)).To(Equal(fleet.Mix{OnDemand: replicas + 4, Ready: replicas + 4}))
	p.moved(evicted) // none: new pods went on-demand at once
	p.Expect(before).NotTo(BeEmpty())

	p.giveBack()
	p.mixed(w, replicas+4, percent, floor)
	p.Eventually(p.probes).Should(BeEmpty())
}

// delayReplicaSets lets the next hub list no ReplicaSets before it has done something about a probe: until then it does not know what bound pods ask for.
func (p *placing) delayReplicaSets() {
	p.t.Helper()
	mark, err := p.member.Cluster.Audit().Mark()
	p.Expect(err).NotTo(HaveOccurred())
	p.member.Proxy.Hang(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/replicasets") })
	acted := make(chan error, 1)
	go func() {
		err := fleet.Await(p.ctx, "the hub's first write to a probe", func(context.Context) (bool, error) {
			writes, err := p.member.Cluster.Audit().Since(mark, fleet.ByHub, kube.Writes, kube.InNamespace(fleet.Namespace), kube.OnResource("pods"))
			return len(writes) > 0, err
		})
		acted <- errors.Join(err, p.member.Proxy.Restore())
	}()
	p.t.Cleanup(func() {
		if err := <-acted; err != nil {
			p.t.Error(err)
		}
	})
}

// takeAway removes the spot nodes, and gives them back with the spec's end if nobody has.
func (p *placing) takeAway() {
	p.t.Helper()
	_, err := p.member.TakeAway(p.ctx, kube.Spot)
	p.Expect(err).NotTo(HaveOccurred())
	p.t.Cleanup(func() {
		if nodes, err := p.member.NodesOf(context.Background(), kube.Spot); err == nil && len(nodes) == 0 {
			p.giveBack()
		}
	})
}

// giveBack adds spot nodes.
func (p *placing) giveBack() {
	p.t.Helper()
	_, err := p.member.Cluster.AddNodes(context.Background(), 3, kube.NodeSpec{Capacity: kube.Spot, Pods: 250})
	p.Expect(err).NotTo(HaveOccurred())
}

// probes are the names of the pods in Plimsoll's own namespace of the member.
func (p *placing) probes() []string {
	p.t.Helper()
	var list corev1.PodList
	p.Expect(p.member.Client().List(p.ctx, &list, client.InNamespace(fleet.Namespace))).To(Succeed())
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// leftReady counts the pods that were ready when they left.
func (p *placing) leftReady(history *fleet.History) int {
	p.t.Helper()
	n := 0
	for _, moment := range p.moments(history) {
		if moment.Left && moment.WasReady {
			n++
		}
	}
	return n
}
