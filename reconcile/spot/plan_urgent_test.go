package spot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

var spotOnly = policy.Mix{Percent: 100, Managed: true}

// doom gives the pods of some slots a node that goes.
func doom(pods []Pod, d Doom, slots ...int) []Pod {
	for _, slot := range slots {
		pods[slot].Doom = &d
	}
	return pods
}

func upTo(n int) (slots []int) {
	for i := range n {
		slots = append(slots, i)
	}
	return slots
}

// purposes counts evictions and releases by what they are for.
func purposes(r *Result) map[string]int {
	n := map[string]int{}
	for _, e := range r.Evictions {
		n["evict "+string(e.For)]++
	}
	for _, e := range r.Releases {
		n["release "+string(e.Released.For)]++
	}
	return n
}

func waitOf(r *Result, kind WaitKind) *Wait {
	if at := slices.IndexFunc(r.Waits, func(w Wait) bool { return w.Kind == kind }); at >= 0 {
		return &r.Waits[at]
	}
	return nil
}

// An interruption notice leaves two minutes: neither a share of ten percent, nor a cool-down, nor a window is for that.
func TestPodsOfANodeThatGoesAreReplacedAllAtOnceAndAtAnyTime(t *testing.T) {
	p := policyOf(100, 0)
	p.Window = mustWindow(t, "30 4 * * *", "1h")
	o := observedOf(doom(replicas(40, spotOnly), Doom{Node: "n", Notice: "taint", By: epoch.Add(2 * time.Minute)}, upTo(20)...), 40)
	o.LastMove = epoch.Add(-time.Second)
	r := Plan(o, p, testSettings, epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 20}, purposes(&r)); diff != "" || r.State != StateMoving {
		t.Errorf("%s %s: %s", diff, r.State, r.Reason)
	}
	if r.Doomed != 20 || r.SpotActual != 20 || len(r.Pods) != 20 || !r.Pods[0].Doomed || !strings.Contains(r.Pods[0].Reason, "taint") {
		t.Errorf("%+v", r)
	}
}

func TestADoomedPodIsNoSupplyAndItsSlotIsFreeForItsReplacement(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Floor: 2, Managed: true}
	pods := replicas(6, m)
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], epoch)
	}
	doom(pods, Doom{}, 2)
	a.Observe(&pods[2], epoch)
	got := a.Reserve(Ask{ID: "r", Wanted: 6, Mix: m}, epoch)
	if got.Slot != 2 || got.Capacity != m.Of(2) || got.Doubt != DoubtNone {
		t.Errorf("the replacement gets %+v", got)
	}
	if !a.Free("2", epoch) || a.Free("2", epoch) {
		t.Error("a doomed pod is evicted once")
	}
	pods[2].Doom = nil
	a.Restore("2")
	a.Observe(&pods[2], epoch)
	if a.visible.All != 6 {
		t.Errorf("%d visible when its node stays after all", a.visible.All)
	}
}

