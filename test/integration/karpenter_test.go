package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestKarpenter has the real Karpenter make, consolidate and replace the nodes of two members. They take the time to be ready
// that nodes of a cloud take, and the hub has its default settings, all of it at the same scale.
func TestKarpenter(t *testing.T) {
	fleets.beside(t)
	s := newKarpenterSite(t)
	for name, spec := range map[string]func(*testing.T){
		"one after the other": func(t *testing.T) {
			t.Run("a spot pool at zero gets nodes because replicas ask for them, and again after it was scaled to zero", s.zeroSpec)
			t.Run("scaling up and down costs no ready replica, and later rounds no more nodes than the first", s.flapSpec)
		},
		"the hub takes no replica of the floor while all nodes drift, and that ends":     s.driftSpec,
		"nor while half-empty nodes are consolidated":                                    s.consolidationSpec,
		"nor while a fifth of the nodes is interrupted":                                  s.interruptionSpec,
		"nor while all nodes expire":                                                     s.expirySpec,
		"nobody takes pods that ask not to be disrupted off nodes that are consolidated": s.protectedConsolidationSpec,
		"nor off nodes that expire":                                                      s.protectedExpirySpec,
		"nodes that take 45 s cost no ready replica":                                     s.startSpec(45 * time.Second),
		"nor do nodes that take 150 s":                                                   s.startSpec(150 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			specs.beside(t)
			spec(t)
		})
	}
}

func (s *karpenterSite) zeroSpec(t *testing.T) {
	const replicas, percent, floor = 10, 70, 1
	p := s.onNothing(t)
	w := p.grown(replicas, percent, floor)
	toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
		p.Expect(w.Scale(ctx, 0)).To(Succeed())
		p.Eventually(p.claims).Should(BeEmpty())
		p.Expect(w.Scale(ctx, replicas)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
		return nil
	})
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.ReadyByHub).To(BeZero())
}

