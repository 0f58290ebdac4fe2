package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheFirstBatchIsOneReplicaWhateverTheSizeOfTheWorkload(t *testing.T) {
	for _, n := range []int{100, 1000, 5000} {
		for _, percent := range []int{0, 100} {
			r := plan.Plan(plantest.ObservedOf(plantest.Replicas(n, policy.Mix{Percent: 100 - percent, Managed: true}), n), spottest.PolicyOf(percent, 0), plantest.DefaultSettings, spottest.Epoch)
			if len(r.Evictions) != 1 {
				t.Errorf("%d replicas to %d %%: %d go first", n, percent, len(r.Evictions))
			}
		}
	}
}

func TestABatchIsTwiceTheOneBeforeUpToTheLimit(t *testing.T) {
	var batches []int
	for _, ready := range []int{0, 1, 3, 7, 15, 40} {
		r := plan.Plan(plantest.ObservedOf(plantest.Arrived(plantest.Replicas(100, spottest.SpotOnly), ready, capacity.OnDemand), 100+ready), spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
		batches = append(batches, len(r.Evictions))
	}
	if diff := cmp.Diff([]int{1, 2, 4, 8, 11, 14}, batches); diff != "" {
		t.Error(diff)
	}
	long := plantest.Arrived(plantest.Replicas(100, spottest.SpotOnly), 7, capacity.OnDemand)
	for i := range long[100:] {
		long[100+i].UnreadySince = spottest.Epoch.Add(-plan.ProvenFor)
	}
	if r := plan.Plan(plantest.ObservedOf(long, 107), spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("%d go where nothing has arrived for long", len(r.Evictions))
	}
}

func TestTheSlowStartTakesNoMoreThanTheLimitWithinACoolDown(t *testing.T) {
	o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(100, spottest.SpotOnly), 7, capacity.OnDemand), 107)
	for i := range 7 {
		o.Pods[100+i].Created = spottest.Epoch.Add(-time.Second)
	}
	o.LastMove = spottest.Epoch.Add(-2 * time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 3 {
		t.Errorf("%d go where seven of ten have gone", len(r.Evictions))
	}
	o.Pods = plantest.Arrived(o.Pods, 3, capacity.OnDemand)
	for i := range 3 {
		o.Pods[107+i].Created = spottest.Epoch.Add(-time.Second)
	}
	o.Replicas, o.Owners[0].Replicas = 110, 110
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plan.Settings{MaxMoves: policy.MoveLimit{Count: 10}, Cooldown: time.Hour}, spottest.Epoch)
	if w := plantest.WaitOf(&r, plan.WaitCooldown); len(r.Evictions) != 0 || w == nil || !w.Until.Equal(o.LastMove.Add(time.Hour)) {
		t.Errorf("%+v", r)
	}
}

// Replicas that were moved wait for nodes that nobody makes. They used to count as stuck after five minutes, and others followed.
func TestNoReplicaJoinsThoseThatWaitForANode(t *testing.T) {
	for _, from := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		pods := plantest.Replicas(100, policy.Mix{Percent: map[capacity.Type]int{capacity.Spot: 100, capacity.OnDemand: 0}[from], Managed: true})
		pods[99].Capacity = from.Other()
		plantest.PendingFor(&pods[99], 6*time.Hour)
		percent := map[capacity.Type]int{capacity.Spot: 0, capacity.OnDemand: 100}[from]
		r := plan.Plan(plantest.ObservedOf(pods, 100), spottest.PolicyOf(percent, 0), plantest.DefaultSettings, spottest.Epoch)
		if len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitReplacement) == nil || !strings.Contains(r.Reason, "waits for a node with "+string(from.Other())) {
			t.Errorf("from %s: %s: %s", from, r.State, r.Reason)
		}
	}
}

func TestWhereOnDemandHasNoRoomReplicasAboveTheFloorGoToSpot(t *testing.T) {
	m := policy.Mix{Percent: 50, Floor: 2, Managed: true}
	pods := plantest.Replicas(10, m) // five on-demand
	for i := range pods {
		if isOnDemand(&pods[i]) {
			plantest.PendingFor(&pods[i], 10*time.Minute)
		}
	}
	o := plantest.ObservedOf(pods, 10)
	p := spottest.PolicyOf(50, 2)
	p.Window = spottest.MustWindow(t, "0 4 * * *", "1h")
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("nothing says that on-demand is dry: %+v", r.Evictions)
	}
	o.Owners[0].OnDemandDrySince = spottest.Epoch.Add(-time.Minute)
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict insufficient-capacity": 3}, plantest.Purposes(&r)); diff != "" {
		t.Errorf("three are above the floor: %s", diff)
	}
	if left := plantest.Names(r.Evictions); slices.Contains(left, "web-0") || slices.Contains(left, "web-1") {
		t.Errorf("slots of the floor are given up: %v", left)
	}
	o.Pods[9].Capacity, o.Pods[9].NodeComing = capacity.OnDemand, true
	plantest.PendingFor(&o.Pods[9], 10*time.Minute)
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); slices.Contains(plantest.Names(r.Evictions), "web-9") {
		t.Error("a node is coming for it")
	}
	o.Owners[0].DrySince = spottest.Epoch.Add(-time.Minute)
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("neither has room, and pods go to and fro: %+v", r.Evictions)
	}
}

