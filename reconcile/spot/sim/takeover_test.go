package sim

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// The successor has the mix that its predecessor would have had, for it looks at what is live before it first sends a pod to
// spot.
func TestATakeoverWithinABurstCostsNoMove(t *testing.T) {
	for seed := range uint64(200) {
		w := newSteps(t, false, seed, 0, spottest.PolicyOf(70, 3))
		w.scale(40)
		w.deliver(0)
		for i := range 40 {
			if i == 20 {
				w.takeover()
			}
			w.create(w.sets[0], "")
			w.wait(5*time.Millisecond, 150*time.Millisecond)
		}
		have, m := w.count(), w.mix()
		if have.Spot != m.Spot(40) || have.OnDemand != m.OnDemand(40) {
			t.Fatalf("seed %d: %+v of 40, want %d on spot", seed, have, m.Spot(40))
		}
		if _, err := w.converge(); err != nil || len(w.gone) > 0 {
			t.Fatalf("seed %d: %d evictions, %v", seed, len(w.gone), err)
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
				w := newSteps(t, seed%5 == 0, seed, 0, spottest.PolicyOf(90, 3))
				w.blind, w.late = map[bool]float64{false: 1}[live], seed%2 == 0
				w.scale(8)
				w.deliver(0)
				took := w.rand.IntN(20)
				for i := range 40 {
					if i == took || w.rand.IntN(12) == 0 {
						w.takeover()
					}
					if w.rand.IntN(3) == 0 {
						w.kill()
					}
					w.replaceOne()
					w.wait(time.Duration(w.rand.IntN(100))*time.Millisecond, time.Duration(w.rand.IntN(lag))*time.Millisecond)
					if err := w.floorStands(); err != nil {
						t.Fatalf("lag up to %d ms, live lists %v, seed %d, step %d: %v", lag, live, seed, i, err)
					}
				}
			}
		}
	}
}

func TestMovesOfASuccessorKeepTheFloor(t *testing.T) {
	for seed := range uint64(120) {
		w := newSteps(t, false, seed, 0, spottest.PolicyOf(30, 6))
		w.blind = float64(seed % 2)
		w.scale(20)
		w.deliver(0)
		for range 20 {
			w.create(w.sets[0], "")
		}
		w.start(20)
		w.deliver(0)
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
			w.wait(time.Duration(w.rand.IntN(4000))*time.Millisecond, time.Duration(w.rand.IntN(1500))*time.Millisecond)
		}
	}
}