func TestADoomedPodServesOnWhileItsReplacementStartsIfItCanBeReleased(t *testing.T) {
	s := testSettings
	s.Strategy = policy.StrategyRelease
	plan := func(d Doom, change func(o *Observed)) map[string]int {
		pods := doom(replicas(10, spotOnly), d, 0, 1, 2)
		for i := range pods {
			pods[i].Hash = "abc"
		}
		o := observedOf(pods, 10)
		change(&o)
		r := Plan(o, policyOf(100, 0), s, epoch)
		return purposes(&r)
	}
	soon := Doom{Node: "n", By: epoch.Add(time.Minute)}
	for name, c := range map[string]struct {
		doom   Doom
		change func(o *Observed)
		want   map[string]int
	}{
		"released":              {soon, func(*Observed) {}, map[string]int{"release interruption": 3}},
		"the last minute":       {Doom{By: epoch.Add(DoomMargin)}, func(*Observed) {}, map[string]int{"evict interruption": 3}},
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
	o := observedOf(doom(replicas(10, spotOnly), Doom{Node: "n", Weight: WeightDeadline}, 0, 1, 2), 10)
	o.Budgets = []Budget{{Name: "web", Allowed: 1}}
	for i := range o.Pods {
		o.Pods[i].Budgets = []int{0}
	}
	r := Plan(o, policyOf(100, 0), testSettings, epoch)
	w := waitOf(&r, WaitBudget)
	if len(r.Evictions) != 1 || w == nil || w.Subject != "web" || w.Replicas != 2 || !r.Recheck.Equal(epoch.Add(budgetAgain)) {
		t.Errorf("%+v", r)
	}
	o.Budgets[0].Allowed = 0
	r = Plan(o, policyOf(100, 0), testSettings, epoch)
	if r.State != StateWaiting || len(r.Evictions) > 0 || !strings.Contains(r.Reason, "PodDisruptionBudget web") || r.Pods[0].Waits != WaitBudget {
		t.Errorf("%s: %s", r.State, r.Reason)
	}
}

func TestAStatefulSetLosesOneDoomedOrdinalAtATimeUntilTimeRunsOut(t *testing.T) {
	pods := replicas(5, spotOnly)
	for i := range pods {
		pods[i].Name = fmt.Sprintf("db-%d", i)
	}
	d := Doom{Node: "n", By: epoch.Add(2 * time.Minute)}
	doom(pods, d, 1, 3)
	o := observedOf(pods, 5)
	o.Ordinals = true
	plan := func(at time.Time) Result { return Plan(o, policyOf(100, 0), testSettings, at) }
	r := plan(epoch)
	if diff := cmp.Diff([]string{"db-3"}, names(r.Evictions)); diff != "" || !r.Recheck.Equal(d.By.Add(-DoomMargin)) {
		t.Error(diff, r.Recheck)
	}
	o.Pods[3].GoneBy = epoch.Add(time.Second)
	r = plan(epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting || waitOf(&r, WaitReplacement) == nil {
		t.Errorf("the next goes before the last is back: %+v", r)
	}
	if r = plan(d.By.Add(-DoomMargin)); len(r.Evictions) != 1 {
		t.Errorf("there is no more time to wait: %+v", r)
	}
}

// dryPods are 10 replicas at 70 %: three on-demand, one ready on spot, six that spot has no room for.
func dryPods() Observed {
	m := policy.Mix{Percent: 70, Managed: true}
	pods, pending := replicas(10, m), 0
	for i := range pods {
		if pods[i].Capacity == capacity.Spot && pending < 6 {
			pending++
			pods[i].Ready, pods[i].Bound, pods[i].UnschedulableSince = false, false, epoch.Add(-time.Minute)
		}
	}
	o := observedOf(pods, 10)
	o.Owners[0].DrySince = epoch
	return o
}

// Spot pods that stay pending made the predecessor leave a workload alone for ever.
func TestPodsThatNoSpotNodeHasRoomForAreReplacedAtOnceAndNothingElseIs(t *testing.T) {
	p := policyOf(70, 0)
	p.Window = mustWindow(t, "30 4 * * *", "1h")
	o := dryPods()
	o.LastMove, o.Rolling = epoch.Add(-time.Second), true
	o.Pods[3].Version = 17
	r := Plan(o, p, testSettings, epoch)
	if diff := cmp.Diff(map[string]int{"evict drought": 6}, purposes(&r)); diff != "" {
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
	if r := Plan(o, p, testSettings, epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r.Evictions)
	}
	o = dryPods()
	o.Owners[0].DrySince = time.Time{}
	if r := Plan(o, p, testSettings, epoch); len(r.Evictions) > 0 {
		t.Errorf("spot is not dry: %+v", r.Evictions)
	}
}

func TestWhereAnOwnerShrinksThePodsThatWaitAreItsOwnToTake(t *testing.T) {
	o := dryPods()
	o.Replicas, o.Owners[0].Replicas = 6, 6
	if r := Plan(o, policyOf(70, 0), testSettings, epoch); len(r.Evictions) != 2 {
		t.Errorf("6 pods wait, the owner takes 4 of them, and %d are replaced", len(r.Evictions))
	}
}

// Others evict healthy pods to probe whether spot is back.
func TestNoReadyReplicaIsEvictedToFindOutWhetherSpotIsBack(t *testing.T) {
	o := observedOf(replicas(10, policy.Mix{Floor: 1, Managed: true}), 10) // all on-demand
	o.Owners[0].DrySince = epoch.Add(-time.Hour)
	for _, strategy := range []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease} {
		s := testSettings
		s.Strategy = strategy
		r := Plan(o, policyOf(70, 1), s, epoch)
		if len(r.Evictions)+len(r.Releases)+len(r.Stamps) > 0 || r.State != StateWaiting || !r.Recheck.IsZero() {
			t.Errorf("%+v", r)
		}
		if w := waitOf(&r, WaitDry); w == nil || w.Replicas != 7 || !w.Since.Equal(epoch.Add(-time.Hour)) {
			t.Errorf("%+v", r.Waits)
		}
	}
	o.Owners[0].DrySince = time.Time{}
	if r := Plan(o, policyOf(70, 1), testSettings, epoch); len(r.Evictions) != 1 || r.Evictions[0].For != PurposeMove {
		t.Errorf("after the drought replicas return at the rate of moves: %+v", r)
	}
	o = observedOf(replicas(10, spotOnly), 10)
	o.Owners[0].DrySince = epoch
	if r := Plan(o, policyOf(70, 1), testSettings, epoch); len(r.Evictions) != 1 {
		t.Errorf("what the policy wants off spot still goes: %+v", r)
	}
}

func TestWhileSpotIsDryNewPodsGoOnDemandWhateverTheirSlot(t *testing.T) {
	m := policy.Mix{Percent: 100, Managed: true, Dry: true}
	for name, a := range map[string]*Accounting{"ReplicaSet": NewAccounting(false), "StatefulSet": NewAccounting(true)} {
		for i := range 5 {
			got := a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 4, Ordinal: i, Mix: m, Final: true}, epoch)
			if got.Capacity != capacity.OnDemand || got.Slot != min(i, 4) && name == "StatefulSet" {
				t.Errorf("%s: pod %d gets %+v", name, i, got)
			}
		}
	}
	a := NewAccounting(false)
	for i := range 4 {
		a.Observe(&Pod{UID: "p", Slot: i, Capacity: capacity.Spot, Version: uint64(i + 1)}, epoch)
	}
	if got := a.Reserve(Ask{ID: "guess", Wanted: 1, Mix: m, Final: true}, epoch); got.Capacity != capacity.OnDemand {
		t.Errorf("%+v", got)
	}
	if got := a.Reserve(Ask{ID: "unmanaged", Wanted: 3, Mix: policy.Mix{Dry: true}}, epoch); got.Capacity != capacity.Unknown {
		t.Errorf("a workload without a policy is steered: %+v", got)
	}
}
