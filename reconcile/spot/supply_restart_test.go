package spot

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// restart has another process go on with what the cluster shows: pods, nodes and probes.
func (w *supplyWorld) restart() {
	starts := &shortage.StartTimes{}
	w.accounts = NewAccounting(w.ordinals)
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		d := shortage.NewTracker(capacityType, shortage.DefaultSettings(), starts)
		for _, p := range w.probes {
			d.ObserveProbe(*p, w.now)
		}
		w.droughts[capacityType] = d
	}
	for _, p := range w.sorted() {
		w.see(p)
	}
}

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
		if n := len(w.verdicts[capacity.Spot]) + len(w.verdicts[capacity.OnDemand]); n > 0 || len(w.evicted) > 0 {
			t.Errorf("restarts %t: %d premature verdicts, %d evictions", restarts, n, len(w.evicted))
		}
	}
}

// Spot goes away and comes back while the hub restarts at any moment: replicas serve as they would without, the floor never does
// less, and no ready replica is moved that would not be moved without. Of ordinals whose volumes are where no spot node is, which the hub
// has found out by moving them, the pods that came back say so.
func TestARestartAtAnyMomentCostsNoFloorAndNoEviction(t *testing.T) {
	const floor = 3
	run := func(ordinals bool, refuses func(*supplyPod, *supplyNode) bool, at time.Duration) (evicted, least int) {
		w := newSupplyWorld(12, spottest.PolicyOf(75, floor))
		if ordinals {
			w = newSupplySet(12, spottest.PolicyOf(75, floor))
			w.shape = capacity.Requirements{CPU: 1, Constraints: []string{capacity.ConstraintVolume + "shop/data-db-"}}
		}
		w.tick, w.refuses = 5*time.Second, refuses
		w.addNode(capacity.OnDemand, 40)
		w.addNode(capacity.Spot, 20)
		w.until(t, "settled", 6*time.Hour, func() bool { ready, _ := w.on(capacity.OnDemand); return ready >= floor && w.ready() == 12 })
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
	odd := func(p *supplyPod, n *supplyNode) bool {
		number, _ := phrase.Ordinal(p.Name)
		return n.capacity == capacity.Spot && number%2 == 1
	}
	for name, c := range map[string]struct {
		ordinals bool
		refuses  func(*supplyPod, *supplyNode) bool
		more     int
	}{"Deployment": {false, nil, 0}, "StatefulSet": {true, nil, 0}, "StatefulSet with volumes elsewhere": {true, odd, 0}} {
		without, _ := run(c.ordinals, c.refuses, -1)
		for at := time.Minute; at < 3*time.Hour+50*time.Minute; at += 23 * time.Minute {
			evicted, least := run(c.ordinals, c.refuses, at)
			if evicted > without+c.more || least < floor {
				t.Errorf("%s, restart after %s: %d ready replicas evicted, %d without it; at least %d on-demand replicas served", name, at, evicted, without, least)
			}
		}
	}
}
