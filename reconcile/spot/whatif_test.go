package spot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// plannedOf is a plan of ten replicas on spot, of which seven belong there.
func plannedOf(t *testing.T) planned {
	t.Helper()
	p := planned{observed: plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10), policy: spottest.PolicyOf(70, 1), settings: plantest.DefaultSettings, at: spottest.Epoch}
	p.plan = plan.Plan(p.observed, p.policy, p.settings, p.at)
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
		plan := plan.Plan(got.observed, got.policy, got.settings, spottest.Epoch)
		if plan.SpotWanted != c.spot || !c.check(got.policy) {
			t.Errorf("%s: %d on spot wanted, want %d; policy %+v", name, plan.SpotWanted, c.spot, got.policy)
		}
	}
	if diff := cmp.Diff(before.observed, last.observed); diff != "" {
		t.Errorf("the question changed what was observed: %s", diff)
	}
}

func TestAHypothesisHealsTheValueThatItNames(t *testing.T) {
	last := plannedOf(t)
	last.policy = policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "lots", "min-on-demand", "some"), nil, policy.Defaults{})
	one := Hypothesis{Percentage: ptr.To(50)}.apply(last, spottest.DefaultKeys)
	if len(one.policy.Problems) != 1 || one.policy.Problems[0].Key != spottest.DefaultKeys.MinOnDemand() {
		t.Errorf("problems %v", one.policy.Problems)
	}
	both := Hypothesis{Percentage: ptr.To(50), MinOnDemand: ptr.To(0)}.apply(last, spottest.DefaultKeys)
	if !both.policy.Valid() || len(last.policy.Problems) != 2 {
		t.Errorf("problems %v, of the policy itself %v", both.policy.Problems, last.policy.Problems)
	}
}

func TestTheFirstMovesOfAHypothesisAreThoseOfThePlan(t *testing.T) {
	last := plannedOf(t)
	got := Hypothesis{Percentage: ptr.To(50)}.apply(last, spottest.DefaultKeys)
	decided := plan.Plan(got.observed, got.policy, got.settings, spottest.Epoch)
	moves := firstMoves(&decided)
	if len(moves) != 1 || moves[0].From != capacity.Spot || moves[0].For != plan.PurposeMove || moves[0].Strategy != policy.StrategyEvict || !moves[0].At.IsZero() {
		t.Errorf("moves %+v", moves)
	}
	view := viewOf("m", policy.WorkloadKey{}, &planned{got.observed, got.policy, got.settings, decided, spottest.Epoch})
	if n := excessIn(&view); n != 5 {
		t.Errorf("%d replicas would have to move, want 5", n)
	}
}

func TestTheJournalKeepsTheLastMovesOfAWorkload(t *testing.T) {
	var j journal
	key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}}
	for i := range 25 {
		j.moved(key, Move{At: spottest.Epoch.Add(time.Duration(i) * time.Second)})
	}
	moves := j.lastMoves(key)
	if len(moves) != keptMoves || !moves[0].At.Equal(spottest.Epoch.Add(24*time.Second)) || !moves[9].At.Equal(spottest.Epoch.Add(15*time.Second)) {
		t.Errorf("moves %+v", moves)
	}
	j.planned(key, planned{at: spottest.Epoch})
	j.forget(key)
	if _, ok := j.last(key); ok || len(j.lastMoves(key)) > 0 {
		t.Error("a workload that is gone is remembered")
	}
}

