package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestOnDemandDroughts has a member with two node groups, each of which the cloud can stop to serve. A node has room for four replicas.
func TestOnDemandDroughts(t *testing.T) {
	fleets.beside(t)
	f := startFleetWith(t, fleet.Options{Members: []string{"one"}, Nodes: fleet.NoNodes})
	h := startHub(t, f, "ondemand-drought", parched)
	m := f.Members[0]

	t.Run("replicas above the floor run on spot while on-demand is dry, and wait where they are while both types are", func(t *testing.T) {
		symmetricSpec(t, h, m)
	})
	t.Run("moves start slowly, and replicas that found no room are taken back", func(t *testing.T) { takenBackSpec(t, h, m) })
	t.Run("a floor that is raised in a drought costs one replica at a time", func(t *testing.T) { raisedFloorSpec(t, h, m) })
}

// droughtGroup starts a node group with so many nodes, which is as many as it may have.
func droughtGroup(t *testing.T, m *fleet.Member, capacity string, nodes int) *kube.NodeGroup {
	t.Helper()
	return runGroup(t, m, kube.NodeGroupSpec{
		Name: capacity, Provider: kube.KarpenterNodes, Capacity: capacity, Min: nodes, Max: nodes, Node: kube.NodeSpec{CPU: "4"}, IdleFor: time.Hour,
	})
}

// dries has the cloud take back the nodes of a group, and bring none until it is asked to.
func (p *placing) dries(group *kube.NodeGroup) {
	p.t.Helper()
	group.SetDry(true)
	p.Expect(p.member.Cluster.RemoveNodes(p.ctx, group.Nodes()...)).To(Succeed())
}

// symmetricSpec loses all on-demand nodes, then fills the spot nodes as well, and gets the on-demand nodes back.
func symmetricSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, percent, floor = 16, 70, 2
	droughtGroup(t, m, kube.Spot, 4)
	onDemand := droughtGroup(t, m, kube.OnDemand, 2)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
	p.exactly(w, replicas, percent, floor)
	history := p.follow(w)

	p.dries(onDemand)
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: replicas - floor, OnDemand: floor, Ready: replicas - floor})).To(Succeed())
	p.Eventually(p.probes).ShouldNot(BeEmpty())
	p.Expect(p.leftReady(history)).To(Equal(5), "replicas that were lost with their nodes; no other that served has left")

	// New replicas go to spot at once, where there is room for two more.
	evicted := len(p.evictions())
	p.Expect(w.Scale(p.ctx, replicas+2)).To(Succeed())
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: replicas, OnDemand: floor, Ready: replicas})).To(Succeed())
	p.moved(evicted)

	p.Expect(w.Scale(p.ctx, replicas+4)).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(p.shown(w)(g).GetExplanation()).To(ContainElement(ContainSubstring("replicas wait")))
	}).Should(Succeed())
	evicted = len(p.evictions())
	p.reconciledAgain(deploymentController, w, 3)
	p.moved(evicted)
	p.Expect(history.Now()).To(Equal(fleet.Mix{Spot: replicas + 2, OnDemand: floor, Ready: replicas}))

	before := len(p.moments(history))
	onDemand.SetDry(false)
	p.mixed(w, replicas+4, percent, floor)
	p.alwaysReady(p.moments(history)[before:], replicas-2)
	p.Eventually(p.probes).Should(BeEmpty())
}

// takenBackSpec wants ten replicas on-demand, where four have room.
func takenBackSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, room = 20, 4
	droughtGroup(t, m, kube.Spot, 5)
	droughtGroup(t, m, kube.OnDemand, 1)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	policy := fleet.Policy(100, 0)
	policy[fleet.Keys.MaxMoves()] = "8"
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, policy)))
	p.exactly(w, replicas, 100, 0)
	history := p.follow(w)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(50, 0))).To(Succeed())
	full := fleet.Mix{Spot: replicas - room, OnDemand: room, Ready: replicas}
	p.Eventually(p.probes).ShouldNot(BeEmpty())
	p.Expect(history.AwaitMix(p.ctx, full)).To(Succeed())
	p.startsSlowly(p.moments(history))
	moved := p.leftReady(history)
	p.reconciledAgain(deploymentController, w, 3)
	p.Expect(p.leftReady(history)).To(Equal(moved), "while on-demand is dry, nothing moves there")
	p.Expect(history.Now()).To(Equal(full))

	names, err := m.Cluster.AddNodes(p.ctx, 2, kube.NodeSpec{Capacity: kube.OnDemand, CPU: "4"})
	p.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { removeNodes(t, m, names) })
	p.mixed(w, replicas, 50, 0)
	p.Eventually(p.probes).Should(BeEmpty())
}

// startsSlowly expects that no more spot replicas have left than one more than twice those that were ready on-demand by then: one,
// then two when it has arrived, then four.
func (p *placing) startsSlowly(moments []fleet.Moment) {
	p.t.Helper()
	left, arrived := 0, 0
	for _, moment := range moments {
		arrived = max(arrived, moment.ReadyOnDemand)
		if moment.Left && moment.WasReady && moment.Capacity == kube.Spot {
			left++
		}
		p.Expect(left).To(BeNumerically("<=", 2*arrived+1), "after a change of pod %s: %s", moment.Pod, moment.Mix)
	}
	p.Expect(left).To(BeNumerically(">", arrived), "a batch went that found no room")
}

// raisedFloorSpec wants a floor of three where there is no on-demand node. What an autoscaler is to bring a node for has to wait for it.
func raisedFloorSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, floor = 10, 3
	droughtGroup(t, m, kube.Spot, 3)
	onDemand := droughtGroup(t, m, kube.OnDemand, 1)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0))))
	p.exactly(w, replicas, 100, 0)
	history := p.follow(w)

	p.dries(onDemand)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(100, floor))).To(Succeed())
	waits := fleet.Mix{Spot: replicas - 1, OnDemand: 1, Ready: replicas - 1}
	p.Expect(history.AwaitMix(p.ctx, waits)).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(p.shown(w)(g).GetExplanation()).To(ContainElement(ContainSubstring("on-demand has had no room")))
	}).Should(Succeed())
	p.reconciledAgain(deploymentController, w, 3)
	p.Expect(history.Now()).To(Equal(waits))

	onDemand.SetDry(false)
	p.mixed(w, replicas, 100, floor)
	p.alwaysReady(p.moments(history), replicas-1)
	p.Eventually(p.probes).Should(BeEmpty())
}
