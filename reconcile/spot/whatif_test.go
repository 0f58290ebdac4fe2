package spot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// plannedOf is a plan of ten replicas on spot, of which seven belong there.
func plannedOf(t *testing.T) planned {
	t.Helper()
	p := planned{observed: ObservedOf(Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10), policy: PolicyOf(70, 1), settings: DefaultSettings, at: Epoch}
	p.plan = Plan(p.observed, p.policy, p.settings, p.at)
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
		got := c.h.apply(last, DefaultKeys)
		plan := Plan(got.observed, got.policy, got.settings, Epoch)
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
	last.policy = policy.Parse(DefaultKeys, Annotations("spot-percentage", "lots", "min-on-demand", "some"), nil, policy.Defaults{})
	one := Hypothesis{Percentage: ptr.To(50)}.apply(last, DefaultKeys)
	if len(one.policy.Problems) != 1 || one.policy.Problems[0].Key != DefaultKeys.MinOnDemand() {
		t.Errorf("problems %v", one.policy.Problems)
	}
	both := Hypothesis{Percentage: ptr.To(50), MinOnDemand: ptr.To(0)}.apply(last, DefaultKeys)
	if !both.policy.Valid() || len(last.policy.Problems) != 2 {
		t.Errorf("problems %v, of the policy itself %v", both.policy.Problems, last.policy.Problems)
	}
}

func TestTheFirstMovesOfAHypothesisAreThoseOfThePlan(t *testing.T) {
	last := plannedOf(t)
	got := Hypothesis{Percentage: ptr.To(50)}.apply(last, DefaultKeys)
	plan := Plan(got.observed, got.policy, got.settings, Epoch)
	moves := firstMoves(&plan)
	if len(moves) != 1 || moves[0].From != capacity.Spot || moves[0].For != PurposeMove || moves[0].Strategy != policy.StrategyEvict || !moves[0].At.IsZero() {
		t.Errorf("moves %+v", moves)
	}
	view := viewOf("m", policy.WorkloadKey{}, &planned{got.observed, got.policy, got.settings, plan, Epoch})
	if n := excessIn(&view); n != 5 {
		t.Errorf("%d replicas would have to move, want 5", n)
	}
}

func TestTheJournalKeepsTheLastMovesOfAWorkload(t *testing.T) {
	var j journal
	key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}}
	for i := range 25 {
		j.moved(key, Move{At: Epoch.Add(time.Duration(i) * time.Second)})
	}
	moves := j.lastMoves(key)
	if len(moves) != keptMoves || !moves[0].At.Equal(Epoch.Add(24*time.Second)) || !moves[9].At.Equal(Epoch.Add(15*time.Second)) {
		t.Errorf("moves %+v", moves)
	}
	j.planned(key, planned{at: Epoch})
	j.forget(key)
	if _, ok := j.last(key); ok || len(j.lastMoves(key)) > 0 {
		t.Error("a workload that is gone is remembered")
	}
}

func TestAnEventIsSaidOnceForAChange(t *testing.T) {
	minor := policy.Parse(DefaultKeys, Annotations("spot-percentage", "50", "strategy", "both"), nil, policy.Defaults{})
	unprotected := WorkloadView{State: StateConverged, SpotActual: 7, OnDemandActual: 3, Unprotected: true}
	invalid := policy.Parse(DefaultKeys, Annotations("spot-percentage", "lots"), nil, policy.Defaults{})
	waiting := func(waits ...Wait) WorkloadView {
		return WorkloadView{State: StateWaiting, Reason: "3 replicas should move to spot", Waits: waits}
	}
	converged := WorkloadView{State: StateConverged, SpotActual: 7, OnDemandActual: 3}
	for name, c := range map[string]struct {
		before WorkloadView
		known  bool
		now    WorkloadView
		want   string // reasons
	}{
		"it converged":                               {WorkloadView{State: StateMoving}, true, converged, "Converged"},
		"it still is":                                {converged, true, WorkloadView{State: StateConverged, SpotActual: 8, OnDemandActual: 3}, ""},
		"a process has started":                      {WorkloadView{}, false, converged, ""},
		"it is new":                                  {WorkloadView{}, true, converged, "Converged"},
		"it waits":                                   {converged, true, waiting(Wait{Kind: WaitBudget, Subject: "cart"}), "Waiting"},
		"it waits for something else":                {waiting(Wait{Kind: WaitBudget, Subject: "cart"}), true, waiting(Wait{Kind: WaitWindow}), "Waiting"},
		"other numbers, other times":                 {waiting(Wait{Kind: WaitWindow, Until: Epoch, Replicas: 1}), true, waiting(Wait{Kind: WaitWindow, Replicas: 2}), ""},
		"what comes and goes with every batch":       {waiting(Wait{Kind: WaitWindow}), true, waiting(Wait{Kind: WaitWindow}, Wait{Kind: WaitCooldown}), ""},
		"a batch says itself what it moves":          {converged, true, WorkloadView{State: StateMoving}, ""},
		"it became invalid":                          {converged, true, WorkloadView{State: StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"it still is invalid":                        {WorkloadView{State: StateInvalid, Policy: invalid}, true, WorkloadView{State: StateInvalid, Policy: invalid}, ""},
		"invalid, and nobody may have said so":       {WorkloadView{}, false, WorkloadView{State: StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"a minor value that cannot be used":          {converged, true, WorkloadView{State: StateConverged, Policy: minor}, "InvalidPolicy"},
		"it still cannot":                            {WorkloadView{State: StateConverged, Policy: minor}, true, WorkloadView{State: StateConverged, Policy: minor}, ""},
		"no budget protects the floor":               {converged, true, unprotected, "Unprotected"},
		"none does, as before":                       {unprotected, true, unprotected, ""},
		"none, and nobody may have said so":          {WorkloadView{}, false, unprotected, "Unprotected"},
		"read-only, which was not so":                {converged, true, WorkloadView{State: StateReadOnly, Reason: "the namespace"}, "ReadOnly"},
		"a policy without a value, which was not so": {converged, true, WorkloadView{State: StateUnmanaged}, "Unmanaged"},
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
	p.plan.Waits = []Wait{{Kind: WaitBudget, Subject: "b"}, {Kind: WaitWindow, Until: Epoch.Add(time.Hour)}, {Kind: WaitBudget, Subject: "a"}, {Kind: WaitCooldown, Until: Epoch}}
	view := viewOf("m", policy.WorkloadKey{}, &p)
	var got []string
	for _, w := range view.Waits {
		got = append(got, string(w.Kind)+w.Subject)
	}
	if diff := cmp.Diff([]string{"cooldown", "window", "budgeta", "budgetb"}, got); diff != "" {
		t.Error(diff)
	}
}
