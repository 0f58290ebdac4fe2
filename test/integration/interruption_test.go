package integration

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// disrupted is how AWS Node Termination Handler says that a node goes within two minutes.
var disrupted = corev1.Taint{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectNoSchedule}

// hurried are settings with shut windows and long cool-downs: an interruption waits for neither.
var hurried = fleet.Settings{
	"spot.moveCooldown": "1h", "spot.defaults.disruptionSchedule": "0 0 29 2 *", "spot.defaults.disruptionDuration": "1m",
}

// TestInterruptions says of nodes that they go, and takes one away without a word.
func TestInterruptions(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "interruption", hurried)
	m := f.Members[0]
	t.Run("the replicas of a node that goes are replaced under their disruption budget", func(t *testing.T) { noticeSpec(t, h, m, fleet.Policy(100, 0)) })
	t.Run("so are those that are released, and none is missing meanwhile", func(t *testing.T) {
		policy := fleet.Policy(100, 0)
		policy[fleet.Keys.Strategy()] = "release"
		noticeSpec(t, h, m, policy)
	})
	t.Run("a notice that is taken back leaves the replicas alone", func(t *testing.T) { falseAlarmSpec(t, h, m) })
	t.Run("a node that just vanishes is one that has gone", func(t *testing.T) { vanishedSpec(t, h, m) })
	t.Run("a hub that is gone once some are released is taken over from, under a budget in percent", func(t *testing.T) {
		noticeRestartSpec(t, h, f)
	})
}

func noticeSpec(t *testing.T, h *insideHub, m *fleet.Member, policy map[string]string) {
	const replicas, missing = 20, 3
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, policy))
	p.placed(w, replicas, 100, 0)
	p.budget(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(missing))}, replicas)
	node := p.pods(w)[0].Spec.NodeName
	interrupted := p.onNode(w, node)
	history := p.follow(w)

	p.Expect(m.Cluster.TaintNodes(p.ctx, disrupted, node)).To(Succeed())
	p.t.Cleanup(func() { _ = m.Cluster.UntaintNodes(context.Background(), disrupted.Key, node) })
	p.Eventually(func() int { return p.onNode(w, node) }).Should(BeZero())
	p.mixed(w, replicas, 100, 0)
	p.Expect(m.Cluster.UntaintNodes(p.ctx, disrupted.Key, node)).To(Succeed())

	least := replicas - missing
	if policy[fleet.Keys.Strategy()] == "release" {
		least = replicas
	}
	evicted := map[string]bool{} // an eviction that is not answered in time may be done all the same, or is asked for again
	for _, eviction := range p.audited(kube.EvictionAttempts, fleet.ByHub) {
		evicted[eviction.Name] = true
	}
	if p.unsure() == 0 { // else a replacement may have started on-demand, and was evicted as well
		p.Expect(evicted).To(HaveLen(interrupted))
	}
	for _, moment := range p.moments(history) {
		p.Expect(moment.Mix.Ready).To(BeNumerically(">=", least), "after a change of pod %s: %s", moment.Pod, moment.Mix)
	}
}

// noticeRestartSpec ends the hub after the first release; another one goes on.
func noticeRestartSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	// On a busy machine an API server may end an eviction between its entry in the budget and the deletion. Kubernetes counts
	// the pod as disrupted for two minutes then, and the budget allows no other.
	const replicas, budgetRecovers = 12, 5 * time.Minute
	m := f.Members[0]
	p := placeFor(t, h, m, fleet.Enabled(), 2*budgetRecovers)
	policy := fleet.Policy(100, 0)
	policy[fleet.Keys.Strategy()] = "release"
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, policy))
	p.placed(w, replicas, 100, 0)
	p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, replicas)
	node := p.pods(w)[0].Spec.NodeName
	history := p.follow(w)

	p.Expect(m.Cluster.TaintNodes(p.ctx, disrupted, node)).To(Succeed())
	p.t.Cleanup(func() { _ = m.Cluster.UntaintNodes(context.Background(), disrupted.Key, node) })
	p.Eventually(func() []string { return p.released(w) }).WithPolling(0).ShouldNot(BeEmpty())
	h.stop(t)
	p.hub = startHub(t, f, "interruption-restarted", hurried)
	p.Eventually(func() int { return p.onNode(w, node) }).Should(BeZero())
	p.Eventually(func() []string { return p.released(w) }).Should(BeEmpty())
	p.ready(w, replicas)
	p.alwaysReady(p.moments(history), replicas)
}

func falseAlarmSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas = 10
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0)))
	p.exactly(w, replicas, 100, 0)
	budget := p.budget(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))}, replicas)
	node := p.pods(w)[0].Spec.NodeName

	p.Expect(m.Cluster.TaintNodes(p.ctx, disrupted, node)).To(Succeed())
	p.Eventually(p.reason(w)).Should(ContainSubstring("on nodes being terminated"))
	p.Expect(m.Cluster.UntaintNodes(p.ctx, disrupted.Key, node)).To(Succeed())
	p.settle(w, replicas)

	p.Expect(p.member.Client().Delete(p.ctx, budget)).To(Succeed())
	p.reconciledAgain(deploymentController, w, 2)
	p.Expect(p.evictions()).To(BeEmpty())
}

func vanishedSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas = 10
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0)))
	p.exactly(w, replicas, 100, 0)
	node := p.pods(w)[0].Spec.NodeName
	lost := p.onNode(w, node)

	p.Expect(m.Client().Delete(p.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
	p.t.Cleanup(func() {
		_, _ = m.Cluster.AddNodes(context.Background(), 1, kube.NodeSpec{Capacity: kube.Spot, Pods: 250})
	})
	p.Eventually(func() int { return len(p.audited(kube.Evictions, fleet.ByHub)) }).Should(Equal(lost))
	p.mixed(w, replicas, 100, 0) // when Kubernetes has taken the last traces of its pods away
	p.Expect(p.audited(kube.Evictions, fleet.ByHub)).To(HaveLen(lost))
}

// onNode counts the pods of a workload that are on a node and stay there.
func (p *placing) onNode(w *fleet.Workload, node string) int {
	p.t.Helper()
	n := 0
	for _, pod := range p.pods(w) {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// budget makes a disruption budget for the workload web, and waits until it counts so many healthy pods.
func (p *placing) budget(spec policyv1.PodDisruptionBudgetSpec, healthy int) *policyv1.PodDisruptionBudget {
	p.t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: "web"}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"}, Spec: spec}
	p.Expect(p.member.Client().Create(p.ctx, budget)).To(Succeed())
	p.Eventually(func() (int32, error) {
		err := p.member.Client().Get(p.ctx, client.ObjectKeyFromObject(budget), budget)
		return budget.Status.CurrentHealthy, err
	}).Should(BeEquivalentTo(healthy))
	return budget
}

// reason reads what the hub says of a workload.
func (p *placing) reason(w *fleet.Workload) func() (string, error) {
	return func() (string, error) {
		known, err := p.hub.Workload(p.ctx, w)
		return known.GetPlacement().GetReason(), err
	}
}
