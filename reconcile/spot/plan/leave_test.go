package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// budgeted are 14 replicas under some budgets, of which 10 are on spot and should move.
func budgeted(budgets ...plan.Budget) plan.Observed {
	o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(10, spottest.SpotOnly), 4, capacity.OnDemand), 14)
	o.Budgets = budgets
	for i := range o.Pods {
		for at := range budgets {
			o.Pods[i].Budgets = append(o.Pods[i].Budgets, at)
		}
	}
	return o
}

var manyMoves = plan.Settings{MaxMoves: policy.MoveLimit{Count: 5}, Cooldown: 10 * time.Second}

func TestABatchIsNoLargerThanItsBudgetAllowsAndTellsWhatItWaitsFor(t *testing.T) {
	r := plan.Plan(budgeted(plan.Budget{Name: "web", Allowed: 2}), spottest.PolicyOf(0, 0), manyMoves, spottest.Epoch)
	w := plantest.WaitOf(&r, plan.WaitBudget)
	if len(r.Evictions) != 2 || r.State != plan.StateMoving || w == nil || w.Subject != "web" {
		t.Errorf("%+v", r)
	}
	r = plan.Plan(budgeted(plan.Budget{Name: "web"}), spottest.PolicyOf(0, 0), manyMoves, spottest.Epoch)
	if len(r.Evictions) != 0 || r.State != plan.StateWaiting || !r.Recheck.Equal(spottest.Epoch.Add(plan.BudgetAgain)) {
		t.Errorf("%+v", r)
	}
}

// The predecessor checks the first budget only. The API server evicts no pod that has several.
func TestAPodUnderSeveralBudgetsWaitsAndNamesThemAll(t *testing.T) {
	r := plan.Plan(budgeted(plan.Budget{Name: "web", Allowed: 5}, plan.Budget{Name: "all", Allowed: 5}), spottest.PolicyOf(0, 0), manyMoves, spottest.Epoch)
	w := plantest.WaitOf(&r, plan.WaitBudget)
	if len(r.Evictions) != 0 || r.State != plan.StateWaiting || w == nil || w.Subject != "all, web" {
		t.Errorf("%+v", r)
	}
	o, s := budgeted(plan.Budget{Name: "web", Allowed: 5}, plan.Budget{Name: "all", Allowed: 5}), manyMoves
	s.Strategy, o.Pods[9].Hash = policy.StrategyRelease, "abc"
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch); len(r.Releases) > 0 {
		t.Errorf("a pod is released that nothing would end: %+v", r.Releases)
	}
}

func TestAPodThatIsNotReadyGoesByTheRulesOfItsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget plan.Budget
		bound  bool
		want   int
	}{
		"none allowed":        {plan.Budget{}, true, 0},
		"the budget is met":   {plan.Budget{Healthy: true}, true, 1},
		"unhealthy may go":    {plan.Budget{UnhealthyAlways: true}, true, 1},
		"no node has it":      {plan.Budget{}, false, 1},
		"one of it is spared": {plan.Budget{Healthy: true, Allowed: 1}, true, 2},
	} {
		o := budgeted(c.budget)
		o.Pods[4].Ready, o.Pods[4].Bound = false, c.bound
		if r := plan.Plan(o, spottest.PolicyOf(0, 0), manyMoves, spottest.Epoch); len(r.Evictions) != c.want {
			t.Errorf("%s: %d evictions, want %d", name, len(r.Evictions), c.want)
		}
	}
}

// When the replica that is not ready may not go, a ready one in its place would be one too many.
func TestAReadyReplicaDoesNotGoInThePlaceOfOneThatABudgetHolds(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Managed: true}), 4) // 4 on-demand, the floor is 3
	o.Budgets = []plan.Budget{{Name: "web"}}
	o.Pods[2].Ready, o.Pods[2].Budgets = false, []int{0} // of another selector than the rest
	if r := plan.Plan(o, spottest.PolicyOf(100, 3), manyMoves, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r.Evictions)
	}
}

