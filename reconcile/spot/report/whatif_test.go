package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// plannedOf is a plan of ten replicas on spot, of which seven belong there.
func plannedOf(t *testing.T) Planned {
	t.Helper()
	p := Planned{Observed: plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10), Policy: spottest.PolicyOf(70, 1), Settings: plantest.DefaultSettings, At: spottest.Epoch}
	p.Plan = plan.Plan(p.Observed, p.Policy, p.Settings, p.At)
	return p
}

func TestAHypothesisIsPlannedLikeAPolicyAndChangesNothing(t *testing.T) {
	last := plannedOf(t)
	before := plannedOf(t)
	for name, c := range map[string]struct {
		h     Hypothesis
		spot  int
		check func(policy.Policy) bool
	}{
		"another share": {Hypothesis{Percentage: ptr.To(50)}, 5, func(p policy.Policy) bool { return *p.Percentage == 50 && p.PercentageSource == policy.SourceRequest }},
		"another floor": {Hypothesis{MinOnDemand: ptr.To(8)}, 2, func(p policy.Policy) bool { return *p.MinOnDemand == 8 && p.MinOnDemandSource == policy.SourceRequest }},
		"more replicas": {Hypothesis{Replicas: ptr.To(20)}, 14, func(p policy.Policy) bool { return p.PercentageSource == policy.SourceWorkload }},
		"nothing":       {Hypothesis{}, 7, func(p policy.Policy) bool { return p.PercentageSource == policy.SourceWorkload }},
	} {
		got := c.h.apply(last, spottest.DefaultKeys)
		plan := plan.Plan(got.Observed, got.Policy, got.Settings, spottest.Epoch)
		if plan.SpotWanted != c.spot || !c.check(got.Policy) {
			t.Errorf("%s: %d on spot wanted, want %d; policy %+v", name, plan.SpotWanted, c.spot, got.Policy)
		}
	}
	if diff := cmp.Diff(before.Observed, last.Observed); diff != "" {
		t.Errorf("the question changed what was observed: %s", diff)
	}
}

func TestAHypothesisHealsTheValueThatItNames(t *testing.T) {
	last := plannedOf(t)
	last.Policy = policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "lots", "min-on-demand", "some"), nil, policy.Defaults{})
	one := Hypothesis{Percentage: ptr.To(50)}.apply(last, spottest.DefaultKeys)
	if len(one.Policy.Problems) != 1 || one.Policy.Problems[0].Key != spottest.DefaultKeys.MinOnDemand() {
		t.Errorf("problems %v", one.Policy.Problems)
	}
	both := Hypothesis{Percentage: ptr.To(50), MinOnDemand: ptr.To(0)}.apply(last, spottest.DefaultKeys)
	if !both.Policy.Valid() || len(last.Policy.Problems) != 2 {
		t.Errorf("problems %v, of the policy itself %v", both.Policy.Problems, last.Policy.Problems)
	}
}

func TestTheFirstMovesOfAHypothesisAreThoseOfThePlan(t *testing.T) {
	last := plannedOf(t)
	got := Hypothesis{Percentage: ptr.To(50)}.apply(last, spottest.DefaultKeys)
	decided := plan.Plan(got.Observed, got.Policy, got.Settings, spottest.Epoch)
	moves := firstMoves(&decided)
	if len(moves) != 1 || moves[0].From != capacity.Spot || moves[0].For != plan.PurposeMove || moves[0].Strategy != policy.StrategyEvict || !moves[0].At.IsZero() {
		t.Errorf("moves %+v", moves)
	}
	view := Of("m", policy.WorkloadKey{}, &Planned{Observed: got.Observed, Policy: got.Policy, Settings: got.Settings, Plan: decided, At: spottest.Epoch})
	if n := excessIn(&view); n != 5 {
		t.Errorf("%d replicas would have to move, want 5", n)
	}
}
