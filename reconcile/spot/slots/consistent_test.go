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
)

// Whatever is observed, asked and taken back, in any order: what an accounting counts is what it keeps.
func TestWhatIsCountedIsWhatIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordinals, mix := rapid.Bool().Draw(t, "ordinals"), spottest.DrawMix(t)
		a, now, asked := NewAccounting(ordinals), spottest.Epoch, 0
		pods := map[types.UID]plan.Pod{}
		uid := func(t *rapid.T) types.UID { return types.UID(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "pod"))) }
		request := func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, asked).Draw(t, "request")) }
		see := func(t *rapid.T) plan.Pod {
			id := uid(t)
			p, known := pods[id]
			if !known {
				p = plan.Pod{Name: "db-" + string(id), UID: id, Slot: rapid.IntRange(plan.NoSlot, 8).Draw(t, "slot"), Reservation: request(t),
					Capacity: rapid.SampledFrom([]capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")}
			}
			p.Version += uint64(rapid.IntRange(0, 2).Draw(t, "newer"))
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0:
				p.GoneBy = now
			case 1:
				p.Finished = true
			case 2:
				p.Interruption = &plan.Interruption{Node: "n"}
			case 3:
				p.Released = &plan.Released{Owner: "set", At: now, For: plan.PurposeMove}
			case 4:
				p.GoneBy, p.Finished, p.Interruption, p.Released = time.Time{}, false, nil, nil
			}
			pods[id] = p
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := consistent(a); err != nil {
					t.Fatal(err)
				}
			},
			"ask": func(t *rapid.T) {
				asked++
				a.Reserve(Ask{ID: fmt.Sprint(asked), Wanted: rapid.IntRange(0, 6).Draw(t, "wanted"), Ordinal: rapid.IntRange(0, 6).Draw(t, "ordinal"),
					Mix: mix, Final: rapid.Bool().Draw(t, "final"), DryRun: rapid.IntRange(0, 5).Draw(t, "dry run") == 0}, now)
			},
			"see":    func(t *rapid.T) { p := see(t); a.Observe(&p, now) },
			"gone":   func(t *rapid.T) { id := uid(t); a.Gone(id, pods[id].Version, now); delete(pods, id) },
			"free":   func(t *rapid.T) { a.Free(uid(t), now) },
			"let go": func(t *rapid.T) { a.LetGo(uid(t), &plan.Released{Owner: "set", At: now, For: plan.PurposeMove}, now) },
			"failed": func(t *rapid.T) { a.Restore(uid(t)) },
			"unanswered": func(t *rapid.T) {
				a.Unanswered(uid(t), rapid.SampledFrom([]plan.Purpose{plan.PurposeMove, plan.PurposeInterruption, plan.PurposeFinish}).Draw(t, "purpose"), now)
			},
			"release": func(t *rapid.T) { a.Release(request(t)) },
			"list": func(t *rapid.T) {
				a.Sync([]plan.Pod{see(t)}, now.Add(-time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms"))*time.Millisecond), now)
			},
			"retain":    func(t *rapid.T) { a.Retain(func(id types.UID) bool { _, cached := pods[id]; return cached }, now) },
			"summary":   func(*rapid.T) { a.Summary(4, now) },
			"take over": func(*rapid.T) { a.TakeOver(now) },
			"wait": func(t *rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, plan.SettleTime, ReservationTTL}).Draw(t, "time"))
			},
		})
	})
}

// consistent compares what an accounting counts with what it keeps.
func consistent(a *Accounting) error {
	var visible, reserved, lost capacity.Tally
	holders := map[int]int{}
	for _, s := range a.pods {
		if s.holds() {
			visible.Add(s.capacity, 1)
			holders[s.slot]++
		}
	}
	for id, at := range a.promised.byID {
		switch r := a.promised.at(at); {
		case r.id != id:
			return fmt.Errorf("reservation %x is kept as %x", r.id, id)
		case r.lost:
			lost.Add(r.capacity.Type(), 1)
		default:
			reserved.Add(r.capacity.Type(), 1)
			holders[int(r.slot)]++
		}
	}
	for _, capacityType := range capacity.Types {
		oldest := a.waiting.first
		for oldest != 0 && a.promised.at(oldest).capacity != capacity.CodeOf(capacityType) {
			oldest = a.promised.at(oldest).links[inAll].next
		}
		if a.waitingFor[capacity.CodeOf(capacityType)].first != oldest {
			return fmt.Errorf("the oldest reservation of type %q is not the first", capacityType)
		}
	}
	if visible != a.visible || reserved != a.reserved || lost != a.lost {
		return fmt.Errorf("counts %+v %+v %+v, kept are %+v %+v %+v", a.visible, a.reserved, a.lost, visible, reserved, lost)
	}
	for slot := range a.slots.holders {
		if a.slots.count(slot) != holders[slot] {
			return fmt.Errorf("slot %d: %d holders counted, %d kept", slot, a.slots.count(slot), holders[slot])
		}
	}
	return nil
}
