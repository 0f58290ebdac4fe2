package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// clusterOf is a cluster at rest with some workloads of ten replicas each, and room for all of them on either capacity.
func clusterOf(t *testing.T, workloads int, strategy policy.Strategy, percent int) *Hub {
	t.Helper()
	c := newCluster(1)
	c.strict = true
	for range 4 {
		c.addNode(capacity.Spot, 10*workloads)
		c.addNode(capacity.OnDemand, 10*workloads)
	}
	for i := range workloads {
		w := &Workload{name: fmt.Sprintf("w%d", i), replicas: 10, size: 1 + i%2, probed: 1 + i%2, policy: spottest.PolicyOf(percent, 1),
			settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second, Strategy: strategy},
			budgets:  []*Budget{{name: "pdb", minimum: -1, maximum: 2}}}
		c.workloads = append(c.workloads, w)
		c.newSet(w, w.replicas)
	}
	h := newHub(c)
	h.until(t, "at rest", time.Minute, func() bool { return h.atRest() && h.exactMix() })
	return h
}

// until lets time pass until a condition holds, and returns how long that took.
func (h *Hub) until(t *testing.T, what string, limit time.Duration, done func() bool) time.Duration {
	t.Helper()
	start := h.now
	for !done() {
		if h.now.Sub(start) > limit {
			t.Fatalf("not %s within %s", what, limit)
		}
		h.tick(500*time.Millisecond, 0)
		h.deliver(0)
		if len(h.asserted) > 0 {
			t.Fatal(h.asserted[0])
		}
	}
	return h.now.Sub(start)
}

// serving counts the ready pods of all workloads by capacity type.
func (h *Hub) serving() (n capacity.Tally) {
	for _, w := range h.workloads {
		for _, p := range h.of(w) {
			if p.Ready && p.GoneBy.IsZero() && p.node.goneAt.IsZero() {
				n.Add(p.Capacity, 1)
			}
		}
	}
	return n
}

func TestALostSpotCapacityIsMadeGoodFromOnDemandAndComesBackWithTheProbe(t *testing.T) {
	for _, strategy := range []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease} {
		h := clusterOf(t, 20, strategy, 100)
		for _, n := range h.nodes {
			if n.capacity == capacity.Spot {
				h.lose(n)
			}
		}
		h.interrupted()
		took := h.until(t, "replaced from on-demand", 80*time.Second, func() bool { return h.serving().OnDemand == 200 })
		if decisions := h.droughts.Of(capacity.Spot).Decisions(); len(decisions) != 1 || decisions[0].Requirements.CPU != 1 {
			t.Errorf("%s: two shapes are dry, and the easier speaks for both: %+v", strategy, decisions)
		}
		clear(h.moves)
		for h.droughts.Of(capacity.Spot).Decisions()[0].Tries < 2 {
			h.tick(10*time.Second, 0)
		}
		if h.serving().OnDemand != 200 || len(h.moves) > 0 {
			t.Errorf("%s: replicas were moved to find out: %+v", strategy, h.moves)
		}
		h.addNode(capacity.Spot, 1000)
		h.droughts.NodeJoined(capacity.Spot, h.now)
		h.until(t, "probed", 10*time.Minute, func() bool { return len(h.droughts.Of(capacity.Spot).Decisions()) == 0 })
		back := h.until(t, "back on spot", 3*time.Minute, func() bool { return h.exactMix() && h.atRest() })
		t.Logf("%s: replaced in %s, back %s after the probe", strategy, took, back)
	}
}

func TestTheReplacementsOfAnInterruptedNodeAreThereAtOnce(t *testing.T) {
	for _, strategy := range []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease} {
		h := clusterOf(t, 8, strategy, 100)
		n := h.nodes[0]
		h.until(t, "running on the node", time.Second, func() bool { return n.capacity == capacity.Spot })
		n.interruption = &plan.Interruption{Node: n.name, Notice: "taint", Since: h.now, By: h.now.Add(2 * time.Minute)}
		h.interrupted()
		lowest := 80
		h.until(t, "replaced", time.Minute, func() bool {
			lowest = min(lowest, h.serving().All)
			left := 0
			for _, p := range h.pods {
				if p.node == n {
					left++
				}
			}
			return left == 0 && h.atRest()
		})
		if strategy == policy.StrategyRelease && lowest < 80 {
			t.Errorf("%d of 80 replicas served while released pods stood in", lowest)
		}
	}
}

// The predecessor needs hours for what a fleet asks for after one change of a default.
func TestManyWorkloadsMoveSideBySide(t *testing.T) {
	h := clusterOf(t, 40, policy.StrategyEvict, 80)
	for _, w := range h.workloads[:20] {
		w.policy = spottest.PolicyOf(20, 1)
	}
	clear(h.moves)
	took := h.until(t, "moved", 3*time.Minute, func() bool { return h.exactMix() && h.atRest() })
	total := 0
	for _, n := range h.moves {
		total += n
	}
	if total != 20*6 {
		t.Errorf("%d moves in %s", total, took)
	}
}
