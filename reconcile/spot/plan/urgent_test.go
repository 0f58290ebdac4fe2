package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// An interruption notice leaves two minutes: neither a share of ten percent, nor a cool-down, nor a window is for that.
func TestPodsOfANodeThatGoesAreReplacedAllAtOnceAndAtAnyTime(t *testing.T) {
	p := spottest.PolicyOf(100, 0)
	p.Window = spottest.MustWindow(t, "30 4 * * *", "1h")
	o := plantest.ObservedOf(plantest.InterruptSlots(plantest.Replicas(40, spottest.SpotOnly), plan.Interruption{Node: "n", Notice: "taint", By: spottest.Epoch.Add(2 * time.Minute)}, spottest.UpTo(20)...), 40)
	o.LastMove = spottest.Epoch.Add(-time.Second)
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 20}, plantest.Purposes(&r)); diff != "" || r.State != plan.StateMoving {
		t.Errorf("%s %s: %s", diff, r.State, r.Reason)
	}
	if r.Interrupted != 20 || r.SpotActual != 20 || len(r.Pods) != 20 || !r.Pods[0].Interrupted || !strings.Contains(r.Pods[0].Reason, "taint") {
		t.Errorf("%+v", r)
	}
}

func TestAnInterruptedPodServesOnWhileItsReplacementStartsIfItCanBeReleased(t *testing.T) {
	s := plantest.DefaultSettings
	s.Strategy = policy.StrategyRelease
	planFor := func(d plan.Interruption, change func(o *plan.Observed)) map[string]int {
		pods := plantest.InterruptSlots(plantest.Replicas(10, spottest.SpotOnly), d, 0, 1, 2)
		for i := range pods {
			pods[i].Hash = "abc"
		}
		o := plantest.ObservedOf(pods, 10)
		change(&o)
		r := plan.Plan(o, spottest.PolicyOf(100, 0), s, spottest.Epoch)
		return plantest.Purposes(&r)
	}
	soon := plan.Interruption{Node: "n", By: spottest.Epoch.Add(time.Minute)}
	for name, c := range map[string]struct {
		interruption plan.Interruption
		change       func(o *plan.Observed)
		want         map[string]int
	}{
		"released":              {soon, func(*plan.Observed) {}, map[string]int{"release interruption": 3}},
		"the last minute":       {plan.Interruption{By: spottest.Epoch.Add(plan.InterruptionMargin)}, func(*plan.Observed) {}, map[string]int{"evict interruption": 3}},
		"the node is gone":      {plan.Interruption{Gone: true}, func(*plan.Observed) {}, map[string]int{"evict interruption": 3}},
		"it does not serve":     {soon, func(o *plan.Observed) { o.Pods[0].Ready = false }, map[string]int{"evict interruption": 1, "release interruption": 2}},
		"somebody selects":      {soon, func(o *plan.Observed) { o.NoRelease = "Service web" }, map[string]int{"evict interruption": 3}},
		"no hash":               {soon, func(o *plan.Observed) { o.Pods[0].Hash = "" }, map[string]int{"evict interruption": 1, "release interruption": 2}},
		"no slot: it comes now": {soon, func(o *plan.Observed) { o.Pods[0].Slot = plan.NoSlot }, map[string]int{"release interruption": 2}},
	} {
		if diff := cmp.Diff(c.want, planFor(c.interruption, c.change)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnInterruptedPodWaitsForItsBudget(t *testing.T) {
	o := plantest.ObservedOf(plantest.InterruptSlots(plantest.Replicas(10, spottest.SpotOnly), plan.Interruption{Node: "n", Weight: plan.WeightDeadline}, 0, 1, 2), 10)
	o.Budgets = []plan.Budget{{Name: "web", Allowed: 1}}
	for i := range o.Pods {
		o.Pods[i].Budgets = []int{0}
	}
	r := plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	w := plantest.WaitOf(&r, plan.WaitBudget)
	if len(r.Evictions) != 1 || w == nil || w.Subject != "web" || w.Replicas != 2 || !r.Recheck.Equal(spottest.Epoch.Add(plan.BudgetAgain)) {
		t.Errorf("%+v", r)
	}
	o.Budgets[0].Allowed = 0
	r = plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateWaiting || len(r.Evictions) > 0 || !strings.Contains(r.Reason, "PodDisruptionBudget web") || r.Pods[0].Waits != plan.WaitBudget {
		t.Errorf("%s: %s", r.State, r.Reason)
	}
}

func TestAStatefulSetLosesOneInterruptedOrdinalAtATimeUntilTimeRunsOut(t *testing.T) {
	pods := plantest.Replicas(5, spottest.SpotOnly)
	for i := range pods {
		pods[i].Name = fmt.Sprintf("db-%d", i)
	}
	d := plan.Interruption{Node: "n", By: spottest.Epoch.Add(2 * time.Minute)}
	plantest.InterruptSlots(pods, d, 1, 3)
	o := plantest.ObservedOf(pods, 5)
	o.Ordinals = true
	planFor := func(at time.Time) plan.Result {
		return plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, at)
	}
	r := planFor(spottest.Epoch)
	if diff := cmp.Diff([]string{"db-3"}, plantest.Names(r.Evictions)); diff != "" || !r.Recheck.Equal(d.By.Add(-plan.InterruptionMargin)) {
		t.Error(diff, r.Recheck)
	}
	o.Pods[3].GoneBy = spottest.Epoch.Add(time.Second)
	r = planFor(spottest.Epoch)
	if len(r.Evictions) != 0 || r.State != plan.StateWaiting || plantest.WaitOf(&r, plan.WaitReplacement) == nil {
		t.Errorf("the next goes before the last is back: %+v", r)
	}
	if r = planFor(d.By.Add(-plan.InterruptionMargin)); len(r.Evictions) != 1 {
		t.Errorf("there is no more time to wait: %+v", r)
	}
}

// dryPods are 10 replicas at 70 %: three on-demand, one ready on spot, six that spot has no room for.
func dryPods() plan.Observed {
	m := policy.Mix{Percent: 70, Managed: true}
	pods, pending := plantest.Replicas(10, m), 0
	for i := range pods {
		if pods[i].Capacity == capacity.Spot && pending < 6 {
			pending++
			pods[i].Ready, pods[i].Bound, pods[i].UnschedulableSince = false, false, spottest.Epoch.Add(-time.Minute)
		}
	}
	o := plantest.ObservedOf(pods, 10)
	o.Owners[0].DrySince = spottest.Epoch
	return o
}

// Spot pods that stay pending made the predecessor leave a workload alone forever.
func TestPodsThatNoSpotNodeHasRoomForAreReplacedAtOnceAndNothingElseIs(t *testing.T) {
	p := spottest.PolicyOf(70, 0)
	p.Window = spottest.MustWindow(t, "30 4 * * *", "1h")
	o := dryPods()
	o.LastMove, o.Rolling = spottest.Epoch.Add(-time.Second), true
	o.Pods[3].Version = 17
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict insufficient-capacity": 6}, plantest.Purposes(&r)); diff != "" {
		t.Error(diff)
	}
	for _, e := range r.Evictions {
		if e.Ready {
			t.Errorf("%s served", e.Name)
		}
		if e.Name == "web-3" && e.Version != 17 {
			t.Error("a pod that has found a node since would be evicted")
		}
	}
	for i := range o.Pods { // the scheduler has not said no yet
		o.Pods[i].UnschedulableSince = time.Time{}
	}
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r.Evictions)
	}
	o = dryPods()
	o.Owners[0].DrySince = time.Time{}
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("spot is not dry: %+v", r.Evictions)
	}
}

