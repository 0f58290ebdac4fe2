package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestNothingIsMovedWhileAPolicyIsInvalid(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "most"), nil, policy.Defaults{})
	pods := plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true})
	pods[0].Slot = plan.NoSlot
	r := plan.Plan(plantest.ObservedOf(pods, 4), p, plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateInvalid || len(r.Assignments)+len(r.Evictions) > 0 || r.SpotActual != 4 || r.OnDemandWanted != 4 {
		t.Errorf("%+v", r)
	}
	for _, part := range []string{spottest.DefaultKeys.SpotPercentage(), `"most"`, "a whole number from 0 to 100, with or without %"} {
		if !strings.Contains(r.Reason, part) {
			t.Errorf("the reason does not name %s: %s", part, r.Reason)
		}
	}
}

// Enabled without a value: the predecessor's controller and webhook disagreed, and evicted forever.
func TestWithoutAnyValueReplicasAreCountedAndNeverMoved(t *testing.T) {
	pods := plantest.Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[3].Slot, pods[3].DeletionCost = plan.NoSlot, policy.NoCost
	r := plan.Plan(plantest.ObservedOf(pods, 4), policy.Policy{}, plantest.DefaultSettings, spottest.Epoch)
	want := []plan.Assignment{{Pod: "3", Name: "web-3", Slot: 3}} // a slot, so that it is seen, and no order in which to go
	if r.State != plan.StateUnmanaged || len(r.Evictions) > 0 || r.SpotActual != 2 || r.OnDemandActual != 2 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, r.Assignments); diff != "" {
		t.Error(diff)
	}
}

func TestThePodsThatDoNotServeAreMovedFirst(t *testing.T) {
	pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
	pods[2].Ready = false                              // running, not ready
	pods[7].Ready, pods[7].Bound = false, false        // pending
	pods[4].Created = spottest.Epoch.Add(-time.Minute) // younger
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 4}
	r := plan.Plan(plantest.ObservedOf(plantest.Arrived(pods, 3, capacity.OnDemand), 13), spottest.PolicyOf(50, 0), s, spottest.Epoch)
	// Slots 0, 2, 4, 6 and 8 are on-demand slots now: of the ready pods those on them go, from the highest down.
	if diff := cmp.Diff([]string{"web-7", "web-2", "web-8", "web-6"}, plantest.Names(r.Evictions)); diff != "" {
		t.Error(diff)
	}
}

func TestReplicasOnTheMoveCountAgainstTheLimit(t *testing.T) {
	full := policy.Mix{Percent: 100, Managed: true}
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	for name, c := range map[string]struct {
		change func(o *plan.Observed)
		want   int
	}{
		"none":    {func(*plan.Observed) {}, 3},
		"missing": {func(o *plan.Observed) { o.Pods = o.Pods[2:]; o.LastMove = spottest.Epoch.Add(-time.Minute) }, 1},
		"going": {func(o *plan.Observed) {
			o.Pods[0].GoneBy = spottest.Epoch.Add(time.Second)
			o.Pods[1].GoneBy = spottest.Epoch.Add(time.Second)
		}, 1},
		"evicted, still shown": {func(o *plan.Observed) { o.Pods[0].Evicted = true; o.Pods[1].Evicted = true; o.Pods[2].Evicted = true }, 0},
		"gone long ago but shown": {func(o *plan.Observed) {
			o.Pods = append(o.Pods, plan.Pod{UID: "x", Owner: spottest.OwnerUID, GoneBy: spottest.Epoch.Add(-time.Second)})
		}, 3},
		"finished pods are no one": {func(o *plan.Observed) {
			o.Pods = append(o.Pods, plan.Pod{UID: "x", Owner: spottest.OwnerUID, Finished: true})
		}, 3},
		"starting where they went": {func(o *plan.Observed) {
			o.Pods[0].Capacity, o.Pods[0].Ready, o.Pods[0].UnreadySince = capacity.OnDemand, false, spottest.Epoch.Add(-time.Second)
		}, 2},
		"not ready where they leave": {func(o *plan.Observed) { o.Pods[0].Ready, o.Pods[1].Ready = false, false }, 3},
	} {
		o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(20, full), 3, capacity.OnDemand), 23)
		c.change(&o)
		if r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch); len(r.Evictions) != c.want {
			t.Errorf("%s: %d moves, want %d (%s: %s)", name, len(r.Evictions), c.want, r.State, r.Reason)
		}
	}
}

// Spot pods that stay pending made the predecessor leave a workload alone forever.
func TestADroughtIsNoReasonToStayInIt(t *testing.T) {
	pods := plantest.Replicas(10, policy.Mix{Percent: 70, Managed: true})
	for i := range pods {
		if pods[i].Capacity == capacity.Spot {
			pods[i].Ready, pods[i].Bound, pods[i].UnreadySince = false, false, spottest.Epoch.Add(-time.Second)
		}
	}
	if r := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 || r.Evictions[0].Ready {
		t.Errorf("%+v", r)
	}
}

