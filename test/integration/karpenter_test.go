package integration

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestKarpenter has the real Karpenter make, consolidate and replace the nodes of a member. They take the time to be ready
// that nodes of a cloud take, and the hub has its default settings, all of it at the same scale.
func TestKarpenter(t *testing.T) {
	fleets.beside(t)
	s := newKarpenterSite(t)
	t.Run("a spot pool at zero gets nodes because replicas ask for them, and again after it was scaled to zero", s.zeroSpec)
	t.Run("scaling up and down costs no ready replica, and later rounds no more nodes than the first", s.flapSpec)
	t.Run("the hub takes no replica of the floor while all nodes drift, and that ends", s.driftSpec)
	t.Run("nor while half-empty nodes are consolidated", s.consolidationSpec)
	t.Run("nor while a fifth of the nodes is interrupted", s.interruptionSpec)
}

func (s *karpenterSite) zeroSpec(t *testing.T) {
	const replicas, percent, floor = 10, 70, 1
	p := s.begin(t, general())
	w := p.grown(replicas, percent, floor)
	toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
		p.Expect(w.Scale(ctx, 0)).To(Succeed())
		p.Eventually(p.claims).Should(BeEmpty())
		p.Expect(w.Scale(ctx, replicas)).To(Succeed())
		p.mended(w, replicas, percent, floor)
		return nil
	})
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.ReadyByHub).To(BeZero())
}

func (s *karpenterSite) flapSpec(t *testing.T) {
	const low, percent, floor = 10, 100, 1
	p := s.begin(t, general())
	w := p.grown(low, percent, floor)
	flap := fleet.Flap{Workload: w, Low: low, High: 40, Percent: percent, Floor: floor, Rounds: 2}
	outcome, err := flap.Run(p.ctx)
	t.Logf("nodes made by round: %v; %+v", outcome.Made, outcome.Toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(outcome.Toll.ReadyByHub).To(BeZero())
	p.Expect(outcome.Made[0]).To(BeNumerically(">", 0))
	p.Expect(outcome.Made).To(HaveEach(BeNumerically("<=", outcome.Made[0])))
}

func (s *karpenterSite) driftSpec(t *testing.T) {
	if os.Getenv("KARPENTER_DRIFT") == "" {
		t.Skip("issue 11 is open: the hub once left 2 of a floor of 3 ready; two causes are fixed and the model of a drift in reconcile/spot passes, " +
			"but nobody has seen this spec pass three times in a row since; KARPENTER_DRIFT=1 runs it")
	}
	const replicas, percent, floor = 20, 100, 3
	p := s.begin(t, quickly())
	w := p.grown(replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) error {
		old := p.claims()
		p.Expect(s.member.Cluster.SetNodePool(ctx, general())).To(Succeed())
		p.Expect(s.member.AwaitReplaced(ctx, old)).To(Succeed())
		p.mended(w, replicas, percent, floor)
		return nil
	})
}

// consolidationSpec has each replica on a node of its own, beside a pod that is not the hub's and then goes.
func (s *karpenterSite) consolidationSpec(t *testing.T) {
	const replicas, percent, floor = 18, 67, 6
	p := s.begin(t, general())
	filler, err := s.member.Fill(p.ctx, p.namespace, "2500m", replicas-floor, floor)
	p.Expect(err).NotTo(HaveOccurred())
	w := p.grown(replicas, percent, floor)
	before := len(p.claims())
	p.Expect(before).To(BeNumerically(">=", replicas))
	p.keepsFloor(w, floor, func(ctx context.Context) error {
		under := general()
		under.Consolidation = kube.WhenEmptyOrUnderutilized
		p.Expect(s.member.Cluster.SetNodePool(ctx, under)).To(Succeed())
		p.Expect(filler.Delete(ctx)).To(Succeed())
		p.Expect(s.member.AwaitConsolidated(ctx, before/2)).To(Succeed())
		p.mended(w, replicas, percent, floor)
		return nil
	})
}

func (s *karpenterSite) interruptionSpec(t *testing.T) {
	const replicas, percent, floor = 20, 70, 6
	p := s.begin(t, quickly())
	w := p.grown(replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) error {
		slow := general()
		slow.Budgets = []kube.DisruptionBudget{{Nodes: "0"}} // nothing goes but what is interrupted
		p.Expect(s.member.Cluster.SetNodePool(ctx, slow)).To(Succeed())
		interrupted := fleet.Fifth(p.claims())
		p.Expect(interrupted).To(ContainElements(HaveField("Capacity", kube.Spot), HaveField("Capacity", kube.OnDemand)))
		p.Expect(s.member.Cluster.DeleteNodeClaims(ctx, fleet.ClaimNames(interrupted)...)).To(Succeed())
		p.Expect(s.member.AwaitReplaced(ctx, interrupted)).To(Succeed())
		p.mended(w, replicas, percent, floor)
		return nil
	})
}

// keepsFloor expects that the hub's own evictions never take the ready on-demand replicas below the floor while something is
// done. What Karpenter drains is not the hub's.
func (p *placing) keepsFloor(w *fleet.Workload, floor int, do func(context.Context) error) {
	p.t.Helper()
	toll, err := w.Endure(p.ctx, floor, do)
	p.t.Logf("%+v", toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.Breaks).To(BeEmpty())
}
