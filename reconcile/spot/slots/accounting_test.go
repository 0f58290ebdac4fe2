package slots

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A pod that somebody takes away can be replaced before the cache shows it gone. Of an ordinal there is only one.
func TestAnOrdinalThatIsReplacedWhileItsOldPodIsStillSeenHoldsMovesBack(t *testing.T) {
	a, mix := NewAccounting(true), policy.Mix{Percent: 40, Floor: 3, Managed: true}
	var pods []plan.Pod
	for i, pod := range plantest.Replicas(5, policy.Mix{Managed: true}) { // all of them on-demand, two of which belong on spot
		pod.Name = fmt.Sprintf("db-%d", i)
		a.Observe(&pod, spottest.Epoch)
		pods = append(pods, pod)
	}
	a.Reserve(Ask{ID: "r", Wanted: 5, Mix: mix, Ordinal: 1}, spottest.Epoch)
	planFor := func(now time.Time) plan.Result {
		return plan.Plan(plan.Observed{Ordinals: true, Replicas: 5, Pods: pods,
			Owners: []plan.Owner{{UID: spottest.OwnerUID, Name: "db", Replicas: 5, Accounting: a.Summary(5, now)}}}, spottest.PolicyOf(40, 3), plantest.DefaultSettings, now)
	}
	if r := planFor(spottest.Epoch.Add(time.Second)); len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitUnexplained) == nil {
		t.Errorf("%d evictions, waits %+v", len(r.Evictions), r.Waits)
	}
	if r := planFor(spottest.Epoch.Add(plan.SettleTime)); len(r.Evictions) != 1 {
		t.Errorf("%d evictions once it is certain that the pod was refused", len(r.Evictions))
	}
	a.Gone(pods[1].UID, 100, spottest.Epoch)
	if n := a.Summary(5, spottest.Epoch.Add(time.Second)).Unexplained; n != 0 {
		t.Errorf("%d unexplained when the old pod is seen to be gone", n)
	}
}

func TestRefusedPodsDoNotClimbBeyondTheWantedSlots(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Floor: 1, Managed: true}
	now := spottest.Epoch
	for i := range 13 {
		answer := a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 3, Mix: m, Final: true}, now)
		if answer.Slot >= 3 {
			t.Fatalf("retry %d climbs to slot %d", i, answer.Slot)
		}
		now = now.Add(2 * time.Second)
	}
	if got := a.Reservations(); got != 3 {
		t.Errorf("%d reservations for 3 replicas", got)
	}
}

// Pods are seen in the order in which they were stored.
func TestAPodThatWasOvertakenLongAgoDoesNotExist(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	for i := range 4 {
		a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 9, Mix: m}, spottest.Epoch.Add(time.Duration(i)*2*time.Second))
	}
	a.Observe(&plan.Pod{UID: "a", Slot: 2, Capacity: m.Of(2), Reservation: "2", Version: 1}, spottest.Epoch.Add(7*time.Second))
	for id, want := range map[string]bool{"0": false, "1": true, "2": false, "3": true} {
		if _, live := a.Live(id); live != want {
			t.Errorf("reservation %s is live: %v", id, live)
		}
	}
	if got := a.slots.free(); got != 0 {
		t.Errorf("slot %d is the lowest free one, want 0", got)
	}
}