func TestWhereAnOwnerShrinksThePodsThatWaitAreItsOwnToTake(t *testing.T) {
	o := dryPods()
	o.Replicas, o.Owners[0].Replicas = 6, 6
	if r := plan.Plan(o, spottest.PolicyOf(70, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 2 {
		t.Errorf("6 pods wait, the owner takes 4 of them, and %d are replaced", len(r.Evictions))
	}
}

// Others evict healthy pods to probe whether spot is back.
func TestNoReadyReplicaIsEvictedToFindOutWhetherSpotIsBack(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Floor: 1, Managed: true}), 10) // all on-demand
	o.Owners[0].DrySince = spottest.Epoch.Add(-time.Hour)
	for _, strategy := range []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease} {
		s := plantest.DefaultSettings
		s.Strategy = strategy
		r := plan.Plan(o, spottest.PolicyOf(70, 1), s, spottest.Epoch)
		if len(r.Evictions)+len(r.Releases)+len(r.Assignments) > 0 || r.State != plan.StateWaiting || !r.Recheck.IsZero() {
			t.Errorf("%+v", r)
		}
		if w := plantest.WaitOf(&r, plan.WaitDry); w == nil || w.Replicas != 7 || !w.Since.Equal(spottest.Epoch.Add(-time.Hour)) {
			t.Errorf("%+v", r.Waits)
		}
	}
	o.Owners[0].DrySince = time.Time{}
	if r := plan.Plan(o, spottest.PolicyOf(70, 1), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 || r.Evictions[0].For != plan.PurposeMove {
		t.Errorf("after the drought replicas return at the rate of moves: %+v", r)
	}
	o = plantest.ObservedOf(plantest.Replicas(10, spottest.SpotOnly), 10)
	o.Owners[0].DrySince = spottest.Epoch
	if r := plan.Plan(o, spottest.PolicyOf(70, 1), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("what the policy wants off spot still goes: %+v", r)
	}
}

func TestWhileSpotIsDryNewPodsGoOnDemandWhateverTheirSlot(t *testing.T) {
	m := policy.Mix{Percent: 100, Managed: true, Dry: true}
	for name, a := range map[string]*slots.Accounting{"ReplicaSet": slots.NewAccounting(false), "StatefulSet": slots.NewAccounting(true)} {
		for i := range 5 {
			got := a.Reserve(slots.Ask{ID: fmt.Sprint(i), Wanted: 4, Ordinal: i, Mix: m, Final: true}, spottest.Epoch)
			if got.Capacity != capacity.OnDemand || got.Slot != min(i, 4) && name == "StatefulSet" {
				t.Errorf("%s: pod %d gets %+v", name, i, got)
			}
		}
	}
	a := slots.NewAccounting(false)
	for i := range 4 {
		a.Observe(&plan.Pod{UID: "p", Slot: i, Capacity: capacity.Spot, Version: uint64(i + 1)}, spottest.Epoch)
	}
	if got := a.Reserve(slots.Ask{ID: "guess", Wanted: 1, Mix: m, Final: true}, spottest.Epoch); got.Capacity != capacity.OnDemand {
		t.Errorf("%+v", got)
	}
	if got := a.Reserve(slots.Ask{ID: "unmanaged", Wanted: 3, Mix: policy.Mix{Dry: true}}, spottest.Epoch); got.Capacity != capacity.Unknown {
		t.Errorf("a workload without a policy is steered: %+v", got)
	}
}
