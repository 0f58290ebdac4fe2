package slots

import (
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