func TestReplicasStayOnSpotWhileOnDemandHasNoRoom(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, spottest.SpotOnly), 10)
	o.Owners[0].OnDemandDrySince = spottest.Epoch.Add(-time.Hour)
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	w := plantest.WaitOf(&r, plan.WaitDry)
	if len(r.Evictions) > 0 || r.State != plan.StateWaiting || w == nil || w.Replicas != 10 || !strings.HasPrefix(r.Reason, "10 replicas stay on spot: on-demand has had no room") {
		t.Errorf("%+v", r)
	}
}

func TestAReplicaIsNotThereBeforeItHasBeenReadyForMinReadySeconds(t *testing.T) {
	o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(20, spottest.SpotOnly), 1, capacity.OnDemand), 21)
	o.MinReady = 2 * time.Minute
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) > 0 || !r.Recheck.Equal(spottest.Epoch.Add(time.Minute)) {
		t.Errorf("ready for one minute of two: %+v", r)
	}
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch.Add(time.Minute)); len(r.Evictions) != 2 {
		t.Errorf("ready for two minutes: %+v", r)
	}
	o = releasing(1, 1, 0)
	o.MinReady = 2 * time.Minute
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("a stand-in goes: %+v", r.Evictions)
	}
}

// stuckRollout are ten replicas on spot, and one of a new revision that does not come up.
func stuckRollout(since time.Duration) plan.Observed {
	pods := plantest.Replicas(10, spottest.SpotOnly)
	bad := pods[0]
	bad.UID, bad.Name, bad.Owner, bad.Ready, bad.Capacity = "bad", "web-bad", "new-set", false, capacity.OnDemand
	bad.Created, bad.UnreadySince = spottest.Epoch.Add(-since), spottest.Epoch.Add(-since)
	o := plantest.ObservedOf(append(pods, bad), 10)
	o.Owners = append(o.Owners, plan.Owner{UID: "new-set", Name: "new-set", Replicas: 1})
	o.Rolling = true
	return o
}

func TestAStalledRolloutDoesNotKeepTheFloorFromBeingRestored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *plan.Observed)
		since  time.Duration
		floor  int
		moves  int
	}{
		"nothing has come of it for long":         {func(*plan.Observed) {}, time.Hour, 5, 1},
		"it goes on":                              {func(*plan.Observed) {}, time.Minute, 5, 0},
		"its controller has given it up":          {func(o *plan.Observed) { o.Stalled = true }, time.Minute, 5, 1},
		"a replica that was moved is no progress": {func(o *plan.Observed) { o.Pods[3].Moved, o.Pods[3].Created = true, spottest.Epoch.Add(-time.Minute) }, time.Hour, 5, 1},
		"the mix alone waits for its end":         {func(*plan.Observed) {}, time.Hour, 0, 0},
		"a StatefulSet is left alone":             {func(o *plan.Observed) { o.Ordinals = true }, time.Hour, 5, 0},
	} {
		o := stuckRollout(c.since)
		c.change(&o)
		r := plan.Plan(o, spottest.PolicyOf(50, c.floor), plantest.DefaultSettings, spottest.Epoch)
		if len(r.Evictions) != c.moves || (c.moves == 0 && r.State == plan.StateConverged) {
			t.Errorf("%s: %d moves; %s: %s", name, len(r.Evictions), r.State, r.Reason)
		}
	}
	o := stuckRollout(time.Hour)
	for i := range 4 {
		o.Pods[i].Capacity = capacity.OnDemand
	}
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 5}
	for i := range 4 {
		o.Pods[i].Moved, o.Pods[i].UnreadySince = true, spottest.Epoch.Add(-time.Minute)
	}
	if r := plan.Plan(o, spottest.PolicyOf(0, 5), s, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("one is missing in the floor, and %d move", len(r.Evictions))
	}
}