func TestAnEventIsSaidOnceForAChange(t *testing.T) {
	minor := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "50", "strategy", "both"), nil, policy.Defaults{})
	unprotected := WorkloadView{State: plan.StateConverged, SpotActual: 7, OnDemandActual: 3, Unprotected: true}
	invalid := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "lots"), nil, policy.Defaults{})
	waiting := func(waits ...plan.Wait) WorkloadView {
		return WorkloadView{State: plan.StateWaiting, Reason: "3 replicas should move to spot", Waits: waits}
	}
	converged := WorkloadView{State: plan.StateConverged, SpotActual: 7, OnDemandActual: 3}
	for name, c := range map[string]struct {
		before WorkloadView
		known  bool
		now    WorkloadView
		want   string // reasons
	}{
		"it converged":                               {WorkloadView{State: plan.StateMoving}, true, converged, "Converged"},
		"it still is":                                {converged, true, WorkloadView{State: plan.StateConverged, SpotActual: 8, OnDemandActual: 3}, ""},
		"a process has started":                      {WorkloadView{}, false, converged, ""},
		"it is new":                                  {WorkloadView{}, true, converged, "Converged"},
		"it waits":                                   {converged, true, waiting(plan.Wait{Kind: plan.WaitBudget, Subject: "cart"}), "Waiting"},
		"it waits for something else":                {waiting(plan.Wait{Kind: plan.WaitBudget, Subject: "cart"}), true, waiting(plan.Wait{Kind: plan.WaitWindow}), "Waiting"},
		"other numbers, other times":                 {waiting(plan.Wait{Kind: plan.WaitWindow, Until: spottest.Epoch, Replicas: 1}), true, waiting(plan.Wait{Kind: plan.WaitWindow, Replicas: 2}), ""},
		"what comes and goes with every batch":       {waiting(plan.Wait{Kind: plan.WaitWindow}), true, waiting(plan.Wait{Kind: plan.WaitWindow}, plan.Wait{Kind: plan.WaitCooldown}), ""},
		"a batch says itself what it moves":          {converged, true, WorkloadView{State: plan.StateMoving}, ""},
		"it became invalid":                          {converged, true, WorkloadView{State: plan.StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"it still is invalid":                        {WorkloadView{State: plan.StateInvalid, Policy: invalid}, true, WorkloadView{State: plan.StateInvalid, Policy: invalid}, ""},
		"invalid, and nobody may have said so":       {WorkloadView{}, false, WorkloadView{State: plan.StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"a minor value that cannot be used":          {converged, true, WorkloadView{State: plan.StateConverged, Policy: minor}, "InvalidPolicy"},
		"it still cannot":                            {WorkloadView{State: plan.StateConverged, Policy: minor}, true, WorkloadView{State: plan.StateConverged, Policy: minor}, ""},
		"no budget protects the floor":               {converged, true, unprotected, "Unprotected"},
		"none does, as before":                       {unprotected, true, unprotected, ""},
		"none, and nobody may have said so":          {WorkloadView{}, false, unprotected, "Unprotected"},
		"read-only, which was not so":                {converged, true, WorkloadView{State: plan.StateReadOnly, Reason: "the namespace"}, "ReadOnly"},
		"a policy without a value, which was not so": {converged, true, WorkloadView{State: plan.StateUnmanaged}, "Unmanaged"},
	} {
		var reasons []string
		for _, a := range announcements(&c.before, c.known, &c.now) {
			reasons = append(reasons, a.reason)
			if a.warning != (a.reason == "InvalidPolicy" || a.reason == "Unprotected") {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if got := strings.Join(reasons, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWaitsAreShownWithTheSoonestToEndFirst(t *testing.T) {
	p := plannedOf(t)
	p.plan.Waits = []plan.Wait{{Kind: plan.WaitBudget, Subject: "b"}, {Kind: plan.WaitWindow, Until: spottest.Epoch.Add(time.Hour)}, {Kind: plan.WaitBudget, Subject: "a"}, {Kind: plan.WaitCooldown, Until: spottest.Epoch}}
	view := viewOf("m", policy.WorkloadKey{}, &p)
	var got []string
	for _, w := range view.Waits {
		got = append(got, string(w.Kind)+w.Subject)
	}
	if diff := cmp.Diff([]string{"cooldown", "window", "budgeta", "budgetb"}, got); diff != "" {
		t.Error(diff)
	}
}
