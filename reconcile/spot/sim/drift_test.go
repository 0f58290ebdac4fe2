package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// sight is how late a hub may see what others do; see sightDelay of test/fleet.
const sight = 2 * time.Second

// drift replaces the nodes of a cluster as Karpenter does when all of them have drifted: it taints one node after the other,
// waits until the replacement of each has started, deletes the node and evicts its pods.
type drift struct {
	*Hub
	old     []*Node
	tainted map[*Node]time.Time // when the replacement of a tainted node has started
	round   time.Duration       // how often it begins to replace a node
	begun   time.Time           // when the last node was tainted
	drained []time.Time         // when the drain took a ready on-demand replica
	breaks  []string
}

// driftOf is one workload of 20 replicas at 100 % with a floor of 3, on nodes with room for one to three, all of which drift.
func driftOf(t *testing.T, seed uint64, strategy policy.Strategy) *drift {
	t.Helper()
	c := newCluster(seed)
	c.strict = true
	c.scaler = newScaler(18*time.Second, time.Hour)
	c.scaler.signs = 0.75
	c.scaler.makes(capacity.Spot, 30, 3)
	c.scaler.makes(capacity.OnDemand, 30, 3)
	w := &Workload{name: "web", replicas: 20, size: 1, probed: 1, policy: spottest.PolicyOf(100, 3),
		settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 2 * time.Second, Strategy: strategy}}
	c.workloads = []*Workload{w}
	c.newSet(w, w.replicas)
	d := &drift{Hub: newHub(c), tainted: map[*Node]time.Time{}}
	for range 6 + c.rand.IntN(5) { // with room for more than the replicas, or not
		c.addNode(capacity.Spot, 3).scaled = true
	}
	room := []int{3, 2, 1}[seed%3]
	for range (2 + room) / room {
		c.addNode(capacity.OnDemand, room).scaled = true
	}
	d.round = time.Duration(1+c.rand.IntN(10)) * time.Second
	d.until(t, "at rest", 5*time.Minute, func() bool { return d.atRest() && d.exactMix() })
	d.old = append(d.old, d.nodes...)
	d.rand.Shuffle(len(d.old), func(i, j int) { d.old[i], d.old[j] = d.old[j], d.old[i] })
	d.evicted = d.judge
	return d
}

// judge notes when an eviction by the hub leaves fewer ready on-demand replicas than the floor, those apart that the drain took
// so lately that the hub could not see it.
func (d *drift) judge(w *Workload, p *Pod, e plan.Eviction, wasReady bool) {
	if p.Capacity != capacity.OnDemand || !wasReady {
		return
	}
	ready := 0
	for _, other := range d.of(w) {
		if other.Capacity == capacity.OnDemand && other.Ready && other.GoneBy.IsZero() {
			ready++
		}
	}
	for _, at := range d.drained {
		if d.now.Sub(at) <= sight {
			ready++
		}
	}
	if floor := w.policy.Mix().Floor; ready < floor {
		d.breaks = append(d.breaks, fmt.Sprintf("at %s: after %s was evicted (%s: %s), %d on-demand replicas were ready of a floor of %d", d.now.Sub(spottest.Epoch), p.Name, e.For, e.Why, ready, floor))
	}
}

// step lets Karpenter do its work once.
func (d *drift) step() {
	if len(d.old) > 0 && d.now.Sub(d.begun) >= d.round {
		n := d.old[0]
		d.old, d.begun = d.old[1:], d.now
		n.interruption = &plan.Interruption{Node: n.name, Notice: "taint karpenter.sh/disrupted", Since: d.now, Weight: plan.WeightAdvisory}
		d.tainted[n] = d.now.Add(d.scaler.takes + time.Duration(d.rand.IntN(20))*time.Second)
		d.interrupted()
	}
	for _, n := range slices.Clone(d.nodes) {
		ready, tainted := d.tainted[n]
		switch {
		case !tainted, d.now.Before(ready):
		case n.interruption.Weight == plan.WeightAdvisory:
			d.joined([]*Node{d.addNode(n.capacity, n.room)})
			n.interruption = &plan.Interruption{Node: n.name, Notice: "the node is being deleted", Since: d.now}
			d.interrupted()
		default:
			d.drain(n)
		}
	}
}

// drain evicts the pods of a node that is being deleted; when it has none, it goes.
func (d *drift) drain(n *Node) {
	pods := d.sorted(func(p *Pod) bool { return p.node == n })
	for _, p := range pods {
		if p.GoneBy.IsZero() && p.Ready && p.Capacity == capacity.OnDemand {
			d.drained = append(d.drained, d.now)
		}
		d.end(p)
	}
	if len(pods) == 0 {
		n.goneAt = d.now
		delete(d.tainted, n)
	}
}

func TestTheHubTakesNoReplicaOfTheFloorWhileAllNodesDrift(t *testing.T) {
	strategies := []policy.Strategy{policy.StrategyEvict, policy.StrategyRelease}
	for seed := range uint64(60) {
		for _, lag := range []time.Duration{0, 500 * time.Millisecond} {
			d := driftOf(t, seed, strategies[seed%2])
			if problem := d.run(lag); problem != "" {
				t.Errorf("lag %s, seed %d: %s", lag, seed, problem)
			}
		}
	}
}

// run lets all nodes drift, and says what was wrong with it; empty: nothing.
func (d *drift) run(lag time.Duration) string {
	limit := d.now.Add(20 * time.Minute)
	for len(d.old)+len(d.tainted) > 0 || !d.atRest() || !d.exactMix() {
		d.tick(250*time.Millisecond, lag)
		d.step()
		switch {
		case d.now.After(limit):
			return "the drift does not end"
		case len(d.asserted) > 0:
			return d.asserted[0]
		case len(d.breaks) > 0:
			return d.breaks[0]
		}
	}
	return ""
}
