package slots

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheIDOfAReservationIsOneOfItsTextAlone(t *testing.T) {
	texts := []string{
		"0d4fbd5c-9e3e-4b0a-8a3c-0123456789ab", "0D4FBD5C-9E3E-4B0A-8A3C-0123456789AB", "0d4fbd5c-9e3e-4b0a-8a3c-0123456789ac",
		"0d4fbd5c-9e3e-4b0a-8a3c-0123456789a", "0d4fbd5c-9e3e-4b0a-8a3c--123456789ab", "0d4fbd5c9e3e4b0a8a3c0123456789ab", "1", "2", "",
	}
	seen := map[reservationID]string{}
	for _, text := range texts {
		id := idOf(text)
		if other, taken := seen[id]; taken {
			t.Errorf("%q and %q have the same id", text, other)
		}
		if idOf(text) != id {
			t.Errorf("%q has two ids", text)
		}
		seen[id] = text
	}
}

func TestReservationsAreKeptLikeInAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept reservations
		model, refs := map[string]plan.Reservation{}, map[string]ref{}
		now := spottest.Epoch
		ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "0d4fbd5c-9e3e-4b0a-8a3c-0123456789ab"})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if _, has := model[id]; has {
					return
				}
				now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "ms")) * time.Millisecond)
				model[id] = plan.Reservation{ID: id, Slot: rapid.IntRange(-1, policy.MaxSlot).Draw(t, "slot"), At: now, Moved: rapid.Bool().Draw(t, "moved"),
					Capacity: rapid.SampledFrom([]capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")}
				refs[id] = kept.add(model[id], 0)
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if _, has := model[id]; has {
					kept.remove(refs[id])
					delete(model, id)
				}
			},
			"": func(t *rapid.T) {
				for _, id := range []string{"a", "b", "c", "d", "0d4fbd5c-9e3e-4b0a-8a3c-0123456789ab"} {
					want, has := model[id]
					at := kept.find(id)
					if (at != 0) != has {
						t.Fatalf("%s: found %v, want %v", id, at != 0, has)
					}
					if !has {
						continue
					}
					got := kept.show(at)
					got.ID = id
					if got != want {
						t.Fatalf("%s: %+v, want %+v", id, got, want)
					}
				}
				if len(kept.items) > 6 || (len(model) == 0 && kept.items != nil) {
					t.Fatalf("%d reservations take the memory of %d", len(model), len(kept.items))
				}
			},
		})
	})
}

// Whoever has a member's token can ask for pods that never come, each time with another id. What is kept of such requests must follow
// from the replicas that are wanted, and not from how many requests there were.
func TestRequestsForPodsThatNeverComeAreNotKept(t *testing.T) {
	for _, wanted := range []int{0, 3, 100} {
		for name, m := range map[string]policy.Mix{"without a policy": {}, "with one": {Percent: 50, Floor: 1, Managed: true}} {
			a := NewAccounting(false)
			for i := range 20_000 {
				a.Reserve(Ask{ID: fmt.Sprintf("%0128d", i), Wanted: wanted, Mix: m, Final: true}, spottest.Epoch)
			}
			lost := max(wanted, 64)     // their pods may exist all the same
			waiting := max(wanted, 2)   // at least one of each type
			items := waiting + lost + 2 // the first is not used, and one is made before another is forgotten
			if a.lost.All > lost || a.reserved.All > waiting || len(a.promised.byID) > waiting+lost || len(a.promised.items) > items {
				t.Errorf("%d replicas, %s: %d reservations wait and %d are lost, %d are found by their ids, in memory for %d",
					wanted, name, a.reserved.All, a.lost.All, len(a.promised.byID), len(a.promised.items))
			}
		}
	}
}

// At capacity the oldest reservation of a type is given out again. A queue of each type has it at hand: a burst does not go through all
// that wait, for each of its pods. Here the links between the ends of the queues lead nowhere: whoever follows them panics.
func TestAnAdmissionAtCapacityGoesThroughNoQueue(t *testing.T) {
	const wanted, more = 1000, 3
	a, m := NewAccounting(false), policy.Mix{Percent: 70, Floor: wanted / 4, Managed: true}
	ask := func(i int) {
		a.Reserve(Ask{ID: fmt.Sprint(i), Wanted: wanted, Mix: m, Final: true}, spottest.Epoch)
	}
	for i := range 2 * wanted {
		ask(i)
	}
	if oldest := a.promised.at(a.waiting.first).capacity.Type(); oldest != capacity.Spot || a.spotIsSafe(&Ask{Wanted: wanted, Mix: m}) {
		t.Fatalf("nothing is searched for: the oldest reservation is for %s, and serves", oldest)
	}
	ends := map[ref]bool{}
	for _, q := range []struct {
		queue
		in int
	}{
		{a.waiting, inAll}, {a.replaced, inAll},
		{a.waitingFor[capacity.CodeOf(capacity.Spot)], inType}, {a.waitingFor[capacity.CodeOf(capacity.OnDemand)], inType},
	} {
		for range more + 1 {
			ends[q.first], ends[q.last] = true, true
			q.first, q.last = a.promised.at(q.first).links[q.in].next, a.promised.at(q.last).links[q.in].prev
		}
	}
	nowhere := link{prev: -1, next: -1}
	for r := range a.promised.items {
		if !ends[ref(r)] {
			a.promised.items[r].links = [...]link{nowhere, nowhere}
		}
	}
	for i := range more {
		ask(2*wanted + i)
	}
}
