package slots

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Show skips what changes nothing: whatever else is done, it leaves an accounting and the pod as Observe and Mark do.
func TestShowIsObserveAndMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordinals, mix := rapid.Bool().Draw(t, "ordinals"), spottest.DrawMix(t)
		shown, observed, now, asked := NewAccounting(ordinals), NewAccounting(ordinals), spottest.Epoch, 0
		pods := map[types.UID]plan.Pod{}
		uid := func(t *rapid.T) types.UID { return types.UID(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "pod"))) }
		both := func(do func(*Accounting)) { do(shown); do(observed) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if !reflect.DeepEqual(shown, observed) {
					t.Fatalf("after Show:\n%+v\nafter Observe and Mark:\n%+v", shown, observed)
				}
			},
			"ask": func(t *rapid.T) {
				asked++
				ask := Ask{ID: fmt.Sprint(rapid.IntRange(0, asked).Draw(t, "id")), Wanted: rapid.IntRange(0, 6).Draw(t, "wanted"),
					Ordinal: rapid.IntRange(0, 6).Draw(t, "ordinal"), Mix: mix, Final: true}
				both(func(a *Accounting) { a.Reserve(ask, now) })
			},
			"show": func(t *rapid.T) {
				p, known := pods[uid(t)]
				if !known {
					return
				}
				one, other := p, p
				shown.Show(&one, now)
				observed.Observe(&other, now)
				observed.Mark(&other)
				if !reflect.DeepEqual(one, other) {
					t.Fatalf("%+v is shown as %+v, not %+v", p, one, other)
				}
			},
			"change": func(t *rapid.T) {
				id := uid(t)
				p, known := pods[id]
				if !known {
					p = plan.Pod{Name: "db-" + string(id), UID: id, Slot: rapid.IntRange(plan.NoSlot, 8).Draw(t, "slot")}
					if n := rapid.IntRange(0, asked+1).Draw(t, "reservation"); n <= asked {
						p.Reservation = fmt.Sprint(n)
					}
				}
				p.Capacity = rapid.SampledFrom([]capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")
				p.Version += uint64(rapid.IntRange(0, 2).Draw(t, "newer"))
				p.GoneBy, p.Finished, p.Interruption, p.Released = time.Time{}, false, nil, nil
				switch rapid.IntRange(0, 8).Draw(t, "change") {
				case 0:
					p.GoneBy = now
				case 1:
					p.Finished = true
				case 2:
					p.Interruption = &plan.Interruption{Node: "n"}
				case 3:
					p.Released = &plan.Released{Owner: "set", At: now, For: plan.PurposeMove}
				}
				pods[id] = p
			},
			"gone": func(t *rapid.T) { id := uid(t); both(func(a *Accounting) { a.Gone(id, pods[id].Version, now) }) },
			"free": func(t *rapid.T) { id := uid(t); both(func(a *Accounting) { a.Free(id, now) }) },
			"let go": func(t *rapid.T) {
				id := uid(t)
				r := &plan.Released{At: now}
				both(func(a *Accounting) { a.LetGo(id, r, now) })
			},
			"restore": func(t *rapid.T) { id := uid(t); both(func(a *Accounting) { a.Restore(id) }) },
			"doubt":   func(t *rapid.T) { id := uid(t); both(func(a *Accounting) { a.Unanswered(id, plan.PurposeMove, now) }) },
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			},
		})
	})
}

// A pod is asked for whose ordinal has one, which stays: by hand, for instance. What the one that is there shows counts again afterwards.
func TestAnOrdinalIsAgainWhatItsPodShowsWhenAReservationForItCameToNothing(t *testing.T) {
	a, now := NewAccounting(true), spottest.Epoch
	pod := plan.Pod{Name: "db-0", UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}
	show := func() {
		shown := pod
		a.Show(&shown, now)
	}
	ask := func(ordinal int) Answer {
		m := policy.Mix{Percent: 50, Floor: 1, Managed: true}
		return a.Reserve(Ask{ID: fmt.Sprint("request-", ordinal), Ordinal: ordinal, Wanted: 2, Mix: m}, now)
	}
	a.Reserve(Ask{ID: "before", Ordinal: 1, Wanted: 2, Mix: spottest.SpotOnly}, now) // so that ordinal 1 was on spot
	a.Release("before")
	show()
	if got := ask(0); got.Capacity != capacity.OnDemand {
		t.Fatalf("%+v", got)
	}
	now = now.Add(ReservationTTL + time.Second)
	a.Expire(now)
	show()
	if got := ask(1); got.Capacity != capacity.OnDemand {
		t.Errorf("%s, and the only other replica is on spot: the floor is 1", got.Capacity)
	}
}
