package sim

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

// drawWorkload draws a workload of any kind and policy.
func drawWorkload(t *rapid.T, c *Cluster, name string) *Workload {
	m := spottest.DrawMix(t)
	w := &Workload{name: name, ordinals: rapid.IntRange(0, 3).Draw(t, "kind") == 0, replicas: rapid.IntRange(0, 14).Draw(t, "replicas"),
		size: rapid.IntRange(1, 2).Draw(t, "size"), policy: spottest.PolicyOf(m.Percent, m.Floor), oneByOne: rapid.Bool().Draw(t, "ordered"),
		settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: rapid.SampledFrom([]int{10, 50}).Draw(t, "moves")}, Cooldown: 10 * time.Second,
			Strategy:       rapid.SampledFrom([]policy.Strategy{policy.StrategyEvict, policy.StrategyRelease}).Draw(t, "strategy"),
			PendingTimeout: rapid.SampledFrom([]time.Duration{policy.MinPendingTimeout, time.Minute, 10 * time.Minute}).Draw(t, "pending timeout")}}
	w.probed = rapid.IntRange(1, w.size).Draw(t, "probed")
	if rapid.IntRange(0, 3).Draw(t, "window") == 0 {
		w.policy.Window, _ = policy.ParseWindow("*/10 * * * *", "4m", "UTC")
	}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2}).Draw(t, "budgets") {
		w.budgets = append(w.budgets, drawBudget(t, fmt.Sprintf("%s-%d", name, i)))
	}
	c.workloads = append(c.workloads, w)
	c.newSet(w, w.replicas)
	return w
}

func drawBudget(t *rapid.T, name string) *Budget {
	b := &Budget{name: name, minimum: -1, percent: rapid.Bool().Draw(t, "percent"), always: rapid.Bool().Draw(t, "always")}
	most := 4
	if b.percent {
		most = 100
	}
	if rapid.Bool().Draw(t, "minAvailable") {
		b.minimum = rapid.IntRange(0, most).Draw(t, "minimum")
	} else {
		b.maximum = rapid.IntRange(0, most).Draw(t, "maximum")
	}
	return b
}

// tick lets a moment pass: everybody does something, in any order.
func (h *Hub) tick(d, lag time.Duration) {
	h.now = h.now.Add(d)
	h.store()
	away := h.now.Before(h.away)
	if !away && !h.away.IsZero() {
		h.away = time.Time{}
		h.restart()
	}
	if !away {
		h.deliver(lag)
	}
	for _, at := range h.perm(7) {
		if h.strict || h.rand.IntN(4) > 0 {
			h.act(at, away)
		}
	}
	if !away {
		h.noticeNodes()
	}
}

// act lets one of those who act do its work.
func (h *Hub) act(who int, away bool) {
	switch {
	case who == 0:
		for _, w := range h.workloads {
			h.control(w)
		}
	case who == 1:
		h.schedule()
	case who == 2:
		h.run()
	case who == 3:
		h.joined(h.scale())
	case away:
	case who == 4:
		for _, w := range h.workloads {
			h.reconcile(w)
		}
	case who == 5:
		h.stepDroughts()
	case who == 6:
		h.finishOrphans()
	}
}

// calm ends all trouble: there is room everywhere, nothing is lost, and budgets let moves happen.
func (h *Hub) calm() {
	h.strict, h.crash, h.blind = true, 0, 0
	if !h.away.IsZero() {
		h.away = h.now
	}
	for _, n := range h.nodes {
		if n.goneAt.IsZero() && n.interruption != nil && n.interruption.By.IsZero() {
			n.interruption.By = h.now
		}
	}
	for _, p := range h.pods {
		if p.GoneBy.After(h.now) {
			p.GoneBy = h.now
		}
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		h.joined([]*Node{h.addNode(capacityType, 1000)})
	}
	for _, w := range h.workloads {
		w.settings.ReadOnly, w.policy.Problems = false, nil
		for i := range w.budgets {
			w.budgets = w.budgets[:1]
			*w.budgets[i] = Budget{name: w.budgets[i].name, minimum: -1, maximum: 2}
			break
		}
	}
}

// settle lets time pass until a condition holds.
func (h *Hub) settle(t *rapid.T, what string, done func() bool) {
	for range 4000 {
		h.tick(time.Second, 0)
		h.deliver(0)
		if done() {
			return
		}
		if len(h.asserted) > 0 {
			t.Fatal(h.asserted[0])
		}
	}
	for _, w := range h.workloads {
		r := plan.Plan(h.observed(w), w.policy, w.settings, h.now)
		have, ready := h.supply(w)
		t.Logf("%s: %s: %s; waits %+v; supply %+v, %d ready of %d, policy %+v", w.name, r.State, r.Reason, r.Waits, have, ready, w.replicas, w.policy.Mix())
		for _, p := range h.of(w) {
			if p.Slot == plan.NoSlot || p.Finished || !p.GoneBy.IsZero() || p.Released != nil {
				t.Logf("left of %s: %+v", w.name, p.Pod)
			}
		}
	}
	t.Fatalf("never %s; decisions %+v, probes %+v", what, h.droughts.All(), h.probes)
}

