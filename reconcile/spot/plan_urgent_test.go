package spot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// An interruption notice leaves two minutes: neither a share of ten percent, nor a cool-down, nor a window is for that.
func TestPodsOfANodeThatGoesAreReplacedAllAtOnceAndAtAnyTime(t *testing.T) {
	p := PolicyOf(100, 0)
	p.Window = MustWindow(t, "30 4 * * *", "1h")
	o := ObservedOf(DoomSlots(Replicas(40, SpotOnly), Doom{Node: "n", Notice: "taint", By: Epoch.Add(2 * time.Minute)}, UpTo(20)...), 40)
	o.LastMove = Epoch.Add(-time.Second)
	r := Plan(o, p, DefaultSettings, Epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 20}, Purposes(&r)); diff != "" || r.State != StateMoving {
		t.Errorf("%s %s: %s", diff, r.State, r.Reason)
	}
	if r.Doomed != 20 || r.SpotActual != 20 || len(r.Pods) != 20 || !r.Pods[0].Doomed || !strings.Contains(r.Pods[0].Reason, "taint") {
		t.Errorf("%+v", r)
	}
}

func TestADoomedPodServesOnWhileItsReplacementStartsIfItCanBeReleased(t *testing.T) {
	s := DefaultSettings
	s.Strategy = policy.StrategyRelease
	plan := func(d Doom, change func(o *Observed)) map[string]int {
		pods := DoomSlots(Replicas(10, SpotOnly), d, 0, 1, 2)
		for i := range pods {
			pods[i].Hash = "abc"
		}
		o := ObservedOf(pods, 10)
		change(&o)
		r := Plan(o, PolicyOf(100, 0), s, Epoch)
		return Purposes(&r)
	}
	soon := Doom{Node: "n", By: Epoch.Add(time.Minute)}
	for name, c := range map[string]struct {
		doom   Doom
		change func(o *Observed)
		want   map[string]int
	}{
		"released":              {soon, func(*Observed) {}, map[string]int{"release interruption": 3}},
		"the last minute":       {Doom{By: Epoch.Add(DoomMargin)}, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"the node is gone":      {Doom{Gone: true}, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"it does not serve":     {soon, func(o *Observed) { o.Pods[0].Ready = false }, map[string]int{"evict interruption": 1, "release interruption": 2}},
		"somebody selects":      {soon, func(o *Observed) { o.NoRelease = "Service web" }, map[string]int{"evict interruption": 3}},
		"no hash":               {soon, func(o *Observed) { o.Pods[0].Hash = "" }, map[string]int{"evict interruption": 1, "release interruption": 2}},
		"no slot: it comes now": {soon, func(o *Observed) { o.Pods[0].Slot = NoSlot }, map[string]int{"release interruption": 2}},
	} {
		if diff := cmp.Diff(c.want, plan(c.doom, c.change)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestADoomedPodWaitsForItsBudget(t *testing.T) {
	o := ObservedOf(DoomSlots(Replicas(10, SpotOnly), Doom{Node: "n", Weight: WeightDeadline}, 0, 1, 2), 10)
	o.Budgets = []Budget{{Name: "web", Allowed: 1}}
	for i := range o.Pods {
		o.Pods[i].Budgets = []int{0}
	}
	r := Plan(o, PolicyOf(100, 0), DefaultSettings, Epoch)
	w := WaitOf(&r, WaitBudget)
	if len(r.Evictions) != 1 || w == nil || w.Subject != "web" || w.Replicas != 2 || !r.Recheck.Equal(Epoch.Add(BudgetAgain)) {
		t.Errorf("%+v", r)
	}
	o.Budgets[0].Allowed = 0
	r = Plan(o, PolicyOf(100, 0), DefaultSettings, Epoch)
	if r.State != StateWaiting || len(r.Evictions) > 0 || !strings.Contains(r.Reason, "PodDisruptionBudget web") || r.Pods[0].Waits != WaitBudget {
		t.Errorf("%s: %s", r.State, r.Reason)
	}
}

func TestAStatefulSetLosesOneDoomedOrdinalAtATimeUntilTimeRunsOut(t *testing.T) {
	pods := Replicas(5, SpotOnly)
	for i := range pods {
		pods[i].Name = fmt.Sprintf("db-%d", i)
	}
	d := Doom{Node: "n", By: Epoch.Add(2 * time.Minute)}
	DoomSlots(pods, d, 1, 3)
	o := ObservedOf(pods, 5)
	o.Ordinals = true
	plan := func(at time.Time) Result { return Plan(o, PolicyOf(100, 0), DefaultSettings, at) }
	r := plan(Epoch)
	if diff := cmp.Diff([]string{"db-3"}, Names(r.Evictions)); diff != "" || !r.Recheck.Equal(d.By.Add(-DoomMargin)) {
		t.Error(diff, r.Recheck)
	}
	o.Pods[3].GoneBy = Epoch.Add(time.Second)
	r = plan(Epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting || WaitOf(&r, WaitReplacement) == nil {
		t.Errorf("the next goes before the last is back: %+v", r)
	}
	if r = plan(d.By.Add(-DoomMargin)); len(r.Evictions) != 1 {
		t.Errorf("there is no more time to wait: %+v", r)
	}
}

// dryPods are 10 replicas at 70 %: three on-demand, one ready on spot, six that spot has no room for.
func dryPods() Observed {
	m := policy.Mix{Percent: 70, Managed: true}
	pods, pending := Replicas(10, m), 0
	for i := range pods {
		if pods[i].Capacity == capacity.Spot && pending < 6 {
			pending++
			pods[i].Ready, pods[i].Bound, pods[i].UnschedulableSince = false, false, Epoch.Add(-time.Minute)
		}
	}
	o := ObservedOf(pods, 10)
	o.Owners[0].DrySince = Epoch
	return o
}

// Spot pods that stay pending made the predecessor leave a workload alone for ever.
func TestPodsThatNoSpotNodeHasRoomForAreReplacedAtOnceAndNothingElseIs(t *testing.T) {
	p := PolicyOf(70, 0)
	p.Window = MustWindow(t, "30 4 * * *", "1h")
	o := dryPods()
	o.LastMove, o.Rolling = Epoch.Add(-time.Second), true
	o.Pods[3].Version = 17
	r := Plan(o, p, DefaultSettings, Epoch)
	if diff := cmp.Diff(map[string]int{"evict drought": 6}, Purposes(&r)); diff != "" {
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
	if r := Plan(o, p, DefaultSettings, Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r.Evictions)
	}
	o = dryPods()
	o.Owners[0].DrySince = time.Time{}
	if r := Plan(o, p, DefaultSettings, Epoch); len(r.Evictions) > 0 {
		t.Errorf("spot is not dry: %+v", r.Evictions)
	}
}

func TestWhereAnOwnerShrinksThePodsThatWaitAreItsOwnToTake(t *testing.T) {
	o := dryPods()
	o.Replicas, o.Owners[0].Replicas = 6, 6
	if r := Plan(o, PolicyOf(70, 0), DefaultSettings, Epoch); len(r.Evictions) != 2 {
		t.Errorf("6 pods wait, the owner takes 4 of them, and %d are replaced", len(r.Evictions))
	}
}

// Others evict healthy pods to probe whether spot is back.
func TestNoReadyReplicaIsEvictedToFindOutWhetherSpotIsBack(t *testing.T) {
	o := ObservedOf(Replicas(10, policy.Mix{Floor: 1, Managed: true}), 10) // all on-demand
	o.Owners[0].DrySince = Epoch.Add(-time.Hour)
	for _, strategy := range []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease} {
		s := DefaultSettings
		s.Strategy = strategy
		r := Plan(o, PolicyOf(70, 1), s, Epoch)
		if len(r.Evictions)+len(r.Releases)+len(r.Stamps) > 0 || r.State != StateWaiting || !r.Recheck.IsZero() {
			t.Errorf("%+v", r)
		}
		if w := WaitOf(&r, WaitDry); w == nil || w.Replicas != 7 || !w.Since.Equal(Epoch.Add(-time.Hour)) {
			t.Errorf("%+v", r.Waits)
		}
	}
	o.Owners[0].DrySince = time.Time{}
	if r := Plan(o, PolicyOf(70, 1), DefaultSettings, Epoch); len(r.Evictions) != 1 || r.Evictions[0].For != PurposeMove {
		t.Errorf("after the drought replicas return at the rate of moves: %+v", r)
	}
	o = ObservedOf(Replicas(10, SpotOnly), 10)
	o.Owners[0].DrySince = Epoch
	if r := Plan(o, PolicyOf(70, 1), DefaultSettings, Epoch); len(r.Evictions) != 1 {
		t.Errorf("what the policy wants off spot still goes: %+v", r)
	}
}

func TestWhileSpotIsDryNewPodsGoOnDemandWhateverTheirSlot(t *testing.T) {
	m := policy.Mix{Percent: 100, Managed: true, Dry: true}
	for name, a := range map[string]*Accounting{"ReplicaSet": NewAccounting(false), "StatefulSet": NewAccounting(true)} {
		for i := range 5 {
			got := a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 4, Ordinal: i, Mix: m, Final: true}, Epoch)
			if got.Capacity != capacity.OnDemand || got.Slot != min(i, 4) && name == "StatefulSet" {
				t.Errorf("%s: pod %d gets %+v", name, i, got)
			}
		}
	}
	a := NewAccounting(false)
	for i := range 4 {
		a.Observe(&Pod{UID: "p", Slot: i, Capacity: capacity.Spot, Version: uint64(i + 1)}, Epoch)
	}
	if got := a.Reserve(Ask{ID: "guess", Wanted: 1, Mix: m, Final: true}, Epoch); got.Capacity != capacity.OnDemand {
		t.Errorf("%+v", got)
	}
	if got := a.Reserve(Ask{ID: "unmanaged", Wanted: 3, Mix: policy.Mix{Dry: true}}, Epoch); got.Capacity != capacity.Unknown {
		t.Errorf("a workload without a policy is steered: %+v", got)
	}
}