func TestAReplicaThatNeverComesUpDoesNotStopAWorkloadForEver(t *testing.T) {
	planFor := func(broken int, since time.Duration) plan.Result {
		pods := plantest.Replicas(9, policy.Mix{Percent: 50, Managed: true})
		for i := range pods {
			if pods[i].Capacity == capacity.OnDemand && broken > 0 {
				pods[i].Ready, pods[i].UnreadySince = false, spottest.Epoch.Add(-since)
				broken--
			}
		}
		return plan.Plan(plantest.ObservedOf(pods, 9), spottest.PolicyOf(10, 0), plantest.DefaultSettings, spottest.Epoch)
	}
	if r := planFor(1, time.Minute); len(r.Evictions) != 0 || !r.Recheck.Equal(spottest.Epoch.Add(plan.StuckAfter-time.Minute)) {
		t.Errorf("it may still come up: %+v", r)
	}
	if r := planFor(1, plan.StuckAfter); len(r.Evictions) != 1 {
		t.Errorf("it does not come up: %+v", r)
	}
	if r := planFor(2, time.Hour); len(r.Evictions) != 0 {
		t.Errorf("healthy replicas are drained into capacity that does not work: %+v", r)
	}
}

func TestAReplicaThatNobodyMakesDoesNotStopAWorkloadForEver(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(9, policy.Mix{Percent: 50, Managed: true}), 10)
	o.Pods[0].Created = spottest.Epoch.Add(-time.Minute)
	if r := plan.Plan(o, spottest.PolicyOf(10, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 || r.Recheck.IsZero() {
		t.Errorf("it may still come: %+v", r)
	}
	if r := plan.Plan(o, spottest.PolicyOf(10, 0), plantest.DefaultSettings, spottest.Epoch.Add(time.Hour)); len(r.Evictions) != 1 {
		t.Errorf("nobody makes it: %+v", r)
	}
}

// The predecessor lost its cool-down with every restart.
func TestTheCoolDownIsReadOffTheCluster(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	o.Pods[5].Created = spottest.Epoch.Add(-2 * time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) == 0 {
		t.Errorf("a pod that came by itself makes moves wait: %+v", r)
	}
	o.Pods[5].Moved = true
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || r.State != plan.StateMoving || !r.Recheck.Equal(spottest.Epoch.Add(9*time.Second)) {
		t.Errorf("a pod that replaces one we evicted does not make moves wait: %+v", r)
	}
	o.Pods[5].Moved, o.LastMove = false, spottest.Epoch.Add(-9*time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 || !r.Recheck.Equal(spottest.Epoch.Add(time.Second)) {
		t.Errorf("our own memory does not make moves wait: %+v", r)
	}
	o.Pods[5].Moved, o.LastMove, o.Pods[5].Created = true, time.Time{}, spottest.Epoch.Add(time.Hour)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) == 0 {
		t.Errorf("a clock that is ahead stops moves: %+v", r)
	}
}

func TestMovesWaitForTheDisruptionWindow(t *testing.T) {
	p := spottest.PolicyOf(0, 0)
	p.Window = spottest.MustWindow(t, "30 4 * * *", "1h")
	o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateWaiting || len(r.Evictions) != 0 || !r.Recheck.Equal(spottest.Epoch.Add(4*time.Hour+30*time.Minute)) {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch.Add(5*time.Hour)); r.State != plan.StateMoving || len(r.Evictions) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestReadOnlyPlansNothingThatWrites(t *testing.T) {
	s := plantest.DefaultSettings
	s.ReadOnly = true
	pods := plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true})
	pods[1].Slot = plan.NoSlot
	r := plan.Plan(plantest.ObservedOf(pods, 4), spottest.PolicyOf(0, 0), s, spottest.Epoch)
	if r.State != plan.StateReadOnly || len(r.Assignments)+len(r.Evictions) > 0 || !strings.Contains(r.Reason, "4 replicas should move") {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Managed: true}), 4), spottest.PolicyOf(0, 0), s, spottest.Epoch); r.State != plan.StateConverged {
		t.Errorf("%+v", r)
	}
}

