package plan_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Seven replicas have arrived where the others belong, and a tenth of them may move at a time.
func TestOneReplicaMovesAtATimeWhateverTheLimitWhereMoreCouldDoHarm(t *testing.T) {
	for name, c := range map[string]struct {
		to     capacity.Type
		change func(o *plan.Observed)
		moves  int
	}{
		"nothing speaks against the limit": {capacity.OnDemand, func(*plan.Observed) {}, 4},
		"each ordinal exists only once":    {capacity.OnDemand, func(o *plan.Observed) { o.Ordinals = true }, 1},
		"only a probe has found on-demand": {capacity.OnDemand, func(o *plan.Observed) { o.Owners[0].OnDemandProbing = true }, 1},
		"only a probe has found spot":      {capacity.Spot, func(o *plan.Observed) { o.Owners[0].SpotProbing = true }, 1},
		"the other type is probed":         {capacity.Spot, func(o *plan.Observed) { o.Owners[0].OnDemandProbing = true }, 4},
	} {
		mix, percent := spottest.SpotOnly, 0
		if c.to == capacity.Spot {
			mix.Percent, percent = 0, 100
		}
		o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(40, mix), 7, c.to), 47)
		c.change(&o)
		if r := plan.Plan(o, spottest.PolicyOf(percent, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != c.moves {
			t.Errorf("%s: %d move; %s: %s", name, len(r.Evictions), r.State, r.Reason)
		}
	}
}

// Whoever may create a ReplicaSet can ask for two thousand million replicas, and have a quota keep every pod away.
func TestReplicasThatNobodyCreatesTakeNoMemory(t *testing.T) {
	pods := plantest.Replicas(6, policy.Mix{Percent: 50, Managed: true})
	pods[3].Slot = plan.NoSlot
	pods[5].Slot = 1
	o := plantest.ObservedOf(pods, math.MaxInt32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("the plan allocates %d bytes", allocated)
	}
	slots := map[int]bool{}
	for _, a := range r.Assignments {
		slots[a.Slot] = true
	}
	if len(r.Assignments) != 2 || !slots[3] || !slots[5] {
		t.Errorf("the two pods without a slot of their own get the lowest of their type, which are free: %+v", r.Assignments)
	}
}

// A tenant may have thousands, and each plan is kept.
func TestAPlanNamesFewOfManyBudgets(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(3, spottest.SpotOnly), 3)
	const budgets = 5000
	var all []int
	for n := range budgets {
		o.Budgets = append(o.Budgets, plan.Budget{Name: fmt.Sprintf("%05d%s", budgets-n, strings.Repeat("a", 240)), Allowed: 1})
		all = append(all, n)
	}
	for i := range o.Pods {
		o.Pods[i].Budgets = all
	}
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || !r.WaitsFor(plan.WaitBudget) {
		t.Fatalf("%d pods of several budgets are evicted: %s", len(r.Evictions), r.Reason)
	}
	for _, w := range r.Waits {
		if w.Kind == plan.WaitBudget && (len(w.Reason) > 1000 || !strings.Contains(w.Reason, "5000 PodDisruptionBudgets (00001a") || !strings.Contains(w.Reason, "a and 4997 others)")) {
			t.Errorf("%d bytes: %s", len(w.Reason), w.Reason)
		}
	}
}
