package spot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestNothingIsMovedWhileAPolicyIsInvalid(t *testing.T) {
	p := policy.Parse(DefaultKeys, Annotations("spot-percentage", "most"), nil, policy.Defaults{})
	pods := Replicas(4, policy.Mix{Percent: 100, Managed: true})
	pods[0].Slot = NoSlot
	r := Plan(ObservedOf(pods, 4), p, DefaultSettings, Epoch)
	if r.State != StateInvalid || len(r.Stamps)+len(r.Evictions) > 0 || r.SpotActual != 4 || r.OnDemandWanted != 4 {
		t.Errorf("%+v", r)
	}
	for _, part := range []string{DefaultKeys.SpotPercentage(), `"most"`, "a whole number from 0 to 100, with or without %"} {
		if !strings.Contains(r.Reason, part) {
			t.Errorf("the reason does not name %s: %s", part, r.Reason)
		}
	}
}

// Enabled without a value: the predecessor's controller and webhook disagreed, and evicted for ever.
func TestWithoutAnyValueReplicasAreCountedAndNeverMoved(t *testing.T) {
	pods := Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[3].Slot, pods[3].DeletionCost = NoSlot, ""
	r := Plan(ObservedOf(pods, 4), policy.Policy{}, DefaultSettings, Epoch)
	want := []Stamp{{Pod: "3", Name: "web-3", Slot: 3}} // a slot, so that it is seen, and no order in which to go
	if r.State != StateUnmanaged || len(r.Evictions) > 0 || r.SpotActual != 2 || r.OnDemandActual != 2 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, r.Stamps); diff != "" {
		t.Error(diff)
	}
}

func TestThePodsThatDoNotServeAreMovedFirst(t *testing.T) {
	pods := Replicas(10, policy.Mix{Percent: 100, Managed: true})
	pods[2].Ready = false                       // running, not ready
	pods[7].Ready, pods[7].Bound = false, false // pending
	pods[4].Created = Epoch.Add(-time.Minute)   // younger
	s := DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 4}
	r := Plan(ObservedOf(Arrived(pods, 3, capacity.OnDemand), 13), PolicyOf(50, 0), s, Epoch)
	// Slots 0, 2, 4, 6 and 8 are on-demand slots now: of the ready pods those on them go, from the highest down.
	if diff := cmp.Diff([]string{"web-7", "web-2", "web-8", "web-6"}, Names(r.Evictions)); diff != "" {
		t.Error(diff)
	}
}

func TestReplicasOnTheMoveCountAgainstTheLimit(t *testing.T) {
	full := policy.Mix{Percent: 100, Managed: true}
	s := DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	for name, c := range map[string]struct {
		change func(o *Observed)
		want   int
	}{
		"none":    {func(*Observed) {}, 3},
		"missing": {func(o *Observed) { o.Pods = o.Pods[2:]; o.LastMove = Epoch.Add(-time.Minute) }, 1},
		"going": {func(o *Observed) {
			o.Pods[0].GoneBy = Epoch.Add(time.Second)
			o.Pods[1].GoneBy = Epoch.Add(time.Second)
		}, 1},
		"evicted, still shown": {func(o *Observed) { o.Pods[0].Evicted = true; o.Pods[1].Evicted = true; o.Pods[2].Evicted = true }, 0},
		"gone long ago but shown": {func(o *Observed) {
			o.Pods = append(o.Pods, Pod{UID: "x", Owner: OwnerUID, GoneBy: Epoch.Add(-time.Second)})
		}, 3},
		"finished pods are no one": {func(o *Observed) { o.Pods = append(o.Pods, Pod{UID: "x", Owner: OwnerUID, Finished: true}) }, 3},
		"starting where they went": {func(o *Observed) {
			o.Pods[0].Capacity, o.Pods[0].Ready, o.Pods[0].UnreadySince = capacity.OnDemand, false, Epoch.Add(-time.Second)
		}, 2},
		"not ready where they leave": {func(o *Observed) { o.Pods[0].Ready, o.Pods[1].Ready = false, false }, 3},
	} {
		o := ObservedOf(Arrived(Replicas(20, full), 3, capacity.OnDemand), 23)
		c.change(&o)
		if r := Plan(o, PolicyOf(0, 0), s, Epoch); len(r.Evictions) != c.want {
			t.Errorf("%s: %d moves, want %d (%s: %s)", name, len(r.Evictions), c.want, r.State, r.Reason)
		}
	}
}

// Spot pods that stay pending made the predecessor leave a workload alone for ever.
func TestADroughtIsNoReasonToStayInIt(t *testing.T) {
	pods := Replicas(10, policy.Mix{Percent: 70, Managed: true})
	for i := range pods {
		if pods[i].Capacity == capacity.Spot {
			pods[i].Ready, pods[i].Bound, pods[i].UnreadySince = false, false, Epoch.Add(-time.Second)
		}
	}
	if r := Plan(ObservedOf(pods, 10), PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) != 1 || r.Evictions[0].Ready {
		t.Errorf("%+v", r)
	}
}

