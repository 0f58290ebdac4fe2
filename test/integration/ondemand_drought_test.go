package integration

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestOnDemandDroughts takes on-demand nodes away, or lets a capacity type have room for the replicas that are there and no more.
func TestOnDemandDroughts(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "on-demand-drought", parched)
	m := f.Members[0]

	t.Run("replicas above the floor run on spot, the floor waits and says why, and both come back", func(t *testing.T) {
		onDemandDroughtSpec(t, h, m)
	})
	t.Run("a batch that on-demand has no room for is taken back", func(t *testing.T) { takenBackSpec(t, h, m, kube.OnDemand, 70, 30) })
	t.Run("so is one that spot has no room for", func(t *testing.T) { takenBackSpec(t, h, m, kube.Spot, 30, 70) })
}

// onDemandDroughtSpec has on-demand lose all of its nodes while spot has room.
func onDemandDroughtSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, percent, floor = 10, 50, 2
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	history := p.follow(w)
	p.leave(kube.OnDemand, 0)

	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: replicas - floor, OnDemand: floor, Ready: replicas - floor})).To(Succeed())
	lost := p.leftReady(history)
	p.Expect(w.Scale(p.ctx, replicas+4)).To(Succeed())
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: replicas + 4 - floor, OnDemand: floor, Ready: replicas + 4 - floor})).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(p.shown(w)(g).GetExplanation()).To(ContainElement(And(
			ContainSubstring("on-demand has had no room"), ContainSubstring("new replicas above the floor of 2 go to spot"))))
	}).Should(Succeed())
	p.Expect(p.leftReady(history)).To(Equal(lost), "nothing that serves was moved to find out")

	p.restock(kube.OnDemand, 250)
	p.mended(w, replicas+4, percent, floor)
	p.Eventually(p.probes).Should(BeEmpty())
}

// takenBackSpec changes the share of a workload while the capacity type that replicas should move to is full.
func takenBackSpec(t *testing.T, h *insideHub, m *fleet.Member, full string, before, after int) {
	const replicas, floor = 10, 1
	p := place(t, h, m, fleet.Enabled())
	spot, onDemand := fleet.Want(replicas, before, floor)
	p.leave(full, map[string]int{kube.Spot: spot, kube.OnDemand: onDemand}[full])
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(before, floor)))
	p.mended(w, replicas, before, floor)
	history := p.follow(w)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(after, floor))).To(Succeed())
	p.Eventually(func(g Gomega) *plimsollv1.Workload { return p.shown(w)(g) }).Should(waitsFor(plimsollv1.WaitKind_WAIT_KIND_DRY))
	p.Expect(history.AwaitMix(p.ctx, fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: replicas})).To(Succeed())
	p.Expect(p.leftReady(history)).To(Equal(1), "replicas that were moved before it was known that there is no room")

	p.restock(full, 250)
	p.mended(w, replicas, after, floor)
	p.Eventually(p.probes).Should(BeEmpty())
}

// leave takes the nodes of a capacity type away, with the pods on them, and adds one with room for so many pods; none for 0. At the
// end of the spec there is room again.
func (p *placing) leave(capacity string, pods int) {
	p.t.Helper()
	_, err := p.member.TakeAway(p.ctx, capacity)
	p.Expect(err).NotTo(HaveOccurred())
	p.t.Cleanup(func() { p.restock(capacity, 250) })
	if pods > 0 {
		p.restock(capacity, pods)
	}
}

// restock adds a node of a capacity type with room for so many pods.
func (p *placing) restock(capacity string, pods int) {
	p.t.Helper()
	_, err := p.member.Cluster.AddNodes(context.Background(), 1, kube.NodeSpec{Capacity: capacity, Pods: pods})
	p.Expect(err).NotTo(HaveOccurred())
}