func TestARefusalIsAWaitAndSoIsACeiling(t *testing.T) {
	r := plan.Plan(budgeted(), spottest.PolicyOf(0, 0), manyMoves, spottest.Epoch)
	r.Refused(2, "web", "needs 9 healthy pods", spottest.Epoch.Add(5*time.Second))
	r.Refused(1, "web", "needs 9 healthy pods", spottest.Epoch.Add(7*time.Second))
	r.Deferred(3, "member", spottest.Epoch.Add(time.Second))
	w := plantest.WaitOf(&r, plan.WaitBudget)
	if w == nil || w.Replicas != 3 || !w.Until.Equal(spottest.Epoch.Add(5*time.Second)) || !strings.Contains(w.Reason, "9 healthy") {
		t.Errorf("%+v", r.Waits)
	}
	if w := plantest.WaitOf(&r, plan.WaitCeiling); w == nil || w.Subject != "member" || !r.Recheck.Equal(spottest.Epoch.Add(time.Second)) {
		t.Errorf("%+v", r)
	}
}

func TestAPausedWorkloadIsAssignedSlotsAndNotMoved(t *testing.T) {
	s := manyMoves
	s.Paused = true
	o := budgeted()
	o.Pods[3].Slot = plan.NoSlot
	plantest.InterruptSlots(o.Pods, plan.Interruption{Node: "n"}, 1)
	r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch)
	if len(r.Evictions)+len(r.Releases) > 0 || len(r.Assignments) == 0 || r.State != plan.StateWaiting || plantest.WaitOf(&r, plan.WaitPaused) == nil {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(plantest.ObservedOf(plantest.Replicas(4, spottest.SpotOnly), 4), spottest.PolicyOf(100, 0), s, spottest.Epoch); r.State != plan.StateConverged || len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestReadOnlyModeSaysWhoseItIs(t *testing.T) {
	s := manyMoves
	s.ReadOnly, s.ReadOnlyBy = true, "namespace shop"
	r := plan.Plan(budgeted(), spottest.PolicyOf(0, 0), s, spottest.Epoch)
	if r.State != plan.StateReadOnly || !strings.HasSuffix(r.Reason, "namespace shop is in read-only mode") || plantest.WaitOf(&r, plan.WaitReadOnly) == nil {
		t.Errorf("%+v", r)
	}
	o := plantest.ObservedOf(plantest.InterruptSlots(plantest.Replicas(4, spottest.SpotOnly), plan.Interruption{Node: "n"}, 1), 4)
	if r := plan.Plan(o, spottest.PolicyOf(100, 0), s, spottest.Epoch); r.State != plan.StateReadOnly || len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestPodsAreAssignedSlotsOnceForAPolicyAndNotWithEveryBatch(t *testing.T) {
	for _, percent := range []int{10, 30, 100} {
		o := plantest.ObservedOf(plantest.Replicas(20, policy.Mix{Percent: 70, Floor: 1, Managed: true}), 20)
		for i := range o.Pods { // moves are at full pace
			o.Pods[i].Moved, o.Pods[i].UnreadySince = true, spottest.Epoch.Add(-time.Minute)
		}
		r := plan.Plan(o, spottest.PolicyOf(percent, 1), manyMoves, spottest.Epoch)
		if len(r.Evictions) != 5 {
			t.Fatalf("%d%%: %d evictions", percent, len(r.Evictions))
		}
		for i := range o.Pods {
			for _, s := range r.Assignments {
				if s.Pod == o.Pods[i].UID {
					o.Pods[i].Slot, o.Pods[i].DeletionCost = s.Slot, policy.ParseCost(s.DeletionCost)
				}
			}
			o.Pods[i].Evicted = slices.Contains(plantest.Names(r.Evictions), o.Pods[i].Name)
		}
		if r := plan.Plan(o, spottest.PolicyOf(percent, 1), manyMoves, spottest.Epoch); len(r.Assignments) > 0 {
			t.Errorf("%d%%: %+v", percent, r.Assignments)
		}
	}
	if r := plan.Plan(dryPods(), spottest.PolicyOf(70, 0), manyMoves, spottest.Epoch); len(r.Evictions) != 6 || len(r.Assignments) > 0 {
		t.Errorf("drought: %d evictions, assignments %+v", len(r.Evictions), r.Assignments)
	}
}
