package slots_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// admitted has a ReplicaSet's pods admitted and seen, and returns them.
func admitted(t *testing.T, a *slots.Accounting, wanted int, mix policy.Mix) []plan.Pod {
	t.Helper()
	var pods []plan.Pod
	for i := range wanted {
		id := fmt.Sprint("request-", i)
		answer := a.Reserve(slots.Ask{ID: id, Wanted: wanted, Mix: mix}, noon)
		if answer.Doubt != slots.DoubtNone {
			t.Fatalf("pod %d: doubt %d", i, answer.Doubt)
		}
		pods = append(pods, plan.Pod{Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint(i)), Version: uint64(i + 1), Slot: answer.Slot,
			Capacity: answer.Capacity, Reservation: id})
	}
	for i := range pods {
		a.Observe(&pods[i], noon.Add(time.Second))
	}
	return pods
}

func TestAMixIsExactBeforeAnyPodIsSeen(t *testing.T) {
	for _, c := range []struct{ replicas, percent, floor, onDemand int }{
		{10, 70, 0, 3}, {10, 70, 5, 5}, {10, 100, 0, 0}, {10, 0, 0, 10}, {3, 100, 7, 3}, {1, 50, 1, 1},
	} {
		a, mix := slots.NewAccounting(false), policy.Mix{Percent: c.percent, Floor: c.floor, Managed: true}
		var got capacity.Tally
		for i := range c.replicas {
			got.Add(a.Reserve(slots.Ask{ID: fmt.Sprint(i), Wanted: c.replicas, Mix: mix}, noon).Capacity, 1)
		}
		if got.OnDemand != c.onDemand || got.All != c.replicas || a.Reservations() != c.replicas {
			t.Errorf("%+v: %+v, %d reservations", c, got, a.Reservations())
		}
	}
}

// API servers ask again when an answer was lost.
func TestTheSameRequestGetsTheSameAnswerAndOneSlot(t *testing.T) {
	a, ask := slots.NewAccounting(false), slots.Ask{ID: "r", Wanted: 5, Mix: policy.Mix{Percent: 50, Managed: true}}
	first, again := a.Reserve(ask, noon), a.Reserve(ask, noon.Add(time.Second))
	if again.Slot != first.Slot || again.Capacity != first.Capacity || !again.Reused || again.Reason != slots.ReasonRepeated || a.Reservations() != 1 {
		t.Errorf("first %+v, again %+v, %d reservations", first, again, a.Reservations())
	}
}

func TestADryRunReservesNothing(t *testing.T) {
	a := slots.NewAccounting(false)
	a.Reserve(slots.Ask{ID: "r", Wanted: 5, Mix: policy.Mix{Percent: 50, Managed: true}, DryRun: true}, noon)
	if _, live := a.Live("r"); live || a.Reservations() != 0 {
		t.Errorf("%d reservations after a dry run", a.Reservations())
	}
}

// The replacement of a pod that we evict may be admitted before the eviction is answered.
func TestTheReplacementOfAnEvictedPodGetsItsSlot(t *testing.T) {
	a, mix := slots.NewAccounting(false), policy.Mix{Percent: 50, Floor: 1, Managed: true}
	victim := admitted(t, a, 4, mix)[3]
	if !a.Free(victim.UID, noon.Add(time.Minute)) || a.Held() != 3 {
		t.Fatalf("%d slots are held", a.Held())
	}
	if got := a.Reserve(slots.Ask{ID: "next", Wanted: 4, Mix: mix}, noon.Add(time.Minute)); got.Slot != victim.Slot || got.Capacity != victim.Capacity || !got.Moved {
		t.Errorf("the replacement gets %+v, and the victim had slot %d", got, victim.Slot)
	}
	if a.Free(victim.UID, noon.Add(time.Minute)) {
		t.Error("a pod that is going is evicted again")
	}
}

func TestWhereAllReplicasAreThereTheAccountingAsksToKnowMore(t *testing.T) {
	a, mix := slots.NewAccounting(false), policy.Mix{Percent: 50, Floor: 1, Managed: true}
	pods := admitted(t, a, 2, mix)
	ask := slots.Ask{ID: "one more", Wanted: 2, Mix: mix}
	if got := a.Reserve(ask, noon.Add(time.Minute)); got.Doubt != slots.DoubtGone || a.Reservations() != 0 {
		t.Fatalf("%+v, want a doubt and no reservation", got)
	}
	// A live list shows who is gone.
	a.Sync(pods[:1], noon.Add(time.Minute), noon.Add(time.Minute))
	if got := a.Reserve(ask, noon.Add(time.Minute)); got.Doubt != slots.DoubtNone || got.Slot != pods[1].Slot || got.Capacity != pods[1].Capacity {
		t.Errorf("%+v, want slot %d", got, pods[1].Slot)
	}
}

func TestAReservationEndsWhereItsPodDoesNotCome(t *testing.T) {
	a := slots.NewAccounting(false)
	a.Reserve(slots.Ask{ID: "r", Wanted: 1, Mix: policy.Mix{Managed: true}}, noon)
	a.Expire(noon.Add(slots.ReservationTTL))
	if _, live := a.Live("r"); !live {
		t.Error("the reservation ended too soon")
	}
	a.Expire(noon.Add(slots.ReservationTTL + 1))
	if _, live := a.Live("r"); live || a.Reservations() != 0 {
		t.Errorf("%d reservations are left", a.Reservations())
	}
}

// The replica before this one may have promised slots that nobody here knows of.
func TestSpotIsInDoubtAfterATakeover(t *testing.T) {
	a, mix := slots.NewAccounting(false), policy.Mix{Percent: 100, Managed: true}
	a.TakeOver(noon)
	ask := slots.Ask{ID: "r", Wanted: 3, Mix: mix}
	if got := a.Reserve(ask, noon.Add(time.Millisecond)); got.Doubt != slots.DoubtUnproven {
		t.Fatalf("%+v, want a doubt", got)
	}
	a.Sync(nil, a.ProvenBy(), a.ProvenBy())
	if got := a.Reserve(ask, a.ProvenBy()); got.Doubt != slots.DoubtNone || got.Capacity != capacity.Spot {
		t.Errorf("%+v after a live list, want spot", got)
	}
}

func TestAnOrdinalKeepsItsCapacityType(t *testing.T) {
	a, mix := slots.NewAccounting(true), policy.Mix{Percent: 50, Managed: true}
	for ordinal, want := range []capacity.Type{capacity.OnDemand, capacity.Spot, capacity.OnDemand, capacity.Spot} {
		got := a.Reserve(slots.Ask{ID: fmt.Sprint(ordinal), Wanted: 4, Mix: mix, Ordinal: ordinal}, noon)
		pod := plan.Pod{Name: fmt.Sprint("db-", ordinal), UID: types.UID(fmt.Sprint(ordinal)), Version: uint64(ordinal + 1), Slot: got.Slot, Capacity: got.Capacity, Reservation: fmt.Sprint(ordinal)}
		a.Observe(&pod, noon)
		if got.Slot != ordinal || got.Capacity != want {
			t.Errorf("ordinal %d: %+v, want %s", ordinal, got, want)
		}
	}
	a.Gone("3", 10, noon)
	if got := a.Reserve(slots.Ask{ID: "again", Wanted: 4, Mix: mix, Ordinal: 3}, noon.Add(time.Minute)); got.Capacity != capacity.Spot || got.Slot != 3 {
		t.Errorf("ordinal 3 comes back as %+v", got)
	}
}