func TestAReplicaThatNeverComesUpDoesNotStopAWorkloadForEver(t *testing.T) {
	plan := func(broken int, since time.Duration) Result {
		pods := Replicas(9, policy.Mix{Percent: 50, Managed: true})
		for i := range pods {
			if pods[i].Capacity == capacity.OnDemand && broken > 0 {
				pods[i].Ready, pods[i].UnreadySince = false, Epoch.Add(-since)
				broken--
			}
		}
		return Plan(ObservedOf(pods, 9), PolicyOf(10, 0), DefaultSettings, Epoch)
	}
	if r := plan(1, time.Minute); len(r.Evictions) != 0 || !r.Recheck.Equal(Epoch.Add(StuckAfter-time.Minute)) {
		t.Errorf("it may still come up: %+v", r)
	}
	if r := plan(1, StuckAfter); len(r.Evictions) != 1 {
		t.Errorf("it does not come up: %+v", r)
	}
	if r := plan(2, time.Hour); len(r.Evictions) != 0 {
		t.Errorf("healthy replicas are drained into capacity that does not work: %+v", r)
	}
}

func TestAReplicaThatNobodyMakesDoesNotStopAWorkloadForEver(t *testing.T) {
	o := ObservedOf(Replicas(9, policy.Mix{Percent: 50, Managed: true}), 10)
	o.Pods[0].Created = Epoch.Add(-time.Minute)
	if r := Plan(o, PolicyOf(10, 0), DefaultSettings, Epoch); len(r.Evictions) != 0 || r.Recheck.IsZero() {
		t.Errorf("it may still come: %+v", r)
	}
	if r := Plan(o, PolicyOf(10, 0), DefaultSettings, Epoch.Add(time.Hour)); len(r.Evictions) != 1 {
		t.Errorf("nobody makes it: %+v", r)
	}
}

// The predecessor lost its cool-down with every restart.
func TestTheCoolDownIsReadOffTheCluster(t *testing.T) {
	o := ObservedOf(Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	o.Pods[5].Created = Epoch.Add(-2 * time.Second)
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) == 0 {
		t.Errorf("a pod that came by itself makes moves wait: %+v", r)
	}
	o.Pods[5].Moved = true
	r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch)
	if len(r.Evictions) != 0 || r.State != StateMoving || !r.Recheck.Equal(Epoch.Add(9*time.Second)) {
		t.Errorf("a pod that replaces one we evicted does not make moves wait: %+v", r)
	}
	o.Pods[5].Moved, o.LastMove = false, Epoch.Add(-9*time.Second)
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) != 0 || !r.Recheck.Equal(Epoch.Add(time.Second)) {
		t.Errorf("our own memory does not make moves wait: %+v", r)
	}
	o.Pods[5].Moved, o.LastMove, o.Pods[5].Created = true, time.Time{}, Epoch.Add(time.Hour)
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) == 0 {
		t.Errorf("a clock that is ahead stops moves: %+v", r)
	}
}

func TestMovesWaitForTheDisruptionWindow(t *testing.T) {
	p := PolicyOf(0, 0)
	p.Window = MustWindow(t, "30 4 * * *", "1h")
	o := ObservedOf(Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	r := Plan(o, p, DefaultSettings, Epoch)
	if r.State != StateWaiting || len(r.Evictions) != 0 || !r.Recheck.Equal(Epoch.Add(4*time.Hour+30*time.Minute)) {
		t.Errorf("%+v", r)
	}
	if r := Plan(o, p, DefaultSettings, Epoch.Add(5*time.Hour)); r.State != StateMoving || len(r.Evictions) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestReadOnlyPlansNothingThatWrites(t *testing.T) {
	s := DefaultSettings
	s.ReadOnly = true
	pods := Replicas(4, policy.Mix{Percent: 100, Managed: true})
	pods[1].Slot = NoSlot
	r := Plan(ObservedOf(pods, 4), PolicyOf(0, 0), s, Epoch)
	if r.State != StateReadOnly || len(r.Stamps)+len(r.Evictions) > 0 || !strings.Contains(r.Reason, "4 replicas should move") {
		t.Errorf("%+v", r)
	}
	if r := Plan(ObservedOf(Replicas(4, policy.Mix{Managed: true}), 4), PolicyOf(0, 0), s, Epoch); r.State != StateConverged {
		t.Errorf("%+v", r)
	}
}

// The predecessor counted old ReplicaSets, and moved pods that a rollout was about to take.
func TestDuringARolloutNothingMovesAndEachReplicaSetHasItsOwnSlots(t *testing.T) {
	m := policy.Mix{Percent: 50, Managed: true}
	o := ObservedOf(Replicas(6, policy.Mix{Percent: 100, Managed: true}), 6)
	o.Replicas = 8
	o.Owners = append(o.Owners, Owner{UID: "new", Name: "web-new", Replicas: 2})
	for i, pod := range Replicas(2, m) {
		pod.UID, pod.Owner, pod.Slot = types.UID(fmt.Sprint("new", i)), "new", 0 // both on slot 0
		o.Pods = append(o.Pods, pod)
	}
	r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]Stamp{{Pod: "new1", Name: "web-1", Slot: 1, DeletionCost: ""}}, r.Stamps, cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().String() == ".DeletionCost"
	}, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	o = ObservedOf(Replicas(6, policy.Mix{Percent: 100, Managed: true}), 6)
	o.Rolling = true
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) != 0 || r.State != StateWaiting {
		t.Errorf("%+v", r)
	}
}

