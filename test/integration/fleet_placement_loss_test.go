package integration

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// member returns what the status says of a member.
func (c *overFleetCase) member(name string) v1alpha1.MemberStatus {
	if p := c.read(c.ctx); p != nil {
		for _, m := range p.Status.Members {
			if m.Name == name {
				return m
			}
		}
	}
	return v1alpha1.MemberStatus{}
}

func fleetAutoscalerSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 2)
	c.Expect(s.Members[0].Client().Create(c.ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "own"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MinReplicas: ptr.To(int32(2)), MaxReplicas: 4,
		},
	})).To(Succeed())
	c.place(10, 2)
	c.Eventually(func() string { return c.member("one").Reason }).Should(ContainSubstring("HorizontalPodAutoscaler own"))
	c.Eventually(func() int {
		return int(c.read(c.ctx).Status.ReadyReplicas)
	}).Should(Equal(10))
	mix, err := c.workloads[0].Mix(c.ctx)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(mix.All()).To(Equal(2))
	c.Expect(c.member("one").State).To(Equal(v1alpha1.MemberOut))
}

// fleetDroughtSpec takes all spot nodes of a member away and gives them back.
func fleetDroughtSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(30, 3)
	c.exactly(21, 9)
	_, err := s.Members[0].TakeAway(c.ctx, kube.Spot)
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_, err := s.Members[0].Cluster.AddNodes(context.Background(), 3, kube.NodeSpec{Capacity: kube.Spot, Pods: 250})
		c.Expect(err).NotTo(HaveOccurred())
	})
	// At rest nothing is on spot there, and the fleet has as many on spot as before.
	c.Eventually(func(g Gomega) {
		mix, err := c.workloads[0].Mix(c.ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mix.Spot).To(BeZero())
		all := c.mix()
		g.Expect(all.Spot).To(BeNumerically(">=", 21))
		g.Expect(all.OnDemand).To(Equal(9))
		g.Expect(all.Ready).To(BeNumerically(">=", 30))
	}, 2*patience).Should(Succeed())
}

// fleetLossSpec has the hub lose a member, whose replicas go on serving unseen.
func fleetLossSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(12, 3, func(p *v1alpha1.FleetPlacementSpec) {
		p.ClusterLossGrace = &v1alpha1.Duration{Duration: metav1.Duration{Duration: 5 * time.Second}}
	})
	c.exactly(8, 4)
	s.Members[2].Proxy.Hang(nil)
	t.Cleanup(func() { c.Expect(s.Members[2].Proxy.Restore()).To(Succeed()) })
	c.Eventually(func() v1alpha1.MemberState { return c.member("three").State }).Should(Equal(v1alpha1.MemberLost))
	others := func() (ready int) {
		for _, w := range c.workloads[:2] {
			mix, err := w.Mix(c.ctx)
			c.Expect(err).NotTo(HaveOccurred())
			ready += mix.Ready
		}
		return ready
	}
	c.Eventually(others).Should(Equal(12))
	c.Expect(c.member("three").Reason).To(ContainSubstring("unreachable since"))
	c.Expect(s.Members[2].Proxy.Restore()).To(Succeed())
	short := false
	c.Eventually(func() fleet.Mix {
		mix := c.mix()
		short = short || mix.Ready < 12
		return mix
	}).Should(Equal(fleet.Mix{Spot: 8, OnDemand: 4, Ready: 12}))
	c.Expect(short).To(BeFalse(), "fewer than were wanted served on the way back")
	c.placed()
	c.Expect(c.evictions()).To(BeZero())
}

