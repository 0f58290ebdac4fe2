package slots

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAPodThatIsLetGoHoldsNothingAndTheCacheNeedNotShowItYet(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	pods := plantest.Replicas(4, m)
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], spottest.Epoch)
	}
	r := &plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeMove, At: spottest.Epoch}
	if !a.LetGo("2", r, spottest.Epoch) || a.LetGo("2", r, spottest.Epoch) || a.LetGo("unknown", r, spottest.Epoch) {
		t.Error("a pod is let go once, if it is there")
	}
	a.Observe(&pods[2], spottest.Epoch) // the cache still shows it as it was
	shown := pods[2]
	if a.Mark(&shown); shown.Released == nil || shown.Evicted {
		t.Errorf("%+v", shown)
	}
	got := a.Reserve(Ask{ID: "r", Wanted: 4, Mix: m}, spottest.Epoch)
	if got.Slot != 2 || !got.Moved {
		t.Errorf("the replacement gets %+v", got)
	}
	a.Release("r")
	a.Restore("2") // the write failed
	if a.visible.All != 4 || a.moves != 0 || !a.LastMove().IsZero() {
		t.Errorf("%d visible, %d moves", a.visible.All, a.moves)
	}
	a.LetGo("2", r, spottest.Epoch)
	released := pods[2]
	released.Version, released.Released = 2, r
	a.Observe(&released, spottest.Epoch)
	a.Reserve(Ask{ID: "s", Wanted: 4, Mix: m}, spottest.Epoch)
	later := spottest.Epoch.Add(time.Minute)
	if !a.Free("2", later) || a.LastMove().Equal(later) {
		t.Error("the end of a release is no move, and its replacement is there")
	}
	if a.Mark(&released); !released.Evicted {
		t.Error("it is evicted")
	}
	a.Restore("2")
	if a.visible.All != 3 {
		t.Errorf("%d visible: a released pod never holds a slot again", a.visible.All)
	}
}

func TestAnInterruptedPodIsNoSupplyAndItsSlotIsFreeForItsReplacement(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Floor: 2, Managed: true}
	pods := plantest.Replicas(6, m)
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], spottest.Epoch)
	}
	plantest.InterruptSlots(pods, plan.Interruption{}, 2)
	a.Observe(&pods[2], spottest.Epoch)
	got := a.Reserve(Ask{ID: "r", Wanted: 6, Mix: m}, spottest.Epoch)
	if got.Slot != 2 || got.Capacity != m.Of(2) || got.Doubt != DoubtNone {
		t.Errorf("the replacement gets %+v", got)
	}
	if !a.Free("2", spottest.Epoch) || a.Free("2", spottest.Epoch) {
		t.Error("an interrupted pod is evicted once")
	}
	pods[2].Interruption = nil
	a.Restore("2")
	a.Observe(&pods[2], spottest.Epoch)
	if a.visible.All != 6 {
		t.Errorf("%d visible when its node stays after all", a.visible.All)
	}
}

// The predecessor has released a pod, and the live list after the takeover, which shows what the ReplicaSet has, does not have
// it. It is there all the same, and somebody has to end it.
func TestAPodThatThePredecessorReleasedIsNotTakenForGone(t *testing.T) {
	a, released := NewAccounting(false), &plan.Released{Owner: spottest.OwnerUID, At: spottest.Epoch, For: plan.PurposeMove}
	pod := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}
	a.Observe(&pod, spottest.Epoch)
	a.TakeOver(spottest.Epoch)
	a.Sync(nil, a.ProvenBy(), a.ProvenBy())
	if a.visible.All != 0 {
		t.Fatal("a pod that is missing in the list holds its slot")
	}
	late := pod
	late.Version = 2
	a.Observe(&late, spottest.Epoch.Add(time.Second))
	if a.Mark(&late); !late.Evicted || a.visible.All != 0 {
		t.Error("what the cache showed of it before the list counts")
	}
	late = pod
	late.Version, late.Released = 3, released
	a.Observe(&late, spottest.Epoch.Add(2*time.Second))
	if a.Mark(&late); late.Evicted || !a.Free(late.UID, spottest.Epoch.Add(3*time.Second)) {
		t.Error("it is never ended")
	}
}
