package spot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// pendingFor makes a pod one for which the scheduler has found no node for so long.
func (p *Pod) pendingFor(long time.Duration) {
	p.Bound, p.Ready, p.Moved = false, false, true
	p.Created, p.UnreadySince, p.UnschedulableSince = epoch.Add(-long), epoch.Add(-long), epoch.Add(-long)
}

func TestTheFirstBatchIsOneReplicaWhateverTheSizeOfTheWorkload(t *testing.T) {
	for _, n := range []int{100, 1000, 5000} {
		for _, percent := range []int{0, 100} {
			r := Plan(observedOf(replicas(n, policy.Mix{Percent: 100 - percent, Managed: true}), n), policyOf(percent, 0), testSettings, epoch)
			if len(r.Evictions) != 1 {
				t.Errorf("%d replicas to %d %%: %d go first", n, percent, len(r.Evictions))
			}
		}
	}
}

func TestABatchIsTwiceTheOneBeforeUpToTheLimit(t *testing.T) {
	var batches []int
	for _, ready := range []int{0, 1, 3, 7, 15, 40} {
		r := Plan(observedOf(arrived(replicas(100, spotOnly), ready, capacity.OnDemand), 100+ready), policyOf(0, 0), testSettings, epoch)
		batches = append(batches, len(r.Evictions))
	}
	if diff := cmp.Diff([]int{1, 2, 4, 8, 11, 14}, batches); diff != "" {
		t.Error(diff)
	}
	long := arrived(replicas(100, spotOnly), 7, capacity.OnDemand)
	for i := range long[100:] {
		long[100+i].UnreadySince = epoch.Add(-provenFor)
	}
	if r := Plan(observedOf(long, 107), policyOf(0, 0), testSettings, epoch); len(r.Evictions) != 1 {
		t.Errorf("%d go where nothing has arrived for long", len(r.Evictions))
	}
}

func TestTheSlowStartTakesNoMoreThanTheLimitWithinACoolDown(t *testing.T) {
	o := observedOf(arrived(replicas(100, spotOnly), 7, capacity.OnDemand), 107)
	for i := range 7 {
		o.Pods[100+i].Created = epoch.Add(-time.Second)
	}
	o.LastMove = epoch.Add(-2 * time.Second)
	if r := Plan(o, policyOf(0, 0), testSettings, epoch); len(r.Evictions) != 3 {
		t.Errorf("%d go where seven of ten have gone", len(r.Evictions))
	}
	o.Pods = arrived(o.Pods, 3, capacity.OnDemand)
	for i := range 3 {
		o.Pods[107+i].Created = epoch.Add(-time.Second)
	}
	o.Replicas, o.Owners[0].Replicas = 110, 110
	r := Plan(o, policyOf(0, 0), Settings{MaxMoves: policy.MoveLimit{Count: 10}, Cooldown: time.Hour}, epoch)
	if w := waitOf(&r, WaitCooldown); len(r.Evictions) != 0 || w == nil || !w.Until.Equal(o.LastMove.Add(time.Hour)) {
		t.Errorf("%+v", r)
	}
}

// Replicas that were moved wait for nodes that nobody makes. They used to count as stuck after five minutes, and others followed.
func TestNoReplicaJoinsThoseThatWaitForANode(t *testing.T) {
	for _, from := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		pods := replicas(100, policy.Mix{Percent: map[capacity.Type]int{capacity.Spot: 100, capacity.OnDemand: 0}[from], Managed: true})
		pods[99].Capacity = from.Other()
		pods[99].pendingFor(6 * time.Hour)
		percent := map[capacity.Type]int{capacity.Spot: 0, capacity.OnDemand: 100}[from]
		r := Plan(observedOf(pods, 100), policyOf(percent, 0), testSettings, epoch)
		if len(r.Evictions) > 0 || waitOf(&r, WaitReplacement) == nil || !strings.Contains(r.Reason, "waits for a node with "+string(from.Other())) {
			t.Errorf("from %s: %s: %s", from, r.State, r.Reason)
		}
	}
}

func TestWhereOnDemandHasNoRoomReplicasAboveTheFloorGoToSpot(t *testing.T) {
	m := policy.Mix{Percent: 50, Floor: 2, Managed: true}
	pods := replicas(10, m) // five on-demand
	for i := range pods {
		if isOnDemand(&pods[i]) {
			pods[i].pendingFor(10 * time.Minute)
		}
	}
	o := observedOf(pods, 10)
	p := policyOf(50, 2)
	p.Window = mustWindow(t, "0 4 * * *", "1h")
	if r := Plan(o, p, testSettings, epoch); len(r.Evictions) > 0 {
		t.Errorf("nothing says that on-demand is dry: %+v", r.Evictions)
	}
	o.Owners[0].OnDemandDrySince = epoch.Add(-time.Minute)
	r := Plan(o, p, testSettings, epoch)
	if diff := cmp.Diff(map[string]int{"evict drought": 3}, purposes(&r)); diff != "" {
		t.Errorf("three are above the floor: %s", diff)
	}
	if left := names(r.Evictions); slices.Contains(left, "web-0") || slices.Contains(left, "web-1") {
		t.Errorf("slots of the floor are given up: %v", left)
	}
	o.Pods[9].Capacity, o.Pods[9].NodeComing = capacity.OnDemand, true
	o.Pods[9].pendingFor(10 * time.Minute)
	if r := Plan(o, p, testSettings, epoch); slices.Contains(names(r.Evictions), "web-9") {
		t.Error("a node is coming for it")
	}
	o.Owners[0].DrySince = epoch.Add(-time.Minute)
	if r := Plan(o, p, testSettings, epoch); len(r.Evictions) > 0 {
		t.Errorf("neither has room, and pods go to and fro: %+v", r.Evictions)
	}
}