// With an on-demand pod that may be missing, an on-demand slot is filled, not a spot slot with the wrong type.
func TestWhereTheFloorNeedsOnDemandTheOldestOnDemandSlotIsUsedAgain(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 100, Floor: 2, Managed: true}
	ask := func(id string) Answer { return a.Reserve(Ask{ID: id, Wanted: 4, Mix: m, Final: true}, spottest.Epoch) }
	for i := range 4 {
		ask(fmt.Sprint(i))
	}
	a.Observe(&plan.Pod{UID: "a", Slot: 0, Capacity: capacity.OnDemand, Reservation: "0", Version: 1}, spottest.Epoch)
	for _, id := range []string{"again", "and again"} {
		if got := ask(id); got.Slot != 1 || got.Capacity != capacity.OnDemand || !got.Reused {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

func TestAnEvictionThatFailedIsNoMove(t *testing.T) {
	a := NewAccounting(false)
	for i := range 2 {
		a.Observe(&plan.Pod{UID: types.UID(fmt.Sprint(i)), Slot: i, Capacity: capacity.Spot, Version: 1}, spottest.Epoch)
	}
	a.Free("0", spottest.Epoch)
	a.Free("1", spottest.Epoch.Add(time.Second))
	a.Restore("1")
	if got := a.LastMove(); !got.Equal(spottest.Epoch) {
		t.Errorf("last move %v", got)
	}
}

func TestAnUnansweredWriteCountsUntilTheCacheTells(t *testing.T) {
	released := &plan.Released{Owner: "set", At: spottest.Epoch, For: plan.PurposeMove}
	shown := func(change func(*plan.Pod)) plan.Pod {
		p := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 2}
		change(&p)
		return p
	}
	asked, gaveUp := spottest.Epoch, spottest.Epoch.Add(2*time.Second)
	for name, test := range map[string]struct {
		begin func(*Accounting)
		pod   plan.Pod      // that is observed
		after time.Duration // since we gave up waiting
		held  int           // slots, then
		moved time.Time     // the last move, then
	}{
		"eviction, not shown yet":        {begin: func(a *Accounting) { a.Free("0", asked) }, pod: shown(func(*plan.Pod) {}), after: plan.SettleTime - 1, moved: gaveUp},
		"eviction, not done":             {begin: func(a *Accounting) { a.Free("0", asked) }, pod: shown(func(*plan.Pod) {}), after: plan.SettleTime, held: 1},
		"eviction, shown":                {begin: func(a *Accounting) { a.Free("0", asked) }, pod: shown(func(p *plan.Pod) { p.GoneBy = gaveUp }), after: plan.SettleTime, moved: gaveUp},
		"release, not shown yet":         {begin: func(a *Accounting) { a.LetGo("0", released, asked) }, pod: shown(func(*plan.Pod) {}), after: plan.SettleTime - 1, moved: gaveUp},
		"release, not done":              {begin: func(a *Accounting) { a.LetGo("0", released, asked) }, pod: shown(func(*plan.Pod) {}), after: plan.SettleTime, held: 1},
		"release, shown":                 {begin: func(a *Accounting) { a.LetGo("0", released, asked) }, pod: shown(func(p *plan.Pod) { p.Released = released }), after: plan.SettleTime, moved: gaveUp},
		"nothing was asked":              {begin: func(*Accounting) {}, pod: shown(func(*plan.Pod) {}), after: plan.SettleTime, held: 1},
		"taken back meanwhile":           {begin: func(a *Accounting) { a.Free("0", asked); a.Restore("0") }, pod: shown(func(*plan.Pod) {}), after: 1, held: 1},
		"eviction, its pod has finished": {begin: func(a *Accounting) { a.Free("0", asked) }, pod: shown(func(p *plan.Pod) { p.Finished = true }), after: plan.SettleTime, moved: gaveUp},
	} {
		a := NewAccounting(false)
		a.Observe(&plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}, spottest.Epoch)
		test.begin(a)
		a.Unanswered("0", plan.PurposeMove, gaveUp)
		if s := a.Summary(1, gaveUp); a.LastMove().IsZero() != s.UnansweredUntil.IsZero() || (!s.UnansweredUntil.IsZero() && !s.UnansweredUntil.Equal(gaveUp.Add(plan.SettleTime))) {
			t.Errorf("%s: last move %v, in doubt until %v", name, a.LastMove(), s.UnansweredUntil)
		}
		a.Observe(&test.pod, gaveUp.Add(test.after))
		a.Observe(&test.pod, gaveUp.Add(test.after)) // what is settled stays settled
		if a.visible.All != test.held || !a.LastMove().Equal(test.moved) {
			t.Errorf("%s: %d slots held, last move %v, want %d and %v", name, a.visible.All, a.LastMove(), test.held, test.moved)
		}
	}
}