// The predecessor counted old ReplicaSets, and moved pods that a rollout was about to take.
func TestDuringARolloutNothingMovesAndEachReplicaSetHasItsOwnSlots(t *testing.T) {
	m := policy.Mix{Percent: 50, Managed: true}
	o := plantest.ObservedOf(plantest.Replicas(6, policy.Mix{Percent: 100, Managed: true}), 6)
	o.Replicas = 8
	o.Owners = append(o.Owners, plan.Owner{UID: "new", Name: "web-new", Replicas: 2})
	for i, pod := range plantest.Replicas(2, m) {
		pod.UID, pod.Owner, pod.Slot = types.UID(fmt.Sprint("new", i)), "new", 0 // both on slot 0
		o.Pods = append(o.Pods, pod)
	}
	r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || r.State != plan.StateWaiting {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]plan.Assignment{{Pod: "new1", Name: "web-1", Slot: 1, DeletionCost: ""}}, r.Assignments, cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().String() == ".DeletionCost"
	}, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	o = plantest.ObservedOf(plantest.Replicas(6, policy.Mix{Percent: 100, Managed: true}), 6)
	o.Rolling = true
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 || r.State != plan.StateWaiting {
		t.Errorf("%+v", r)
	}
}

func TestPodsOfOtherOwnersAreNobodysBusiness(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 50, Managed: true}), 4)
	stranger := o.Pods[0]
	stranger.UID, stranger.Owner, stranger.Capacity = "x", "stranger", capacity.Spot
	o.Pods = append(o.Pods, stranger)
	if r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch); r.State != plan.StateConverged || len(r.Assignments) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestADuplicateSlotIsMendedByAnAssignmentAlone(t *testing.T) {
	pods := plantest.Replicas(6, policy.Mix{Percent: 50, Managed: true}) // slots 1, 3 and 5 are spot
	pods[3].Slot, pods[3].DeletionCost = 1, policy.ParseCost(policy.Mix{}.Cost(1))
	r := plan.Plan(plantest.ObservedOf(pods, 6), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff([]plan.Assignment{{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}, r.Assignments); diff != "" || len(r.Evictions) > 0 {
		t.Errorf("%+v %s", r, diff)
	}
}

func TestTwoPodsThatSitOnEachOthersTypeSwapSlots(t *testing.T) {
	pods := plantest.Replicas(6, policy.Mix{Percent: 50, Managed: true})
	pods[2].Capacity, pods[3].Capacity = capacity.Spot, capacity.OnDemand
	r := plan.Plan(plantest.ObservedOf(pods, 6), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	want := []plan.Assignment{{Pod: "2", Name: "web-2", Slot: 3, DeletionCost: "-3"}, {Pod: "3", Name: "web-3", Slot: 2, DeletionCost: "-2"}}
	if diff := cmp.Diff(want, r.Assignments); diff != "" || len(r.Evictions) > 0 {
		t.Errorf("%+v %s", r, diff)
	}
}

func TestASlotPromisedToAPodOnItsWayIsNotGivenToAnother(t *testing.T) {
	pods := plantest.Replicas(6, policy.Mix{Percent: 50, Managed: true})[:5]
	pods[4].Slot, pods[4].DeletionCost = 2, policy.ParseCost(policy.Mix{}.Cost(2)) // two on slot 2; 4 and 5 are empty, 4 is promised
	o := plantest.ObservedOf(pods, 6)
	o.Owners[0].Accounting.Reserved = []plan.Reservation{{ID: "r", Slot: 4, Capacity: capacity.OnDemand, At: spottest.Epoch}}
	for _, s := range plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch).Assignments {
		if s.Slot == 4 {
			t.Errorf("assigned with a promised slot: %+v", s)
		}
	}
}

func TestAUsersOwnDeletionCostStaysAndIsExplained(t *testing.T) {
	pods := plantest.Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[1].DeletionCost = policy.ParseCost("1000")
	pods[2].Slot, pods[2].DeletionCost = plan.NoSlot, policy.ParseCost("7")
	r := plan.Plan(plantest.ObservedOf(pods, 4), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff([]plan.Assignment{{Pod: "2", Name: "web-2", Slot: 2}}, r.Assignments); diff != "" {
		t.Error(diff)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "2 pods have a deletion cost") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestAMissingDeletionCostIsWritten(t *testing.T) {
	pods := plantest.Replicas(4, policy.Mix{Percent: 50, Managed: true})
	pods[3].DeletionCost = policy.NoCost
	r := plan.Plan(plantest.ObservedOf(pods, 4), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff([]plan.Assignment{{Pod: "3", Name: "web-3", Slot: 3, DeletionCost: "-3"}}, r.Assignments); diff != "" {
		t.Error(diff)
	}
}

func TestAStatefulSetMovesOneOrdinalAtATimeTheHighestFirst(t *testing.T) {
	pods := plantest.Replicas(5, policy.Mix{Percent: 100, Managed: true})
	for i := range pods {
		pods[i].Name, pods[i].DeletionCost = fmt.Sprintf("db-%d", i+3), policy.NoCost
	}
	pods[1].Slot = plan.NoSlot
	o := plantest.ObservedOf(pods, 5)
	o.Ordinals, o.Owners[0].Start = true, 3
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 4}
	r := plan.Plan(o, spottest.PolicyOf(40, 0), s, spottest.Epoch)
	if diff := cmp.Diff([]string{"db-7"}, plantest.Names(r.Evictions)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]plan.Assignment{{Pod: "1", Name: "db-4", Slot: 1}}, r.Assignments); diff != "" {
		t.Error(diff)
	}
	o.Pods[0].Ready = false
	if r := plan.Plan(o, spottest.PolicyOf(40, 0), s, spottest.Epoch); len(r.Evictions) != 1 || r.Evictions[0].Name != "db-3" {
		t.Errorf("the ordinal that does not serve anyway goes first: %+v", r.Evictions)
	}
}

func TestUnknownCapacityIsNeverMoved(t *testing.T) {
	pods := plantest.Replicas(4, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Capacity = capacity.Unknown
	}
	r := plan.Plan(plantest.ObservedOf(pods, 4), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateWaiting || len(r.Evictions)+len(r.Assignments) > 0 || r.UnknownActual != 4 {
		t.Errorf("%+v", r)
	}
}

func TestNothingMovesWhileCountsCannotBeTrusted(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Owners[0].Accounting.Unexplained = 1
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateWaiting || len(r.Evictions)+len(r.Assignments) > 0 || r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	o = plantest.ObservedOf(plantest.Replicas(6, policy.Mix{Percent: 100, Managed: true}), 4) // two are about to go
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); r.State != plan.StateMoving || len(r.Evictions)+len(r.Assignments) > 0 {
		t.Errorf("%+v", r)
	}
	o = plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Replicas = 6 // the Deployment controller has not scaled the ReplicaSet yet
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); r.State != plan.StateWaiting || len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestAPlanLooksAgainWhenTheDoubtAboutAnUnansweredEvictionEnds(t *testing.T) {
	o := plantest.ObservedOf(plantest.Arrived(plantest.Replicas(20, policy.Mix{Percent: 100, Managed: true}), 1, capacity.OnDemand), 21)
	o.Pods[3].Evicted, o.Pods[4].Evicted = true, true // as far as we know
	o.Owners[0].Accounting.UnansweredUntil = spottest.Epoch.Add(plan.SettleTime)
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || !r.Recheck.Equal(spottest.Epoch.Add(plan.SettleTime)) {
		t.Errorf("%d evictions beside those in doubt, looks again at %v", len(r.Evictions), r.Recheck)
	}
	for _, s := range []plan.Settings{{ReadOnly: true}, {Paused: true}} {
		if r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch); !r.Recheck.Equal(spottest.Epoch.Add(plan.SettleTime)) {
			t.Errorf("%+v: looks again at %v", s, r.Recheck)
		}
	}
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch.Add(plan.SettleTime)); r.Recheck.IsZero() {
		t.Error("what ended since the pods were observed is not looked at again")
	}
	o.Pods[3].Evicted, o.Pods[4].Evicted, o.Owners[0].Accounting.UnansweredUntil = false, false, time.Time{}
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch.Add(plan.SettleTime)); len(r.Evictions) != 2 {
		t.Errorf("%d evictions when it has ended", len(r.Evictions))
	}
}