func TestPodsOfOtherOwnersAreNobodysBusiness(t *testing.T) {
	o := ObservedOf(Replicas(4, policy.Mix{Percent: 50, Managed: true}), 4)
	stranger := o.Pods[0]
	stranger.UID, stranger.Owner, stranger.Capacity = "x", "stranger", capacity.Spot
	o.Pods = append(o.Pods, stranger)
	if r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch); r.State != StateConverged || len(r.Stamps) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestADuplicateSlotIsMendedByAStampAlone(t *testing.T) {
	pods := Replicas(6, policy.Mix{Percent: 50, Managed: true}) // slots 1, 3 and 5 are spot
	pods[3].Slot, pods[3].DeletionCost = 1, policy.Mix{}.Cost(1)
	r := Plan(ObservedOf(pods, 6), PolicyOf(50, 0), DefaultSettings, Epoch)
	if diff := cmp.Diff([]Stamp{{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}, r.Stamps); diff != "" || len(r.Evictions) > 0 {
		t.Errorf("%+v %s", r, diff)
	}
}

func TestTwoPodsThatSitOnEachOthersTypeSwapSlots(t *testing.T) {
	pods := Replicas(6, policy.Mix{Percent: 50, Managed: true})
	pods[2].Capacity, pods[3].Capacity = capacity.Spot, capacity.OnDemand
	r := Plan(ObservedOf(pods, 6), PolicyOf(50, 0), DefaultSettings, Epoch)
	want := []Stamp{{Pod: "2", Name: "web-2", Slot: 3, DeletionCost: "-3"}, {Pod: "3", Name: "web-3", Slot: 2, DeletionCost: "-2"}}
	if diff := cmp.Diff(want, r.Stamps); diff != "" || len(r.Evictions) > 0 {
		t.Errorf("%+v %s", r, diff)
	}
}

func TestASlotPromisedToAPodOnItsWayIsNotGivenToAnother(t *testing.T) {
	pods := Replicas(6, policy.Mix{Percent: 50, Managed: true})[:5]
	pods[4].Slot, pods[4].DeletionCost = 2, policy.Mix{}.Cost(2) // two on slot 2; 4 and 5 are empty, 4 is promised
	o := ObservedOf(pods, 6)
	o.Owners[0].Accounting.Reserved = []Reservation{{ID: "r", Slot: 4, Capacity: capacity.OnDemand, At: Epoch}}
	for _, s := range Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch).Stamps {
		if s.Slot == 4 {
			t.Errorf("stamped with a promised slot: %+v", s)
		}
	}
}