func TestDoubtsAboutPodsThatNobodyObservesEndAsWell(t *testing.T) {
	a := NewAccounting(false)
	orphan := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1, Released: &plan.Released{Owner: "set", At: spottest.Epoch}}
	a.Observe(&orphan, spottest.Epoch)
	if !a.Free("0", spottest.Epoch) {
		t.Fatal("a released pod cannot be evicted")
	}
	a.Unanswered("0", plan.PurposeFinish, spottest.Epoch)
	if !a.LastMove().IsZero() {
		t.Error("the end of a release counts as a move")
	}
	if a.Free("0", spottest.Epoch.Add(plan.SettleTime-1)) {
		t.Error("it is evicted again while it may be going")
	}
	if !a.Free("0", spottest.Epoch.Add(plan.SettleTime)) {
		t.Error("it is never evicted again")
	}
}

func TestWhatMayNotHaveBeenReleasedIsNotEvictedAsReleased(t *testing.T) {
	a := NewAccounting(false)
	pod := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}
	a.Observe(&pod, spottest.Epoch)
	a.LetGo("0", &plan.Released{Owner: "set", At: spottest.Epoch}, spottest.Epoch)
	a.Unanswered("0", plan.PurposeMove, spottest.Epoch)
	if a.Free("0", spottest.Epoch.Add(time.Second)) {
		t.Error("it is evicted, and its owner may count on it")
	}
	a.Observe(&pod, spottest.Epoch.Add(plan.SettleTime))
	marked := pod
	if a.Mark(&marked); marked.Released != nil || a.visible.All != 1 || a.slots.count(0) != 1 {
		t.Errorf("it is released for ever: %+v", marked)
	}
}

func TestABatchWithUnansweredEvictionsKeepsItsCoolDown(t *testing.T) {
	a := NewAccounting(false)
	for i := range 3 {
		a.Observe(&plan.Pod{UID: types.UID(fmt.Sprint(i)), Slot: i, Capacity: capacity.Spot, Version: 1}, spottest.Epoch)
	}
	a.Free("0", spottest.Epoch)
	a.Free("1", spottest.Epoch.Add(time.Millisecond)) // answered
	a.Unanswered("0", plan.PurposeMove, spottest.Epoch.Add(5*time.Second))
	if got := a.LastMove(); !got.Equal(spottest.Epoch.Add(5 * time.Second)) {
		t.Errorf("last move %v", got)
	}
	a.Observe(&plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}, spottest.Epoch.Add(15*time.Second))
	if got := a.LastMove(); !got.Equal(spottest.Epoch.Add(time.Millisecond)) {
		t.Errorf("last move %v when the doubt has ended, want that of the other", got)
	}
}

func TestAnInterruptionIsTriedAgainAtOnceUnlessItIsSeenToBeDone(t *testing.T) {
	a := NewAccounting(false)
	pod := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}
	a.Observe(&pod, spottest.Epoch)
	a.Free("0", spottest.Epoch)
	a.Unanswered("0", plan.PurposeInterruption, spottest.Epoch)
	if !a.Free("0", spottest.Epoch.Add(time.Second)) {
		t.Error("it waits")
	}
	pod.Version, pod.GoneBy = 2, spottest.Epoch.Add(30*time.Second)
	a.Observe(&pod, spottest.Epoch.Add(2*time.Second))
	a.Unanswered("0", plan.PurposeInterruption, spottest.Epoch.Add(3*time.Second))
	if got := a.LastMove(); !got.Equal(spottest.Epoch.Add(time.Second)) {
		t.Errorf("a move that is seen to be done is taken back: last move %v", got)
	}
}