func TestMorePromisesThanSlotsWait(t *testing.T) {
	pods := plantest.Replicas(3, policy.Mix{Percent: 50, Managed: true}) // found by a live list: the accounting does not know them
	for i := range pods {
		pods[i].Slot = plan.NoSlot
	}
	o := plantest.ObservedOf(pods, 3)
	o.Owners[0].Accounting.Reserved = []plan.Reservation{{ID: "r", Slot: 0, Capacity: capacity.OnDemand, At: spottest.Epoch}}
	r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if r.State == plan.StateConverged || len(r.Assignments) > 0 || r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch.Add(plan.SettleTime)); len(r.Assignments) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestAWorkloadScaledToNothingIsConverged(t *testing.T) {
	r := plan.Plan(plan.Observed{}, spottest.PolicyOf(70, 1), plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateConverged || len(r.Assignments)+len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestTheExplanationSaysWhatIsWantedWhatIsThereAndWhatIsDone(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	p := spottest.PolicyOf(70, 1)
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	want := []string{
		"Of 10 replicas, 7 belong on spot and 3 on-demand: 70% (from the workload) on spot, at least 1 on-demand (from the workload).",
		"There are 10 on spot and 0 on-demand.",
		"Moving 1 of 3 replicas from spot to on-demand.",
	}
	if diff := cmp.Diff(want, plan.Explain(10, &p, &r)); diff != "" {
		t.Error(diff)
	}
}