func fleetDeleteSpec(t *testing.T, s *fleetSite) {
	t.Run("and leaves them where they are", func(t *testing.T) {
		c := s.delivered(t, 0)
		c.place(9, 3)
		c.exactly(6, 3)
		c.Expect(s.k.Delete(c.ctx, c.placement)).To(Succeed())
		c.Eventually(func() bool { return c.read(c.ctx) == nil }).Should(BeTrue())
		c.Consistently(c.mix, 3*time.Second, time.Second).Should(Equal(fleet.Mix{Spot: 6, OnDemand: 3, Ready: 9}))
	})
	t.Run("or gathers them in one member", func(t *testing.T) {
		c := s.delivered(t, 0)
		c.place(9, 3, func(p *v1alpha1.FleetPlacementSpec) { p.OnDelete, p.GatherInto = v1alpha1.Gather, "two" })
		c.exactly(6, 3)
		c.Expect(s.k.Delete(c.ctx, c.placement)).To(Succeed())
		c.Eventually(func() bool { return c.read(c.ctx) == nil }).Should(BeTrue())
		mix, err := c.workloads[1].Mix(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(mix.Ready).To(Equal(9), c.shown())
		c.Eventually(func() int { return c.mix().All() }).Should(Equal(9))
	})
}

// fleetBadInputSpec asks for what cannot be had.
func fleetBadInputSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	feasible := func() string {
		p := c.read(c.ctx)
		found := apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionFeasible)
		if found == nil || p.Status.ObservedGeneration != p.Generation {
			return ""
		}
		return found.Reason
	}
	c.place(4, 9)
	c.Eventually(feasible).Should(Equal("FloorAboveReplicas"))
	c.exactly(0, 4)
	c.patch(func(p *v1alpha1.FleetPlacementSpec) {
		p.Capacity.MinOnDemand = 1
		p.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "nowhere"}}}, {Max: ptr.To(int32(1))}}}}
	})
	c.Eventually(feasible).Should(Equal("SelectorMatchesNothing"))
	c.Eventually(func() int32 { return c.read(c.ctx).Status.Unplaced }).Should(Equal(int32(1)))
	c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Clusters = nil })
	c.exactly(2, 2)

	second := c.placement.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: c.namespace, Name: "web-too"}
	c.Expect(s.k.Create(c.ctx, second)).To(Succeed())
	stray := c.placement.DeepCopy()
	stray.ObjectMeta, stray.Spec.TargetRef.Name = metav1.ObjectMeta{Namespace: c.namespace, Name: "stray"}, "nothing"
	c.Expect(s.k.Create(c.ctx, stray)).To(Succeed())
	foreign := c.placement.DeepCopy()
	foreign.ObjectMeta = metav1.ObjectMeta{Namespace: c.namespace, Name: "foreign"}
	foreign.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "batch/v1", Kind: "Job", Name: "web"}
	c.Expect(s.k.Create(c.ctx, foreign)).To(Succeed())
	for _, bad := range []struct {
		placement *v1alpha1.FleetPlacement
		reason    string
	}{{second, v1alpha1.ReasonConflict}, {stray, v1alpha1.ReasonTargetNotFound}, {foreign, v1alpha1.ReasonUnknownKind}} {
		other := &overFleetCase{WithT: c.WithT, site: s, ctx: c.ctx, placement: bad.placement}
		c.Eventually(func() string {
			p := other.read(c.ctx)
			if found := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); found != nil {
				return found.Reason
			}
			return ""
		}).Should(Equal(bad.reason))
		c.Expect(s.k.Delete(c.ctx, bad.placement)).To(Succeed())
		c.Eventually(func() bool { return other.read(c.ctx) == nil }).Should(BeTrue())
	}
	c.exactly(2, 2)

	for name, edit := range map[string]func(*v1alpha1.FleetPlacementSpec){
		"a price of zero":    func(p *v1alpha1.FleetPlacementSpec) { p.Prices = []v1alpha1.Price{{Spot: "0", OnDemand: "1"}} },
		"a price below zero": func(p *v1alpha1.FleetPlacementSpec) { p.Prices = []v1alpha1.Price{{Spot: "-1", OnDemand: "1"}} },
		"min above max": func(p *v1alpha1.FleetPlacementSpec) {
			p.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Min: 3, Max: ptr.To(int32(2))}}}}
		},
		"a share above 100":     func(p *v1alpha1.FleetPlacementSpec) { p.Capacity.SpotPercentage = ptr.To(int32(101)) },
		"a grace of nothing":    func(p *v1alpha1.FleetPlacementSpec) { p.ClusterLossGrace = &v1alpha1.Duration{} },
		"a domain without name": func(p *v1alpha1.FleetPlacementSpec) { p.Spread.MaxPercentPerDomain = ptr.To(int32(50)) },
		"a member to keep in":   func(p *v1alpha1.FleetPlacementSpec) { p.GatherInto = "one" },
	} {
		refused := c.placement.DeepCopy()
		refused.ObjectMeta = metav1.ObjectMeta{Namespace: c.namespace, Name: "refused"}
		edit(&refused.Spec)
		c.Expect(s.k.Create(c.ctx, refused)).NotTo(Succeed(), name)
	}
}