func TestAReservationIsConsumedExactlyOnce(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	first := a.Reserve(Ask{ID: "one", Wanted: 4, Mix: m}, spottest.Epoch)
	pod := plan.Pod{UID: "a", Slot: first.Slot, Capacity: first.Capacity, Reservation: "one", Version: 1}
	a.Observe(&pod, spottest.Epoch)
	if _, live := a.Live("one"); live || a.Reservations() != 0 {
		t.Fatal("the reservation is not consumed")
	}
	copied := plan.Pod{UID: "b", Slot: first.Slot, Capacity: first.Capacity, Reservation: "one", Version: 2}
	a.Observe(&copied, spottest.Epoch)
	a.Observe(&pod, spottest.Epoch)
	if a.visible.All != 2 || a.slots.count(first.Slot) != 2 {
		t.Errorf("%d visible, %d on the slot", a.visible.All, a.slots.count(first.Slot))
	}
	if next := a.Reserve(Ask{ID: "two", Wanted: 4, Mix: m}, spottest.Epoch); next.Slot != 1 {
		t.Errorf("next slot %d", next.Slot)
	}
}

func TestTheSameRequestGetsTheSameAnswer(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	first := a.Reserve(Ask{ID: "one", Wanted: 4, Mix: m}, spottest.Epoch)
	a.Reserve(Ask{ID: "two", Wanted: 4, Mix: m}, spottest.Epoch)
	again := a.Reserve(Ask{ID: "one", Wanted: 4, Mix: m}, spottest.Epoch.Add(time.Second))
	if again.Slot != first.Slot || again.Capacity != first.Capacity || a.Reservations() != 2 {
		t.Errorf("%+v, then %+v", first, again)
	}
}

func TestDryRunsAndDoubtsReserveNothing(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	if got := a.Reserve(Ask{ID: "dry", Wanted: 1, Mix: m, DryRun: true}, spottest.Epoch); got.Slot != 0 || a.Reservations() != 0 {
		t.Errorf("%+v", got)
	}
	a.Reserve(Ask{ID: "one", Wanted: 1, Mix: m}, spottest.Epoch)
	if got := a.Reserve(Ask{ID: "two", Wanted: 1, Mix: m}, spottest.Epoch); got.Doubt != DoubtWanted || a.Reservations() != 1 {
		t.Errorf("%+v", got)
	}
	a.Observe(&plan.Pod{UID: "a", Reservation: "one", Capacity: capacity.OnDemand, Version: 1}, spottest.Epoch)
	if got := a.Reserve(Ask{ID: "two", Wanted: 1, Mix: m}, spottest.Epoch); got.Doubt != DoubtGone || a.Reservations() != 0 {
		t.Errorf("%+v", got)
	}
}

func TestReservationsEndByThemselves(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	for i := range 5 {
		a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 2, Mix: m, Final: true}, spottest.Epoch)
	}
	a.Retain(func(types.UID) bool { return true }, spottest.Epoch.Add(ReservationTTL+time.Second))
	if a.Reservations() != 0 || a.lost.All != 0 || len(a.promised.items) != 0 || a.slots.free() != 0 {
		t.Errorf("left: %+v", a)
	}
	a.Reserve(Ask{ID: "x", Wanted: 2, Mix: m}, spottest.Epoch)
	a.Release("x")
	a.Release("x")
	if a.Reservations() != 0 || a.slots.free() != 0 {
		t.Error("the released reservation holds its slot")
	}
}

