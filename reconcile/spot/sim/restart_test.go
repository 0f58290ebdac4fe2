package sim

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// How long nodes take is found again in the pods that waited for them.
func TestStartTimesOfNodesAreKnownAgainAfterARestart(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := scaling(t, 50*time.Second, false)
		for i, takes := range []time.Duration{50 * time.Second, 80 * time.Second, 110 * time.Second} {
			w.scaler.takes, w.replicas = takes, 40+30*i
			w.pass(10*time.Minute, nil)
			if restarts {
				w.restart()
			}
		}
		if n := len(w.decisions[capacity.Spot]) + len(w.decisions[capacity.OnDemand]); n > 0 || len(w.gone) > 0 {
			t.Errorf("restarts %t: %d premature decisions, %d evictions", restarts, n, len(w.gone))
		}
	}
}

// Spot goes away and comes back while the hub restarts at any moment: replicas serve as they would without, the floor never does
// less, and no ready replica is moved that would not be moved without. Of ordinals whose volumes are where no spot node is, which the hub
// has found out by moving them, the pods that came back say so.
func TestARestartAtAnyMomentCostsNoFloorAndNoEviction(t *testing.T) {
	const floor = 3
	run := func(ordinals bool, refuses func(*Pod, *Node) bool, at time.Duration) (evicted, least int) {
		w := newSingle(t, ordinals, 12, spottest.PolicyOf(75, floor))
		if ordinals {
			w.needs = []string{capacity.ConstraintVolume + "shop/data-db-"}
		}
		w.step, w.refuses = 5*time.Second, refuses
		w.addNode(capacity.OnDemand, 40)
		w.addNode(capacity.Spot, 20)
		w.until("settled", 6*time.Hour, func() bool { ready, _ := w.on(capacity.OnDemand); return ready >= floor && w.ready() == 12 })
		start := w.now
		least = 12
		each := func() {
			if w.now.Equal(start.Add(at)) {
				w.restart()
			}
			ready, _ := w.on(capacity.OnDemand)
			least = min(least, ready)
		}
		w.pass(10*time.Minute, each)
		w.loseNodes(capacity.Spot)
		w.pass(40*time.Minute, each)
		w.addNode(capacity.Spot, 20)
		w.pass(3*time.Hour, each)
		return w.readyEvictions(start), least
	}
	odd := func(p *Pod, n *Node) bool {
		number, _ := phrase.Ordinal(p.Name)
		return n.capacity == capacity.Spot && number%2 == 1
	}
	for name, c := range map[string]struct {
		ordinals bool
		refuses  func(*Pod, *Node) bool
		more     int // in all: while a moved ordinal waits without success, nothing outlives a restart that says that a probe had sent it: it is moved once more
	}{"Deployment": {false, nil, 0}, "StatefulSet": {true, nil, 0}, "StatefulSet with volumes elsewhere": {true, odd, 1}} {
		without, _ := run(c.ordinals, c.refuses, -1)
		more := 0
		for at := time.Minute; at < 3*time.Hour+50*time.Minute; at += 23 * time.Minute {
			evicted, least := run(c.ordinals, c.refuses, at)
			more += max(evicted-without, 0)
			if more > c.more || least < floor {
				t.Errorf("%s, restart after %s: %d ready replicas evicted, %d without it; at least %d on-demand replicas served", name, at, evicted, without, least)
			}
		}
	}
}
