package spot

import (
	"fmt"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// takeover lets another replica decide, whose cache lags as much as the one before: it has what its informers told, and no
// reservations.
func (w *world) takeover() {
	w.acc, w.lastMove = NewAccounting(w.ordinals), time.Time{}
	w.acc.TakeOver(w.now)
	for _, p := range w.sorted() {
		if known, ok := w.cache[p.UID]; ok {
			w.acc.Observe(&known, w.now)
		}
	}
}

// The successor has the mix that its predecessor would have had, for it looks at what is live before it first sends a pod to
// spot.
func TestATakeoverWithinABurstCostsNoMove(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed, 0, spottest.PolicyOf(70, 3))
		w.live = true
		w.scale(40)
		w.deliver(len(w.events))
		for i := range 40 {
			if i == 20 {
				w.takeover()
			}
			w.create("")
			w.pass(5*time.Millisecond, 150*time.Millisecond)
		}
		have, m := w.count(), w.mix()
		if have.Spot != m.Spot(40) || have.OnDemand != m.OnDemand(40) {
			t.Fatalf("seed %d: %+v of 40, want %d on spot", seed, have, m.Spot(40))
		}
		if _, err := w.converge(); err != nil || w.evictions > 0 {
			t.Fatalf("seed %d: %d evictions, %v", seed, w.evictions, err)
		}
	}
}

// Pods die by other hands while the owner of the member changes, again and again, and the cache lags by up to five seconds.
// Where live lists fail, new pods go on-demand until the cache has caught up.
func TestTheFloorStandsThroughTakeovers(t *testing.T) {
	const runs = 850 // of twelve settings
	for _, lag := range []int{50, 200, 500, 1000, 2000, 5000} {
		for _, live := range []bool{false, true} {
			for seed := range uint64(runs) {
				w := newWorld(seed, 0, spottest.PolicyOf(90, 3))
				w.live, w.storing = live, seed%2 == 0
				w.ordinals = seed%5 == 0
				w.restart()
				w.scale(8)
				w.deliver(len(w.events))
				took := w.rand.IntN(20)
				for i := range 40 {
					if i == took || w.rand.IntN(12) == 0 {
						w.takeover()
					}
					if w.rand.IntN(3) == 0 {
						w.kill()
					}
					w.replaceOne()
					w.pass(time.Duration(w.rand.IntN(100))*time.Millisecond, time.Duration(w.rand.IntN(lag))*time.Millisecond)
					if err := w.floorStands(); err != nil {
						t.Fatalf("lag up to %d ms, live lists %v, seed %d, step %d: %v", lag, live, seed, i, err)
					}
				}
			}
		}
	}
}

// replaceOne makes one pod that is missing, if there is one.
func (w *world) replaceOne() {
	have := map[string]bool{}
	for _, p := range append(w.alive(), w.stored...) {
		have[p.Name] = true
	}
	if len(have) >= w.wanted {
		return
	}
	name := ""
	if w.ordinals {
		for n := range w.wanted {
			if name = fmt.Sprintf("db-%d", n); !have[name] {
				break
			}
		}
	}
	w.create(name)
}

func TestMovesOfASuccessorKeepTheFloor(t *testing.T) {
	for seed := range uint64(120) {
		w := newWorld(seed, 0, spottest.PolicyOf(30, 6))
		w.live = seed%2 == 0
		w.scale(20)
		w.deliver(len(w.events))
		for range 20 {
			w.create("")
		}
		w.start(20)
		w.deliver(len(w.events))
		w.policy = spottest.PolicyOf(100, 4) // the floor is all that stays on-demand
		for range 60 {
			if w.rand.IntN(6) == 0 {
				w.takeover()
			}
			if w.rand.IntN(6) == 0 {
				w.kill()
				w.control() // at once, or nobody could know of it
			}
			if w.rand.IntN(6) == 0 {
				w.takeover()
			}
			w.act(0)
			w.control()
			w.start(w.rand.IntN(3))
			w.pass(time.Duration(w.rand.IntN(4000))*time.Millisecond, time.Duration(w.rand.IntN(1500))*time.Millisecond)
		}
		if len(w.broken) > 0 {
			t.Fatalf("seed %d: %s", seed, w.broken[0])
		}
	}
}

func TestASuccessorSendsPodsToSpotOnlyByWhatIsLive(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Floor: 1, Managed: true} // slots: on-demand, spot, on-demand, spot
	pod := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.OnDemand, Version: 1}
	a.Observe(&pod, spottest.Epoch)
	a.TakeOver(spottest.Epoch)
	ask := func(id string, final bool, m policy.Mix, now time.Time) Answer {
		return a.Reserve(Ask{ID: id, Wanted: 4, Mix: m, Final: final, DryRun: true}, now)
	}
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtUnproven {
		t.Errorf("without a live list: %+v", got)
	}
	if got := ask("a", true, m, spottest.Epoch); got.Capacity != capacity.OnDemand || got.Reason != ReasonUnproven {
		t.Errorf("without a live list, for good: %+v", got)
	}
	if got := ask("a", true, policy.Mix{Percent: 100, Managed: true}, spottest.Epoch); got.Capacity != capacity.Spot {
		t.Errorf("there is no floor to keep: %+v", got)
	}
	if got := ask("a", false, policy.Mix{Managed: true}, spottest.Epoch); got.Capacity != capacity.OnDemand || got.Doubt != DoubtNone {
		t.Errorf("on-demand is safe whatever is live: %+v", got)
	}
	a.Sync([]plan.Pod{pod}, a.ProvenBy().Add(-1), spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtUnproven {
		t.Errorf("a pod that the predecessor admitted may not have been stored when this list was read: %+v", got)
	}
	a.Sync([]plan.Pod{pod}, a.ProvenBy(), spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Capacity != capacity.Spot || got.Doubt != DoubtNone {
		t.Errorf("with a live list: %+v", got)
	}
	a.TakeOver(spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtNone {
		t.Errorf("the same takeover, told again: %+v", got)
	}
	later := spottest.Epoch.Add(time.Hour)
	a.TakeOver(later)
	if got := ask("a", false, m, later); got.Doubt != DoubtUnproven {
		t.Errorf("another takeover: %+v", got)
	}
	if s := a.Summary(4, later); !s.UnprovenUntil.Equal(later.Add(plan.SettleTime)) {
		t.Errorf("in doubt until %v", s.UnprovenUntil)
	}
	if got := ask("a", false, m, later.Add(plan.SettleTime)); got.Doubt != DoubtNone || !a.Summary(4, later.Add(plan.SettleTime)).UnprovenUntil.IsZero() {
		t.Errorf("the cache has caught up: %+v", got)
	}
}

func TestAMoveToSpotWaitsUntilASuccessorKnowsWhatIsThere(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Managed: true}), 10)
	o.Owners[0].Accounting.UnprovenUntil = spottest.Epoch.Add(3 * time.Second)
	r := plan.Plan(o, spottest.PolicyOf(50, 1), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitUnexplained) == nil || !r.Recheck.Equal(spottest.Epoch.Add(3*time.Second)) {
		t.Errorf("%+v", r)
	}
	o = plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	o.Owners[0].Accounting.UnprovenUntil = spottest.Epoch.Add(3 * time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(50, 1), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) == 0 {
		t.Errorf("moves to on-demand cannot cost the floor: %+v", r)
	}
}