func TestOurEvictionFreesTheSlotBeforeItIsAnswered(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true} // slots: on-demand, spot, on-demand, spot
	for i := range 4 {
		a.Observe(&plan.Pod{UID: types.UID(fmt.Sprint(i)), Slot: i, Capacity: m.Of(i), Version: 1}, spottest.Epoch)
	}
	if !a.Free("2", spottest.Epoch) || a.Free("2", spottest.Epoch) || a.Free("unknown", spottest.Epoch) {
		t.Error("a pod is freed once, if it is there")
	}
	got := a.Reserve(Ask{ID: "r", Wanted: 4, Mix: m}, spottest.Epoch)
	if got.Slot != 2 || got.Capacity != capacity.OnDemand || !got.Moved || got.Doubt != DoubtNone {
		t.Errorf("the replacement gets %+v", got)
	}
	a.Observe(&plan.Pod{UID: "2", Slot: 2, Capacity: capacity.OnDemand, Version: 2}, spottest.Epoch) // the cache still shows it
	if a.slots.count(2) != 1 {
		t.Errorf("%d hold slot 2", a.slots.count(2))
	}
	a.Restore("2")
	if a.slots.count(2) != 2 || a.visible.All != 4 {
		t.Error("a failed eviction gives the slot back")
	}
	if got := a.Reserve(Ask{ID: "s", Wanted: 6, Mix: m}, spottest.Epoch); got.Moved {
		t.Error("only replacements of evicted pods are marked")
	}
}

func TestAnOlderVersionOfAPodChangesNothing(t *testing.T) {
	a := NewAccounting(false)
	a.Observe(&plan.Pod{UID: "a", Slot: 3, Capacity: capacity.Spot, Version: 9}, spottest.Epoch) // the answer to an assignment
	a.Observe(&plan.Pod{UID: "a", Slot: 7, Capacity: capacity.Spot, Version: 8}, spottest.Epoch) // the cache behind it
	if a.slots.count(3) != 1 || a.slots.count(7) != 0 {
		t.Error("the older version counts")
	}
	a.Gone("a", 10, spottest.Epoch)
	a.Observe(&plan.Pod{UID: "a", Slot: 3, Capacity: capacity.Spot, Version: 9}, spottest.Epoch)
	if a.visible.All != 0 {
		t.Error("a late answer brings a pod back that is gone")
	}
	a.Observe(&plan.Pod{UID: "a", Slot: 3, Capacity: capacity.Spot, Version: 12}, spottest.Epoch) // it lost its label and has it again
	if a.visible.All != 1 {
		t.Error("a pod that has its label again is not seen")
	}
}

// After a member's store was restored from a backup, numbers are lower than before, and stay so.
func TestAnOlderVersionCountsOnceNoLateAnswerCanBeItsReason(t *testing.T) {
	a := NewAccounting(false)
	a.Observe(&plan.Pod{UID: "a", Slot: 3, Capacity: capacity.Spot, Version: 5000}, spottest.Epoch)
	a.Gone("b", 5000, spottest.Epoch)
	for _, uid := range []types.UID{"a", "b"} {
		a.Observe(&plan.Pod{UID: uid, Slot: 1, Capacity: capacity.OnDemand, Version: 2500}, spottest.Epoch.Add(plan.SettleTime-1))
	}
	if a.slots.count(3) != 1 || a.slots.count(1) != 0 {
		t.Error("a late answer counts")
	}
	for _, uid := range []types.UID{"a", "b"} {
		a.Observe(&plan.Pod{UID: uid, Slot: 1, Capacity: capacity.OnDemand, Version: 2500}, spottest.Epoch.Add(plan.SettleTime))
	}
	if a.slots.count(3) != 0 || a.slots.count(1) != 2 {
		t.Error("what the member shows since is ignored")
	}
}