// atRest reports whether every replica is there, ready and alone, and nothing is left of earlier troubles.
func (h *Hub) atRest() bool {
	for _, w := range h.workloads {
		have, ready := h.supply(w)
		if have.All != w.replicas || ready != w.replicas || len(h.of(w)) != w.replicas || len(w.sets) > 1 {
			return false
		}
		for _, p := range h.of(w) {
			if p.Slot == plan.NoSlot {
				return false
			}
		}
	}
	return len(h.droughts.All())+len(h.probes) == 0
}

// exactMix reports whether every workload is as its policy wants it.
func (h *Hub) exactMix() bool {
	for _, w := range h.workloads {
		have, _ := h.supply(w)
		if m := w.policy.Mix(); have.Spot != m.Spot(w.replicas) || have.OnDemand != m.OnDemand(w.replicas) {
			return false
		}
	}
	return true
}

// Whatever happens to a cluster and to the hub: the floor, windows, cool-downs, limits, budgets and modes hold at every
// write, no ready pod is evicted for a drought, and in the end every workload has its mix, after exactly as many moves as the
// counts differ, and nothing more is wanted.
func TestWhateverHappensPlansKeepTheRulesAndFindBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(rapid.Uint64().Draw(t, "seed"))
		for i := range rapid.IntRange(1, 3).Draw(t, "workloads") {
			drawWorkload(t, c, fmt.Sprintf("w%d", i))
		}
		for range 3 {
			c.addNode(capacity.Spot, 8)
			c.addNode(capacity.OnDemand, 16)
		}
		c.scaler = newScaler(time.Duration(rapid.SampledFrom([]int{5, 45, 90, 150}).Draw(t, "node start"))*time.Second, 2*time.Minute)
		c.scaler.signs = 0.75
		c.scaler.makes(capacity.Spot, 3, 8)
		c.scaler.makes(capacity.OnDemand, 3, 8)
		c.late = rapid.Bool().Draw(t, "stored late")
		c.hangs = rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "hangs")
		h := newHub(c)
		h.blind = rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "blind")
		h.crash = rapid.SampledFrom([]float64{0, 0.02, 0.2}).Draw(t, "crash")
		lag := rapid.SampledFrom([]time.Duration{0, 0, time.Second, 3 * time.Second}).Draw(t, "lag")
		one := func(t *rapid.T) *Workload { return rapid.SampledFrom(h.workloads).Draw(t, "workload") }
		node := func(t *rapid.T) *Node { return rapid.SampledFrom(h.nodes).Draw(t, "node") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				h.tick(time.Duration(rapid.IntRange(50, 4000).Draw(t, "ms"))*time.Millisecond, lag)
				if len(h.asserted) > 0 {
					t.Fatal(h.asserted[0])
				}
			},
			"wait": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "seconds") {
					h.tick(time.Second, lag)
				}
			},
			"scale": func(t *rapid.T) { one(t).replicas = rapid.IntRange(0, 16).Draw(t, "replicas") },
			"policy": func(t *rapid.T) {
				w, m := one(t), spottest.DrawMix(t)
				window := w.policy.Window
				w.policy = spottest.PolicyOf(m.Percent, m.Floor)
				w.policy.Window = window
			},
			"roll out": func(t *rapid.T) {
				if w := one(t); !w.ordinals && len(w.sets) == 1 {
					h.newSet(w, 0)
				}
			},
			"kill": func(t *rapid.T) {
				if pods := h.of(one(t)); len(pods) > 0 {
					h.end(rapid.SampledFrom(pods).Draw(t, "pod"))
				}
			},
			"notice": func(t *rapid.T) {
				if n := node(t); n.interruption == nil {
					n.interruption = &plan.Interruption{Node: n.name, Notice: "taint", Since: h.now}
					switch rapid.IntRange(0, 2).Draw(t, "weight") {
					case 0:
						n.interruption.By = h.now.Add(2 * time.Minute)
					case 1:
						n.interruption.Weight = plan.WeightAdvisory
					}
					h.interrupted()
				}
			},
			"all clear": func(t *rapid.T) {
				if n := node(t); n.goneAt.IsZero() {
					n.interruption = nil
					h.interrupted()
				}
			},
			"lose": func(t *rapid.T) {
				if n := node(t); n.goneAt.IsZero() {
					h.lose(n)
					h.interrupted()
				}
			},
			"lose spot": func(*rapid.T) {
				for _, n := range h.nodes {
					if n.capacity == capacity.Spot && n.goneAt.IsZero() {
						h.lose(n)
					}
				}
				h.interrupted()
			},
			"join": func(t *rapid.T) {
				h.joined([]*Node{h.addNode(rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity"), 8)})
			},
			"dry": func(t *rapid.T) {
				h.scaler.most[rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")] = rapid.IntRange(0, 3).Draw(t, "nodes")
			},
			"relabel": func(t *rapid.T) {
				if n := node(t); !n.scaled {
					n.capacity = n.capacity.Other()
					for _, p := range h.pods {
						if p.node == n {
							p.Capacity = n.capacity
						}
					}
				}
			},
			"fail": func(t *rapid.T) {
				if pods := h.of(one(t)); len(pods) > 0 {
					if p := rapid.SampledFrom(pods).Draw(t, "pod"); p.node != nil {
						h.fail(p)
					}
				}
			},
			"invalid": func(t *rapid.T) {
				w := one(t)
				w.policy.Problems = nil
				if rapid.Bool().Draw(t, "bad") {
					w.policy.Problems = []policy.Problem{{Key: "key", Value: "value", Rule: "a rule"}}
				}
			},
			"recreate": func(t *rapid.T) {
				if w := one(t); !w.ordinals && rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					h.recreate(w)
				}
			},
			"forget revisions": func(t *rapid.T) { one(t).past = nil }, // as revisionHistoryLimit has it; pods that were released from them are nobody's
			"leave": func(t *rapid.T) {
				if h.away.IsZero() {
					h.leave(h.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second))
				}
			},
			"take over": func(*rapid.T) { h.takeover() },
			"strategy": func(t *rapid.T) {
				one(t).settings.Strategy = rapid.SampledFrom([]policy.Strategy{policy.StrategyEvict, policy.StrategyRelease}).Draw(t, "strategy")
			},
			"mode": func(t *rapid.T) {
				w := one(t)
				w.settings.ReadOnly, w.settings.Paused = rapid.IntRange(0, 5).Draw(t, "read-only") == 0, rapid.IntRange(0, 5).Draw(t, "paused") == 0
			},
			"restart": func(*rapid.T) { h.restart() },
		})
		h.calm()
		for _, w := range h.workloads {
			w.settings.Paused = true
		}
		for range 60 { // what is missing comes; released pods have to wait
			h.tick(3*time.Second, 0)
		}
		for _, w := range h.workloads {
			w.settings.Paused = false
		}
		h.settle(t, "at rest with the exact mix", func() bool { return h.atRest() && h.exactMix() })
		for range 10 {
			h.tick(3*time.Second, 0)
		}
		h.wantsNothing(t)
		h.movesExactlyTheDifference(t)
	})
}