func (s *karpenterSite) flapSpec(t *testing.T) {
	const low, percent, floor = 10, 100, 1
	p := s.onNothing(t)
	w := p.grown(low, percent, floor)
	flap := fleet.Flap{Workload: w, Pool: p.pool, Low: low, High: 40, Percent: percent, Floor: floor, Rounds: 2}
	outcome, err := flap.Run(p.ctx)
	t.Logf("nodes made by round: %v; %+v", outcome.Made, outcome.Toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(outcome.Toll.ReadyByHub).To(BeZero())
	p.Expect(outcome.Made[0]).To(BeNumerically(">", 0))
	p.Expect(outcome.Made).To(HaveEach(BeNumerically("<=", outcome.Made[0])))
}

func (s *karpenterSite) driftSpec(t *testing.T) {
	const replicas, percent, floor = 20, 100, 3
	p := s.onPool(t, quickPool("drift"))
	w := p.grown(replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) {
		old := p.claims()
		p.change(ctx, slowPool("drift"))
		p.Expect(p.pool.AwaitReplaced(ctx, old)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

// consolidationSpec has each replica on a node of its own, beside a pod that is not the hub's and then goes.
func (s *karpenterSite) consolidationSpec(t *testing.T) {
	const replicas, percent, floor = 18, 67, 6
	p := s.onPool(t, slowPool("consolidation"))
	filler, w := p.grownBeside(slowPool("consolidation"), replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) {
		under := slowPool("consolidation")
		under.Consolidation = kube.WhenEmptyOrUnderutilized
		p.change(ctx, under)
		p.Expect(filler.Delete(ctx)).To(Succeed())
		p.Expect(p.pool.AwaitConsolidated(ctx, replicas/2)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

func (s *karpenterSite) interruptionSpec(t *testing.T) {
	const replicas, percent, floor = 20, 70, 6
	p := s.onPool(t, quickPool("interruption"))
	w := p.grown(replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) {
		slow := slowPool("interruption")
		slow.Budgets = []kube.DisruptionBudget{{Nodes: "0"}} // nothing goes but what is interrupted
		p.change(ctx, slow)
		interrupted := fleet.Fifth(p.claims(), 1)
		p.Expect(interrupted).To(ContainElements(HaveField("Capacity", kube.Spot), HaveField("Capacity", kube.OnDemand)))
		p.Expect(p.member.Cluster.DeleteNodeClaims(ctx, fleet.ClaimNames(interrupted)...)).To(Succeed())
		p.Expect(p.pool.AwaitReplaced(ctx, interrupted)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

// expirySpec has all nodes reach their age at about the same time. Karpenter takes such nodes whatever disruption budgets say, and
// makes others only when pods wait for them.
func (s *karpenterSite) expirySpec(t *testing.T) {
	const replicas, percent, floor = 12, 75, 3
	pool := slowPool("expiry")
	pool.ExpireAfter = 3 * time.Minute // the replicas have to come to rest on the new nodes before these expire
	p := s.onPool(t, pool)
	w := p.grown(replicas, percent, floor)
	p.keepsFloor(w, floor, func(ctx context.Context) {
		p.Expect(p.pool.AwaitReplaced(ctx, p.claims())).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

// protectedConsolidationSpec has half-empty nodes whose pods ask Karpenter to leave them where they are.
func (s *karpenterSite) protectedConsolidationSpec(t *testing.T) {
	const replicas, percent, floor = 6, 67, 2
	p := s.onPool(t, slowPool("protected-consolidation"))
	filler, w := p.grownBeside(slowPool("protected-consolidation"), replicas, percent, floor)
	p.disruptable(w, false)
	p.remark()
	p.keepsFloor(w, floor, func(ctx context.Context) {
		under := slowPool("protected-consolidation")
		under.Consolidation = kube.WhenEmptyOrUnderutilized
		p.change(ctx, under)
		p.Expect(filler.Delete(ctx)).To(Succeed())
		for _, pod := range p.pods(w) {
			p.Eventually(p.blocked).Should(ContainElement(pod.Spec.NodeName), "Karpenter looked at the node and left it")
		}
		p.reconciledAgain(deploymentController, w, 2)
		p.Expect(p.evictions()).To(BeEmpty(), "neither Karpenter nor the hub takes them")

		p.disruptable(w, true)
		p.Expect(p.pool.AwaitConsolidated(ctx, replicas/2)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

// protectedExpirySpec has all nodes reach their age, which no annotation puts off. Karpenter has them go then, and waits for pods that
// ask not to be disrupted; so does the hub.
func (s *karpenterSite) protectedExpirySpec(t *testing.T) {
	const replicas, percent, floor = 6, 67, 2
	pool := slowPool("protected-expiry")
	pool.ExpireAfter = 3 * time.Minute // the replicas have to come to rest on the new nodes before these expire
	p := s.onPool(t, pool)
	w := p.grown(replicas, percent, floor)
	p.disruptable(w, false)
	p.remark()
	p.keepsFloor(w, floor, func(ctx context.Context) {
		old, err := p.pool.Claims(ctx)
		p.Expect(err).NotTo(HaveOccurred())
		p.Eventually(p.leaving).Should(ContainElements(fleet.ClaimNames(old)))
		p.Eventually(p.reason(w)).Should(ContainSubstring("annotations forbid disruption"))
		p.reconciledAgain(deploymentController, w, 2)
		p.Expect(p.evictions()).To(BeEmpty(), "neither Karpenter nor the hub takes them")
		p.Expect(p.leaving()).To(ContainElements(fleet.ClaimNames(old)), "the nodes wait")

		p.disruptable(w, true)
		p.Expect(p.pool.AwaitReplaced(ctx, old)).To(Succeed())
		p.mixed(w, replicas, percent, floor)
	})
}

// startSpec scales up onto nodes that take so long to be ready.
func (s *karpenterSite) startSpec(takes time.Duration) func(*testing.T) {
	return func(t *testing.T) {
		const few, many, percent, floor = 6, 18, 70, 1
		pool := slowPool(fmt.Sprintf("start-%.0f", takes.Seconds()))
		pool.NodeStart = takes / pace
		p := s.onPool(t, pool)
		w := p.grown(few, percent, floor)
		toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
			p.Expect(w.Scale(ctx, many)).To(Succeed())
			p.mixed(w, many, percent, floor)
			return nil
		})
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(toll.ReadyByHub).To(BeZero())
		p.Expect(toll.Breaks).To(BeEmpty())
	}
}