func TestALiveListSettlesWhatTheCacheDoesNotShow(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	for i := range 4 {
		a.Observe(&plan.Pod{UID: types.UID(fmt.Sprint(i)), Slot: i, Capacity: m.Of(i), Version: 1}, spottest.Epoch)
	}
	later := spottest.Epoch.Add(time.Minute)
	a.Sync([]plan.Pod{{UID: "0", Slot: 0, Capacity: capacity.OnDemand, Version: 1}, {UID: "1", Slot: 1, Capacity: capacity.Spot, Version: 1}, {UID: "3", Slot: 3, Capacity: capacity.Spot, Version: 1}}, later, later)
	got := a.Reserve(Ask{ID: "r", Wanted: 4, Mix: m}, later)
	if got.Slot != 2 || got.Moved {
		t.Errorf("%+v", got)
	}
	a.Sync([]plan.Pod{{UID: "0", Slot: 0, Capacity: capacity.OnDemand, Version: 1}}, later.Add(5*time.Second), later.Add(5*time.Second))
	if a.Reservations() != 0 || a.visible.All != 1 {
		t.Errorf("%d reservations, %d visible", a.Reservations(), a.visible.All)
	}
}

func TestAnAccountingForgetsWhatTheCacheForgot(t *testing.T) {
	a := NewAccounting(false)
	a.Observe(&plan.Pod{UID: "lost", Slot: 0, Capacity: capacity.Spot, Version: 1}, spottest.Epoch)
	a.Observe(&plan.Pod{UID: "kept", Slot: 1, Capacity: capacity.Spot, Version: 1}, spottest.Epoch)
	kept := func(uid types.UID) bool { return uid == "kept" }
	a.Retain(kept, spottest.Epoch.Add(time.Second)) // too early: it may have been read live just now
	if a.visible.All != 2 {
		t.Error("forgotten too early")
	}
	a.Retain(kept, spottest.Epoch.Add(ReservationTTL+time.Second))
	if a.visible.All != 1 || a.slots.free() != 0 {
		t.Error("the lost pod holds its slot")
	}
}

func TestAStatefulSetsOrdinalKeepsItsTypeUntilThePolicyWantsAnother(t *testing.T) {
	a := NewAccounting(true)
	spot := map[int]bool{5: true, 6: true} // not what the slots say
	for i := range 10 {
		capacityType := capacity.OnDemand
		if spot[i] {
			capacityType = capacity.Spot
		}
		a.Observe(&plan.Pod{Name: fmt.Sprintf("db-%d", i), UID: types.UID(fmt.Sprint(i)), Slot: i, Capacity: capacityType, Version: 1}, spottest.Epoch)
	}
	ask := func(id string, ordinal, percent int) Answer {
		return a.Reserve(Ask{ID: id, Wanted: 10, Ordinal: ordinal, Mix: policy.Mix{Percent: percent, Managed: true}}, spottest.Epoch)
	}
	a.Gone("5", 2, spottest.Epoch)
	if got := ask("a", 5, 20); got.Capacity != capacity.Spot || got.Slot != 5 {
		t.Errorf("ordinal 5 comes back as %+v", got)
	}
	if got := ask("a2", 5, 20); got.Capacity != capacity.Spot || a.Reservations() != 1 {
		t.Errorf("refused and tried again, ordinal 5 is %+v, %d reservations", got, a.Reservations())
	}
	if got := ask("b", 3, 20); got.Capacity != capacity.OnDemand {
		t.Errorf("ordinal 3 comes back as %+v", got)
	}
	if got := ask("c", 6, 10); got.Capacity != capacity.OnDemand {
		t.Errorf("with 10%% one of two spot ordinals goes on-demand when it is replaced, got %+v", got)
	}
	if got := ask("d", 3, 30); got.Capacity != capacity.Spot {
		t.Errorf("with 30%% an on-demand ordinal goes on spot when it is replaced, got %+v", got)
	}
}

func TestANewOrdinalGoesWhereItsSlotSays(t *testing.T) {
	a, m := NewAccounting(true), policy.Mix{Percent: 50, Floor: 1, Managed: true}
	for i := range 6 { // ordinals start at 3, and the cache does not show that the set grew
		got := a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: 2, Ordinal: 3 + i, Start: 3, Mix: m}, spottest.Epoch)
		if got.Slot != i || got.Capacity != m.Of(i) {
			t.Errorf("ordinal %d: %+v, want slot %d, %s", 3+i, got, i, m.Of(i))
		}
	}
}
