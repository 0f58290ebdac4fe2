package spot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// budgeted are 14 replicas under some budgets, of which 10 are on spot and should move.
func budgeted(budgets ...Budget) Observed {
	o := ObservedOf(Arrived(Replicas(10, SpotOnly), 4, capacity.OnDemand), 14)
	o.Budgets = budgets
	for i := range o.Pods {
		for at := range budgets {
			o.Pods[i].Budgets = append(o.Pods[i].Budgets, at)
		}
	}
	return o
}

var manyMoves = Settings{MaxMoves: policy.MoveLimit{Count: 5}, Cooldown: 10 * time.Second}

func TestABatchIsNoLargerThanItsBudgetAllowsAndTellsWhatItWaitsFor(t *testing.T) {
	r := Plan(budgeted(Budget{Name: "web", Allowed: 2}), PolicyOf(0, 0), manyMoves, Epoch)
	w := WaitOf(&r, WaitBudget)
	if len(r.Evictions) != 2 || r.State != StateMoving || w == nil || w.Subject != "web" {
		t.Errorf("%+v", r)
	}
	r = Plan(budgeted(Budget{Name: "web"}), PolicyOf(0, 0), manyMoves, Epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting || !r.Recheck.Equal(Epoch.Add(BudgetAgain)) {
		t.Errorf("%+v", r)
	}
}

// The predecessor checks the first budget only. The API server evicts no pod that has several.
func TestAPodUnderSeveralBudgetsWaitsAndNamesThemAll(t *testing.T) {
	r := Plan(budgeted(Budget{Name: "web", Allowed: 5}, Budget{Name: "all", Allowed: 5}), PolicyOf(0, 0), manyMoves, Epoch)
	w := WaitOf(&r, WaitBudget)
	if len(r.Evictions) != 0 || r.State != StateWaiting || w == nil || w.Subject != "all, web" {
		t.Errorf("%+v", r)
	}
	o, s := budgeted(Budget{Name: "web", Allowed: 5}, Budget{Name: "all", Allowed: 5}), manyMoves
	s.Strategy, o.Pods[9].Hash = policy.StrategyRelease, "abc"
	if r := Plan(o, PolicyOf(0, 0), s, Epoch); len(r.Releases) > 0 {
		t.Errorf("a pod is released that nothing would end: %+v", r.Releases)
	}
}

func TestAPodThatIsNotReadyGoesByTheRulesOfItsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget Budget
		bound  bool
		want   int
	}{
		"none allowed":        {Budget{}, true, 0},
		"the budget is met":   {Budget{Healthy: true}, true, 1},
		"unhealthy may go":    {Budget{UnhealthyAlways: true}, true, 1},
		"no node has it":      {Budget{}, false, 1},
		"one of it is spared": {Budget{Healthy: true, Allowed: 1}, true, 2},
	} {
		o := budgeted(c.budget)
		o.Pods[4].Ready, o.Pods[4].Bound = false, c.bound
		if r := Plan(o, PolicyOf(0, 0), manyMoves, Epoch); len(r.Evictions) != c.want {
			t.Errorf("%s: %d evictions, want %d", name, len(r.Evictions), c.want)
		}
	}
}

// When the replica that is not ready may not go, a ready one in its place would be one too many.
func TestAReadyReplicaDoesNotGoInThePlaceOfOneThatABudgetHolds(t *testing.T) {
	o := ObservedOf(Replicas(4, policy.Mix{Managed: true}), 4) // 4 on-demand, the floor is 3
	o.Budgets = []Budget{{Name: "web"}}
	o.Pods[2].Ready, o.Pods[2].Budgets = false, []int{0} // of another selector than the rest
	if r := Plan(o, PolicyOf(100, 3), manyMoves, Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r.Evictions)
	}
}

func TestARefusalIsAWaitAndSoIsACeiling(t *testing.T) {
	r := Plan(budgeted(), PolicyOf(0, 0), manyMoves, Epoch)
	r.Refused(2, "web", "needs 9 healthy pods", Epoch.Add(5*time.Second))
	r.Refused(1, "web", "needs 9 healthy pods", Epoch.Add(7*time.Second))
	r.Deferred(3, "member", Epoch.Add(time.Second))
	w := WaitOf(&r, WaitBudget)
	if w == nil || w.Replicas != 3 || !w.Until.Equal(Epoch.Add(5*time.Second)) || !strings.Contains(w.Reason, "9 healthy") {
		t.Errorf("%+v", r.Waits)
	}
	if w := WaitOf(&r, WaitCeiling); w == nil || w.Subject != "member" || !r.Recheck.Equal(Epoch.Add(time.Second)) {
		t.Errorf("%+v", r)
	}
}

func TestAPausedWorkloadIsStampedAndNotMoved(t *testing.T) {
	s := manyMoves
	s.Paused = true
	o := budgeted()
	o.Pods[3].Slot = NoSlot
	DoomSlots(o.Pods, Doom{Node: "n"}, 1)
	r := Plan(o, PolicyOf(0, 0), s, Epoch)
	if len(r.Evictions)+len(r.Releases) > 0 || len(r.Stamps) == 0 || r.State != StateWaiting || WaitOf(&r, WaitPaused) == nil {
		t.Errorf("%+v", r)
	}
	if r := Plan(ObservedOf(Replicas(4, SpotOnly), 4), PolicyOf(100, 0), s, Epoch); r.State != StateConverged || len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestReadOnlyModeSaysWhoseItIs(t *testing.T) {
	s := manyMoves
	s.ReadOnly, s.ReadOnlyBy = true, "namespace shop"
	r := Plan(budgeted(), PolicyOf(0, 0), s, Epoch)
	if r.State != StateReadOnly || !strings.HasSuffix(r.Reason, "namespace shop is in read-only mode") || WaitOf(&r, WaitReadOnly) == nil {
		t.Errorf("%+v", r)
	}
	o := ObservedOf(DoomSlots(Replicas(4, SpotOnly), Doom{Node: "n"}, 1), 4)
	if r := Plan(o, PolicyOf(100, 0), s, Epoch); r.State != StateReadOnly || len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestPodsAreStampedOnceForAPolicyAndNotWithEveryBatch(t *testing.T) {
	for _, percent := range []int{10, 30, 100} {
		o := ObservedOf(Replicas(20, policy.Mix{Percent: 70, Floor: 1, Managed: true}), 20)
		for i := range o.Pods { // moves are at full pace
			o.Pods[i].Moved, o.Pods[i].UnreadySince = true, Epoch.Add(-time.Minute)
		}
		r := Plan(o, PolicyOf(percent, 1), manyMoves, Epoch)
		if len(r.Evictions) != 5 {
			t.Fatalf("%d%%: %d evictions", percent, len(r.Evictions))
		}
		for i := range o.Pods {
			for _, s := range r.Stamps {
				if s.Pod == o.Pods[i].UID {
					o.Pods[i].Slot, o.Pods[i].DeletionCost = s.Slot, s.DeletionCost
				}
			}
			o.Pods[i].Evicted = slices.Contains(Names(r.Evictions), o.Pods[i].Name)
		}
		if r := Plan(o, PolicyOf(percent, 1), manyMoves, Epoch); len(r.Stamps) > 0 {
			t.Errorf("%d%%: %+v", percent, r.Stamps)
		}
	}
	if r := Plan(dryPods(), PolicyOf(70, 0), manyMoves, Epoch); len(r.Evictions) != 6 || len(r.Stamps) > 0 {
		t.Errorf("drought: %d evictions, stamps %+v", len(r.Evictions), r.Stamps)
	}
}