func TestReplicasStayOnSpotWhileOnDemandHasNoRoom(t *testing.T) {
	o := observedOf(replicas(10, spotOnly), 10)
	o.Owners[0].OnDemandDrySince = epoch.Add(-time.Hour)
	r := Plan(o, policyOf(0, 0), testSettings, epoch)
	w := waitOf(&r, WaitDry)
	if len(r.Evictions) > 0 || r.State != StateWaiting || w == nil || w.Replicas != 10 || !strings.HasPrefix(r.Reason, "10 replicas stay on spot: on-demand has had no room") {
		t.Errorf("%+v", r)
	}
}

func TestAReplicaIsNotThereBeforeItHasBeenReadyForMinReadySeconds(t *testing.T) {
	o := observedOf(arrived(replicas(20, spotOnly), 1, capacity.OnDemand), 21)
	o.MinReady = 2 * time.Minute
	r := Plan(o, policyOf(0, 0), testSettings, epoch)
	if len(r.Evictions) > 0 || !r.Recheck.Equal(epoch.Add(time.Minute)) {
		t.Errorf("ready for one minute of two: %+v", r)
	}
	if r := Plan(o, policyOf(0, 0), testSettings, epoch.Add(time.Minute)); len(r.Evictions) != 2 {
		t.Errorf("ready for two minutes: %+v", r)
	}
	o = releasing(1, 1, 0)
	o.MinReady = 2 * time.Minute
	if r := Plan(o, policyOf(0, 0), testSettings, epoch); len(r.Evictions) > 0 {
		t.Errorf("a stand-in goes: %+v", r.Evictions)
	}
}

// stuckRollout are ten replicas on spot, and one of a new revision that does not come up.
func stuckRollout(since time.Duration) Observed {
	pods := replicas(10, spotOnly)
	bad := pods[0]
	bad.UID, bad.Name, bad.Owner, bad.Ready, bad.Capacity = "bad", "web-bad", "new-set", false, capacity.OnDemand
	bad.Created, bad.UnreadySince = epoch.Add(-since), epoch.Add(-since)
	o := observedOf(append(pods, bad), 10)
	o.Owners = append(o.Owners, Owner{UID: "new-set", Name: "new-set", Replicas: 1})
	o.Rolling = true
	return o
}

func TestAStalledRolloutDoesNotKeepTheFloorFromBeingRestored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Observed)
		since  time.Duration
		floor  int
		moves  int
	}{
		"nothing has come of it for long":         {func(*Observed) {}, time.Hour, 5, 1},
		"it goes on":                              {func(*Observed) {}, time.Minute, 5, 0},
		"its controller has given it up":          {func(o *Observed) { o.Stalled = true }, time.Minute, 5, 1},
		"a replica that was moved is no progress": {func(o *Observed) { o.Pods[3].Moved, o.Pods[3].Created = true, epoch.Add(-time.Minute) }, time.Hour, 5, 1},
		"the mix alone waits for its end":         {func(*Observed) {}, time.Hour, 0, 0},
		"a StatefulSet is left alone":             {func(o *Observed) { o.Ordinals = true }, time.Hour, 5, 0},
	} {
		o := stuckRollout(c.since)
		c.change(&o)
		r := Plan(o, policyOf(50, c.floor), testSettings, epoch)
		if len(r.Evictions) != c.moves || (c.moves == 0 && r.State == StateConverged) {
			t.Errorf("%s: %d moves; %s: %s", name, len(r.Evictions), r.State, r.Reason)
		}
	}
	o := stuckRollout(time.Hour)
	for i := range 4 {
		o.Pods[i].Capacity = capacity.OnDemand
	}
	s := testSettings
	s.MaxMoves = policy.MoveLimit{Count: 5}
	for i := range 4 {
		o.Pods[i].Moved, o.Pods[i].UnreadySince = true, epoch.Add(-time.Minute)
	}
	if r := Plan(o, policyOf(0, 5), s, epoch); len(r.Evictions) != 1 {
		t.Errorf("one is missing in the floor, and %d move", len(r.Evictions))
	}
}

