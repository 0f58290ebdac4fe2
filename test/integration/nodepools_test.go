package integration

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// reserved is a capacity type that Karpenter's nodes can have; it counts as on-demand.
const reserved = "reserved"

// reservedPool can have reserved capacity, and has no node.
var reservedPool = kube.NodePool{Name: "reserved", Capacity: []string{reserved, kube.OnDemand}}

// TestReservedNodePools has members with Karpenter's kinds, and nodes with its label of which none is reserved. In one of them the hub
// may not list NodePools.
func TestReservedNodePools(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "pools", "blind")
	seen, blind := f.Members[0], f.Members[1]
	for _, m := range f.Members {
		g := NewWithT(t)
		g.Expect(m.Cluster.InstallKarpenterKinds(t.Context())).To(Succeed())
		g.Expect(m.Cluster.AddNodePool(t.Context(), reservedPool)).To(Succeed())
	}
	withoutNodePools(t, blind)
	h := startHub(t, f, "node-pools")
	t.Run("reserved capacity of a NodePool counts as on-demand before its first node, until the pool goes", func(t *testing.T) {
		specs.beside(t)
		reservedPoolSpec(place(t, h, seen, fleet.Enabled()))
	})
	t.Run("who may not list NodePools uses it with its first node, and lacks nothing else", func(t *testing.T) {
		specs.beside(t)
		blindPoolSpec(place(t, h, blind, fleet.Enabled()))
	})
}

// withoutNodePools takes the right to list NodePools from the hub.
func withoutNodePools(t *testing.T, m *fleet.Member) {
	t.Helper()
	g := NewWithT(t)
	var role rbacv1.ClusterRole
	g.Expect(m.Client().Get(t.Context(), client.ObjectKey{Name: "plimsoll-hub"}, &role)).To(Succeed())
	before := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "nodepools") })
	g.Expect(role.Rules).To(HaveLen(before - 1))
	g.Expect(m.Client().Update(t.Context(), &role)).To(Succeed())
}

const (
	selectsOnDemand = "the nodeSelector karpenter.sh/capacity-type=on-demand"
	takesReserved   = "required node affinity: karpenter.sh/capacity-type In (on-demand, reserved)"
)

// steers waits until on-demand pods of the workload's member are steered in a way, by what is said of it.
func (p *placing) steers(w *fleet.Workload, way string) {
	p.t.Helper()
	p.Eventually(func(g Gomega) {
		g.Expect(p.shown(w)(g).GetExplanation()).To(ContainElement(ContainSubstring("on-demand pods by " + way)))
	}).Should(Succeed())
}

// requires are the values of the capacity label that a pod asks for by required node affinity.
func requires(pod *corev1.Pod) []string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var values []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == kube.CapacityLabel {
				values = append(values, expression.Values...)
			}
		}
	}
	return values
}

// asksFor expects how each on-demand pod of a workload asks for its nodes: by a nodeSelector, or by an affinity that takes reserved ones.
func (p *placing) asksFor(w *fleet.Workload, byAffinity bool) {
	p.t.Helper()
	for _, pod := range p.pods(w) {
		capacity, err := p.member.CapacityOf(p.ctx, &pod)
		p.Expect(err).NotTo(HaveOccurred())
		switch {
		case capacity == kube.Spot:
			p.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue(kube.CapacityLabel, kube.Spot), "pod %s", pod.Name)
		case byAffinity:
			p.Expect(pod.Spec.NodeSelector).NotTo(HaveKey(kube.CapacityLabel), "pod %s", pod.Name)
			p.Expect(requires(&pod)).To(ConsistOf(kube.OnDemand, reserved), "pod %s", pod.Name)
		default:
			p.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue(kube.CapacityLabel, kube.OnDemand), "pod %s", pod.Name)
			p.Expect(requires(&pod)).To(BeEmpty(), "pod %s", pod.Name)
		}
	}
}

func reservedPoolSpec(p *placing) {
	const replicas, percent, floor = 10, 70, 1
	early := p.create(fleet.Deployment(p.namespace, "early", 0, fleet.Policy(percent, floor)))
	p.steers(early, takesReserved)
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	p.asksFor(w, true)

	p.Expect(p.member.Cluster.RemoveNodePool(p.ctx, reservedPool.Name)).To(Succeed())
	p.steers(early, selectsOnDemand)
	later := p.create(fleet.Deployment(p.namespace, "later", replicas, fleet.Policy(percent, floor)))
	p.exactly(later, replicas, percent, floor)
	p.asksFor(later, false)
	p.asksFor(w, true) // pods that exist keep what they have
}

func blindPoolSpec(p *placing) {
	const replicas, percent, floor = 10, 50, 1
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.Eventually(func() int { return p.hub.log.count("NodePools cannot be read", `"blind"`) }).Should(Equal(1))
	p.exactly(w, replicas, percent, floor)
	p.asksFor(w, false)
	p.Expect(p.hub.AwaitMembers(p.ctx, p.member)).To(Succeed(), "the member is Ready")

	_, err := p.member.Cluster.AddNodes(p.ctx, 1, kube.NodeSpec{Capacity: reserved})
	p.Expect(err).NotTo(HaveOccurred())
	p.steers(w, takesReserved)
	_, err = p.member.TakeAway(p.ctx, kube.OnDemand)
	p.Expect(err).NotTo(HaveOccurred())
	p.mixed(w, replicas, percent, floor)
	p.asksFor(w, true)
}