// wantsNothing checks that the plan over a cluster at rest is empty.
func (h *Hub) wantsNothing(t *rapid.T) {
	for _, w := range h.workloads {
		r := plan.Plan(h.observed(w), w.policy, w.settings, h.now)
		if r.State != plan.StateConverged || len(r.Assignments)+len(r.Releases)+len(r.Evictions)+len(r.Waits)+len(r.Pods) > 0 || !r.Recheck.IsZero() || r.Moving > 0 {
			t.Fatalf("%s is at rest, and its plan is %+v", w.name, r)
		}
	}
	if next := h.droughts.Step(h.now); len(next.Create)+len(next.Open)+len(next.Delete) > 0 {
		t.Fatalf("nothing is dry, and the plan for probes is %+v", next)
	}
}

// movesExactlyTheDifference changes all policies of a cluster at rest.
func (h *Hub) movesExactlyTheDifference(t *rapid.T) {
	want := map[*Workload]int{}
	for _, w := range h.workloads {
		before, m, window := w.policy.Mix(), spottest.DrawMix(t), w.policy.Window
		w.policy = spottest.PolicyOf(m.Percent, m.Floor)
		w.policy.Window = window
		want[w] = max(m.Spot(w.replicas), before.Spot(w.replicas)) - min(m.Spot(w.replicas), before.Spot(w.replicas))
	}
	clear(h.moves)
	h.settle(t, "moved", func() bool { return h.atRest() && h.exactMix() })
	for w, n := range want {
		if h.moves[w] != n {
			t.Fatalf("%s: %d moves where the counts differ by %d", w.name, h.moves[w], n)
		}
	}
}