func TestAUsersOwnDeletionCostStaysAndIsExplained(t *testing.T) {
	pods := Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[1].DeletionCost = "1000"
	pods[2].Slot, pods[2].DeletionCost = NoSlot, "7"
	r := Plan(ObservedOf(pods, 4), PolicyOf(50, 0), DefaultSettings, Epoch)
	if diff := cmp.Diff([]Stamp{{Pod: "2", Name: "web-2", Slot: 2}}, r.Stamps); diff != "" {
		t.Error(diff)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "2 pods have a deletion cost") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestAMissingDeletionCostIsStamped(t *testing.T) {
	pods := Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[3].DeletionCost = ""
	r := Plan(ObservedOf(pods, 4), PolicyOf(50, 0), DefaultSettings, Epoch)
	if diff := cmp.Diff([]Stamp{{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}, r.Stamps); diff != "" {
		t.Error(diff)
	}
}

func TestAStatefulSetMovesOneOrdinalAtATimeTheHighestFirst(t *testing.T) {
	pods := Replicas(5, policy.Mix{Percent: 100, Managed: true})
	for i := range pods {
		pods[i].Name, pods[i].DeletionCost = fmt.Sprintf("db-%d", i+3), ""
	}
	pods[1].Slot = NoSlot
	o := ObservedOf(pods, 5)
	o.Ordinals, o.Owners[0].Start = true, 3
	s := DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 4}
	r := Plan(o, PolicyOf(40, 0), s, Epoch)
	if diff := cmp.Diff([]string{"db-7"}, Names(r.Evictions)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Stamp{{Pod: "1", Name: "db-4", Slot: 1}}, r.Stamps); diff != "" {
		t.Error(diff)
	}
	o.Pods[0].Ready = false
	if r := Plan(o, PolicyOf(40, 0), s, Epoch); len(r.Evictions) != 1 || r.Evictions[0].Name != "db-3" {
		t.Errorf("the ordinal that does not serve anyway goes first: %+v", r.Evictions)
	}
}

func TestUnknownCapacityIsNeverMoved(t *testing.T) {
	pods := Replicas(4, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Capacity = capacity.Unknown
	}
	r := Plan(ObservedOf(pods, 4), PolicyOf(50, 0), DefaultSettings, Epoch)
	if r.State != StateWaiting || len(r.Evictions)+len(r.Stamps) > 0 || r.UnknownActual != 4 {
		t.Errorf("%+v", r)
	}
}

func TestNothingMovesWhileCountsCannotBeTrusted(t *testing.T) {
	o := ObservedOf(Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Owners[0].Accounting.Unexplained = 1
	r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch)
	if r.State != StateWaiting || len(r.Evictions)+len(r.Stamps) > 0 || r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	o = ObservedOf(Replicas(6, policy.Mix{Percent: 100, Managed: true}), 4) // two are about to go
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); r.State != StateMoving || len(r.Evictions)+len(r.Stamps) > 0 {
		t.Errorf("%+v", r)
	}
	o = ObservedOf(Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Replicas = 6 // the Deployment controller has not scaled the ReplicaSet yet
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); r.State != StateWaiting || len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestAPlanLooksAgainWhenTheDoubtAboutAnUnansweredEvictionEnds(t *testing.T) {
	o := ObservedOf(Arrived(Replicas(20, policy.Mix{Percent: 100, Managed: true}), 1, capacity.OnDemand), 21)
	o.Pods[3].Evicted, o.Pods[4].Evicted = true, true // as far as we know
	o.Owners[0].Accounting.UnansweredUntil = Epoch.Add(SettleTime)
	r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch)
	if len(r.Evictions) != 0 || !r.Recheck.Equal(Epoch.Add(SettleTime)) {
		t.Errorf("%d evictions beside those in doubt, looks again at %v", len(r.Evictions), r.Recheck)
	}
	for _, s := range []Settings{{ReadOnly: true}, {Paused: true}} {
		if r := Plan(o, PolicyOf(0, 0), s, Epoch); !r.Recheck.Equal(Epoch.Add(SettleTime)) {
			t.Errorf("%+v: looks again at %v", s, r.Recheck)
		}
	}
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch.Add(SettleTime)); r.Recheck.IsZero() {
		t.Error("what ended since the pods were observed is not looked at again")
	}
	o.Pods[3].Evicted, o.Pods[4].Evicted, o.Owners[0].Accounting.UnansweredUntil = false, false, time.Time{}
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch.Add(SettleTime)); len(r.Evictions) != 2 {
		t.Errorf("%d evictions when it has ended", len(r.Evictions))
	}
}

func TestMorePromisesThanSlotsWait(t *testing.T) {
	pods := Replicas(3, policy.Mix{Percent: 50, Managed: true}) // found by a live list: the accounting does not know them
	for i := range pods {
		pods[i].Slot = NoSlot
	}
	o := ObservedOf(pods, 3)
	o.Owners[0].Accounting.Reserved = []Reservation{{ID: "r", Slot: 0, Capacity: capacity.OnDemand, At: Epoch}}
	r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch)
	if r.State == StateConverged || len(r.Stamps) > 0 || r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch.Add(SettleTime)); len(r.Stamps) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestAWorkloadScaledToNothingIsConverged(t *testing.T) {
	r := Plan(Observed{}, PolicyOf(70, 1), DefaultSettings, Epoch)
	if r.State != StateConverged || len(r.Stamps)+len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestTheExplanationSaysWhatIsWantedWhatIsThereAndWhatIsDone(t *testing.T) {
	o := ObservedOf(Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	p := PolicyOf(70, 1)
	r := Plan(o, p, DefaultSettings, Epoch)
	want := []string{
		"Of 10 replicas, 7 belong on spot and 3 on-demand: 70% (from the workload) on spot, at least 1 on-demand (from the workload).",
		"There are 10 on spot and 0 on-demand.",
		"Moving 1 of 3 replicas from spot to on-demand.",
	}
	if diff := cmp.Diff(want, Explain(10, &p, &r)); diff != "" {
		t.Error(diff)
	}
}
