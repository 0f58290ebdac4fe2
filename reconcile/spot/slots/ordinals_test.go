package slots

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// slowDecision is the definition of where an ordinal goes: every known ordinal is looked at.
func slowDecision(known map[int]capacity.Type, ask *Ask) capacity.Type {
	if ask.Mix.Managed && ask.Mix.Dry {
		return capacity.OnDemand
	}
	slot := max(ask.Ordinal-ask.Start, plan.NoSlot)
	wanted := max(ask.Wanted, slot+1)
	var others capacity.Tally
	for number, capacityType := range known {
		if number != ask.Ordinal && number >= ask.Start && number < ask.Start+wanted {
			others.Add(capacityType, 1)
		}
	}
	preferred := ask.Mix.Of(slot)
	if had := known[ask.Ordinal]; had != "" && had != capacity.Unknown && ask.Mix.Managed {
		preferred = had
	}
	capacityType, _ := balance(ask.Mix, wanted, others, preferred, "")
	return capacityType
}

func TestOrdinalsAreAnsweredAsIfAllOfThemWereCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, known, pods := NewAccounting(true), map[int]capacity.Type{}, map[int]types.UID{}
		start, wanted, mix, now, serial := rapid.IntRange(0, 5).Draw(t, "start"), rapid.IntRange(0, 12).Draw(t, "wanted"), spottest.DrawMix(t), spottest.Epoch, 0
		ordinal := func(t *rapid.T) int { return rapid.IntRange(0, 24).Draw(t, "ordinal") }
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				serial++
				ask := Ask{ID: fmt.Sprint(serial), Ordinal: ordinal(t), Start: start, Wanted: wanted, Mix: mix}
				want, got := slowDecision(known, &ask), a.Reserve(ask, now)
				if got.Capacity != want {
					t.Fatalf("%+v: %s, want %s of %v", ask, got.Capacity, want, known)
				}
				known[ask.Ordinal] = got.Capacity
			},
			"see": func(t *rapid.T) {
				serial++
				number := ordinal(t)
				if w := a.ordinals.known[number]; w != nil && w.waiting != 0 {
					return // whose pod this would be is another question
				}
				p := plan.Pod{Name: fmt.Sprintf("db-%d", number), UID: types.UID(fmt.Sprint(serial)), Version: uint64(serial),
					Capacity: rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")}
				a.Observe(&p, now)
				known[number], pods[number] = p.Capacity, p.UID
			},
			"lose": func(t *rapid.T) {
				if number := ordinal(t); pods[number] != "" {
					serial++
					a.Gone(pods[number], uint64(serial), now)
					delete(pods, number)
				}
			},
			"change": func(t *rapid.T) {
				start, wanted, mix = rapid.IntRange(0, 5).Draw(t, "start"), rapid.IntRange(0, 12).Draw(t, "wanted"), spottest.DrawMix(t)
				mix.Dry = rapid.IntRange(0, 5).Draw(t, "dry") == 0
			},
			"wait": func(*rapid.T) { now = now.Add(time.Minute) },
		})
	})
}

func TestOrdinalsAreCountedLikeInAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts, list := ordinalCounts{}, map[int]capacity.Type{}
		number := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 1<<ordinalBits-1))
		for range rapid.IntRange(0, 40).Draw(t, "ordinals") {
			n, capacityType := number.Draw(t, "ordinal"), rapid.SampledFrom([]capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")
			counts.add(n, list[n], -1)
			counts.add(n, capacityType, 1)
			list[n] = capacityType
		}
		end := rapid.OneOf(number, rapid.SampledFrom([]int{-1, 0, 1 << ordinalBits, 1 << 40})).Draw(t, "end")
		var want capacity.Tally
		for n, capacityType := range list {
			if n < end && capacityType != capacity.Unknown {
				want.Add(capacityType, 1)
			}
		}
		if got := counts.before(end); got != want {
			t.Fatalf("%+v ordinals below %d, want %+v", got, end, want)
		}
		for n, capacityType := range list {
			counts.add(n, capacityType, -1)
		}
		if len(counts) > 0 {
			t.Fatalf("%d nodes are left that count nothing", len(counts))
		}
	})
}

func TestOrdinalsThatNobodyNeedsAreForgotten(t *testing.T) {
	a, m, now := NewAccounting(true), policy.Mix{Percent: 50, Floor: 1, Managed: true}, spottest.Epoch
	ask := func(ordinal int) Answer {
		now = now.Add(time.Millisecond)
		return a.Reserve(Ask{ID: fmt.Sprintf("request-%d", ordinal), Ordinal: ordinal, Wanted: 10, Mix: m}, now)
	}
	for ordinal := range 10 {
		ask(ordinal)
	}
	for i := range 100_000 { // pods that nobody wants, made and deleted by hand
		ask(i * 1000)
		uid := types.UID(fmt.Sprint(i))
		a.Observe(&plan.Pod{Name: fmt.Sprintf("db-%d", i*1000), UID: uid, Capacity: capacity.OnDemand, Version: uint64(2*i + 1)}, now)
		a.Gone(uid, uint64(2*i+2), now)
	}
	if n, reserved := len(a.ordinals.known), a.Reservations(); n > 4*spareOrdinals || reserved > 2*spareOrdinals {
		t.Errorf("%d ordinals and %d reservations of a StatefulSet of 10", n, reserved)
	}
	if got := ask(7); got.Capacity != m.Of(7) || !got.Reused {
		t.Errorf("ordinal 7 is forgotten: %+v", got)
	}
}

func TestAnOrdinalFarFromTheWantedOnesIsAnsweredAllTheSame(t *testing.T) {
	a, m := NewAccounting(true), policy.Mix{Percent: 50, Managed: true}
	for _, ordinal := range []int{100_000, 100_001} {
		got := a.Reserve(Ask{ID: fmt.Sprint(ordinal), Ordinal: ordinal, Wanted: 2, Mix: m}, spottest.Epoch)
		if got.Slot != ordinal || got.Capacity != m.Of(ordinal) || a.Reservations() != 0 {
			t.Errorf("ordinal %d: %+v, %d reservations", ordinal, got, a.Reservations())
		}
	}
}

// A StatefulSet may have any number of ordinals, and an admission looks at its own alone. Here nothing is behind the others: whoever goes
// through them panics.
func TestAnAdmissionGoesThroughNoOrdinalsButItsOwn(t *testing.T) {
	const replicas = 1000
	a, m := NewAccounting(true), policy.Mix{Percent: 70, Floor: 3, Managed: true}
	ask := func(ordinal int) {
		a.Reserve(Ask{ID: fmt.Sprint(ordinal), Ordinal: ordinal, Wanted: replicas, Mix: m}, spottest.Epoch)
	}
	for ordinal := range replicas - 1 {
		ask(ordinal)
	}
	for ordinal := range a.ordinals.known {
		a.ordinals.known[ordinal] = nil
	}
	ask(replicas - 1)
}