func TestWhenAWorkloadShrinksPodsWithoutASlotGoBeforeTheFloor(t *testing.T) {
	m := policy.Mix{Percent: 50, Floor: 3, Managed: true}
	pods := plantest.Replicas(10, m)
	for i := 5; i < 10; i++ { // these came while the webhook was away
		pods[i].Slot, pods[i].DeletionCost, pods[i].Capacity, pods[i].Created = plan.NoSlot, policy.NoCost, capacity.Spot, spottest.Epoch.Add(-time.Minute)
	}
	slices.SortFunc(pods, func(a, b plan.Pod) int { return plantest.DeletedFirst(&a, &b) })
	var left capacity.Tally
	for _, pod := range pods[6:] {
		left.Add(pod.Capacity, 1)
	}
	if left.OnDemand != 3 {
		t.Errorf("of ten replicas four are left, %d of them on-demand", left.OnDemand)
	}
}

func TestCostsOfBeforeAndOfAnotherFloorAreWrittenAnew(t *testing.T) {
	pods := plantest.Replicas(4, policy.Mix{Percent: 50, Floor: 3, Managed: true})
	pods[0].DeletionCost, pods[1].DeletionCost = policy.ParseCost("0"), policy.ParseCost("-1") // of a hub of before
	pods[3].DeletionCost = policy.ParseCost(policy.Mix{Floor: 4}.Cost(3))
	r := plan.Plan(plantest.ObservedOf(pods, 4), spottest.PolicyOf(50, 3), plantest.DefaultSettings, spottest.Epoch)
	want := []plan.Assignment{{Pod: "0", Name: "web-0", Slot: 0, DeletionCost: "1000000"}, {Pod: "1", Name: "web-1", Slot: 1, DeletionCost: "999999"},
		{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}
	if diff := cmp.Diff(want, r.Assignments); diff != "" {
		t.Error(diff)
	}
}

func TestACostIsOursOnlyAsWeWriteIt(t *testing.T) {
	for cost, want := range map[string]bool{"-7": true, "999993": true, "7": false, "-07": false, "+7": false, "": false, "-": false, "-8": false, "0": false, "1000000": false, "99999999999": false} {
		if own := policy.ParseCost(cost).Own(7); own != want {
			t.Errorf("%q: %v", cost, own)
		}
	}
	if !policy.ParseCost("0").Own(0) {
		t.Error("slot 0 without a floor")
	}
	if policy.ParseCost("-0").Own(0) {
		t.Error("-0")
	}
	if policy.ParseCost("1").Own(plan.NoSlot) {
		t.Error("a pod without a slot")
	}
}

func TestAFloorThatNoBudgetProtectsIsSaidSo(t *testing.T) {
	for name, c := range map[string]struct {
		budgets []plan.Budget
		unknown bool
		age     time.Duration
		want    bool
	}{
		"none":                      {nil, false, time.Hour, true},
		"one that keeps fewer":      {[]plan.Budget{{Name: "web", Desired: 2}}, false, time.Hour, true},
		"one that keeps as many":    {[]plan.Budget{{Name: "web", Desired: 3}}, false, time.Hour, false},
		"nobody knows":              {nil, true, time.Hour, false},
		"it may still be created":   {nil, false, time.Second, false},
		"one of two keeps them all": {[]plan.Budget{{Name: "a", Desired: 1}, {Name: "b", Desired: 10}}, false, time.Hour, false},
	} {
		o := plantest.ObservedOf(plantest.Replicas(10, seventyOverThree), 10)
		o.Budgets, o.BudgetsUnknown = c.budgets, c.unknown
		for i := range o.Pods {
			o.Pods[i].Created = spottest.Epoch.Add(-c.age)
			for at := range c.budgets {
				o.Pods[i].Budgets = append(o.Pods[i].Budgets, at)
			}
		}
		r := plan.Plan(o, spottest.PolicyOf(70, 3), plantest.DefaultSettings, spottest.Epoch)
		if said := len(r.Notes) == 1 && strings.Contains(r.Notes[0], "3 replicas"); r.Unprotected != c.want || said != c.want {
			t.Errorf("%s: %v, notes %q", name, r.Unprotected, r.Notes)
		}
	}
}

func TestALadderOfFallBacksIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		policy   policy.Policy
		patience time.Duration
		want     string
	}{
		"with a floor":    {spottest.PolicyOf(70, 2), 3 * time.Minute, "If spot has no room for 3m0s, new replicas go on-demand until it has room again. If on-demand has no room, new replicas above the floor of 2 go to spot and the floor waits. If neither has room, all new replicas wait for a node."},
		"without":         {spottest.PolicyOf(70, 0), time.Minute, "If spot has no room for 1m0s, new replicas go on-demand until it has room again. If on-demand has no room, new replicas go to spot. If neither has room, all new replicas wait for a node."},
		"no spot is used": {spottest.PolicyOf(0, 2), time.Minute, ""},
	} {
		if got := plan.ExplainFallBacks(&c.policy, c.patience); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