func TestWhenAWorkloadShrinksPodsWithoutASlotGoBeforeTheFloor(t *testing.T) {
	m := policy.Mix{Percent: 50, Floor: 3, Managed: true}
	pods := replicas(10, m)
	for i := 5; i < 10; i++ { // these came while the webhook was away
		pods[i].Slot, pods[i].DeletionCost, pods[i].Capacity, pods[i].Created = NoSlot, "", capacity.Spot, epoch.Add(-time.Minute)
	}
	slices.SortFunc(pods, func(a, b Pod) int { return deletedFirst(&a, &b) })
	var left capacity.Tally
	for _, pod := range pods[6:] {
		left.Add(pod.Capacity, 1)
	}
	if left.OnDemand != 3 {
		t.Errorf("of ten replicas four are left, %d of them on-demand", left.OnDemand)
	}
}

func TestCostsOfBeforeAndOfAnotherFloorAreStampedAnew(t *testing.T) {
	pods := replicas(4, policy.Mix{Percent: 50, Floor: 3, Managed: true})
	pods[0].DeletionCost, pods[1].DeletionCost = "0", "-1" // of a hub of before
	pods[3].DeletionCost = policy.Mix{Floor: 4}.Cost(3)
	r := Plan(observedOf(pods, 4), policyOf(50, 3), testSettings, epoch)
	want := []Stamp{{Pod: "0", Name: "web-0", Slot: 0, DeletionCost: "1000000"}, {Pod: "1", Name: "web-1", Slot: 1, DeletionCost: "999999"},
		{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}
	if diff := cmp.Diff(want, r.Stamps); diff != "" {
		t.Error(diff)
	}
}

func TestACostIsOursOnlyAsWeWriteIt(t *testing.T) {
	for cost, want := range map[string]bool{"-7": true, "999993": true, "7": false, "-07": false, "+7": false, "": false, "-": false, "-8": false, "0": false, "1000000": false, "99999999999": false} {
		if _, own := policy.OwnCost(7, cost); own != want {
			t.Errorf("%q: %v", cost, own)
		}
	}
	if _, own := policy.OwnCost(0, "0"); !own {
		t.Error("slot 0 without a floor")
	}
	if _, own := policy.OwnCost(0, "-0"); own {
		t.Error("-0")
	}
	if _, own := policy.OwnCost(NoSlot, "1"); own {
		t.Error("a pod without a slot")
	}
}

func TestAFloorThatNoBudgetProtectsIsSaidSo(t *testing.T) {
	for name, c := range map[string]struct {
		budgets []Budget
		unknown bool
		age     time.Duration
		want    bool
	}{
		"none":                      {nil, false, time.Hour, true},
		"one that keeps fewer":      {[]Budget{{Name: "web", Desired: 2}}, false, time.Hour, true},
		"one that keeps as many":    {[]Budget{{Name: "web", Desired: 3}}, false, time.Hour, false},
		"nobody knows":              {nil, true, time.Hour, false},
		"it may still be created":   {nil, false, time.Second, false},
		"one of two keeps them all": {[]Budget{{Name: "a", Desired: 1}, {Name: "b", Desired: 10}}, false, time.Hour, false},
	} {
		o := observedOf(replicas(10, seventyOverThree), 10)
		o.Budgets, o.BudgetsUnknown = c.budgets, c.unknown
		for i := range o.Pods {
			o.Pods[i].Created = epoch.Add(-c.age)
			for at := range c.budgets {
				o.Pods[i].Budgets = append(o.Pods[i].Budgets, at)
			}
		}
		r := Plan(o, policyOf(70, 3), testSettings, epoch)
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
		"with a floor":    {policyOf(70, 2), 3 * time.Minute, "If spot has no room for 3m0s, new replicas go on-demand until it has room again. If on-demand has no room, new replicas above the floor of 2 go to spot and the floor waits. If neither has room, all new replicas wait for a node."},
		"without":         {policyOf(70, 0), time.Minute, "If spot has no room for 1m0s, new replicas go on-demand until it has room again. If on-demand has no room, new replicas go to spot. If neither has room, all new replicas wait for a node."},
		"no spot is used": {policyOf(0, 2), time.Minute, ""},
	} {
		if got := ExplainFallBacks(&c.policy, c.patience); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A policy asks for capacity that is not there: twenty healthy replicas used to be given up for it.
func TestMovesIntoCapacityThatIsNotThereCostOneReplica(t *testing.T) {
	for _, percent := range []int{100, 0} {
		c := newSimCluster(3)
		c.strict = true
		c.addNode(map[int]capacity.Type{100: capacity.Spot, 0: capacity.OnDemand}[percent], 40)
		w := &simWorkload{name: "w", replicas: 40, size: 1, policy: policyOf(percent, 0), settings: testSettings}
		c.workloads = append(c.workloads, w)
		c.newSet(w, w.replicas)
		h := newSimHub(c)
		h.until(t, "at rest", 2*time.Minute, func() bool { return h.atRest() && h.exactMix() })
		w.policy = policyOf(100-percent, 0)
		clear(h.moves)
		for range 900 {
			h.tick(time.Second, 0)
			h.deliver(0)
		}
		if _, ready := h.supply(w); ready < 39 || h.moves[w] != 1 {
			t.Errorf("from %d %% on spot: %d replicas moved, %d of 40 are ready", percent, h.moves[w], ready)
		}
	}
}
