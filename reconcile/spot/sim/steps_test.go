package sim

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// steps is a member with one workload whose controller, nodes and hub do something only when a test says so. There is room for
// every pod, and what is deleted is gone at once.
type steps struct{ *single }

func newSteps(t tb, ordinals bool, seed uint64, replicas int, pol policy.Policy) *steps {
	t.Helper()
	c := newCluster(seed)
	c.loses, c.rejects, c.grace = 0, 0, 0
	w := &steps{singleIn(t, c, ordinals, replicas, pol)}
	w.sizes = map[*Set]int{w.sets[0]: replicas}
	for _, capacityType := range capacity.Types {
		if capacityType != capacity.Unknown {
			w.addNode(capacityType, 1<<30)
		}
	}
	return w
}

// scale changes the replicas that the workload wants; the hub sees it later.
func (w *steps) scale(n int) {
	w.replicas = n
	w.resize(w.sets[0], n)
}

// control lets the workload's controller do its work.
func (w *steps) control() { w.Hub.control(w.Workload) }

// start makes up to n pods ready, in random order.
func (w *steps) start(n int) {
	pods := w.sorted(func(p *Pod) bool { return p.Alive() && !p.Ready })
	for _, at := range w.rand.Perm(len(pods))[:min(n, len(pods))] {
		p := pods[at]
		if p.Capacity == capacity.Unknown { // wherever there is room
			p.Capacity = []capacity.Type{capacity.Spot, capacity.OnDemand}[w.rand.IntN(2)]
		}
		p.Ready, p.boundAt = true, w.now
		w.bind(p)
	}
}

// bind gives a pod a node of its type.
func (w *steps) bind(p *Pod) {
	for _, n := range w.nodes {
		if n.capacity == p.Capacity {
			p.node, p.Bound = n, true
		}
	}
	w.write(p)
}

// show shows the hub up to n more events.
func (w *steps) show(n int) {
	for range min(n, len(w.events)) {
		w.deliverNext()
	}
}

// kill evicts a random pod behind our back.
func (w *steps) kill() {
	if pods := w.active(w.sets[0]); len(pods) > 0 {
		p := pods[w.rand.IntN(len(pods))]
		w.killed[p.UID] = true
		w.remove(p)
	}
}

// act plans and does what the plan says. denies is the chance that a disruption budget refuses an eviction.
func (w *steps) act(denies float64) plan.Result {
	w.t.Helper()
	w.denies = denies
	r := w.reconcile(w.Workload)
	if len(w.asserted) > 0 {
		w.t.Fatal(w.asserted[0])
	}
	return r
}

// search lets pods without a slot be found, as they are once the sign of them has stood for a moment.
func (w *steps) search() {
	w.observed(w.Workload)
	w.wait(plan.SearchPatience, 0)
}

func (w *steps) count() capacity.Tally {
	have, _ := w.supply(w.Workload)
	return have
}

func (w *steps) mix() policy.Mix { return w.policy.Mix() }

// converge lets everything settle and acts until nothing is left to do; it returns how long that took.
func (w *steps) converge() (time.Duration, error) {
	start := w.now
	w.rejects = 0
	var r plan.Result
	for range 2000 {
		w.control()
		w.start(len(w.pods))
		w.deliver(0)
		r = w.act(0)
		if r.State == plan.StateConverged && len(w.events) == 0 && len(w.inFlight) == 0 {
			return w.now.Sub(start), nil
		}
		w.wait(time.Second, 0)
	}
	return 0, fmt.Errorf("not converged: %s: %s", r.State, r.Reason)
}

// exact reports what differs from the formula: counts, slots and their types.
func (w *steps) exact() error {
	have, m := w.count(), w.mix()
	if have.Spot != m.Spot(w.replicas) || have.OnDemand != m.OnDemand(w.replicas) {
		return fmt.Errorf("%d spot and %d on-demand of %d, want %d and %d", have.Spot, have.OnDemand, w.replicas, m.Spot(w.replicas), m.OnDemand(w.replicas))
	}
	if w.ordinals {
		return nil
	}
	seen := map[int]bool{}
	for _, p := range w.active(w.sets[0]) {
		if p.Slot < 0 || p.Slot >= w.replicas || seen[p.Slot] || m.Of(p.Slot) != p.Capacity || p.DeletionCost != policy.ParseCost(m.Cost(p.Slot)) {
			return fmt.Errorf("pod %s of %s has slot %d (a %s slot), cost %d", p.Name, p.Capacity, p.Slot, m.Of(p.Slot), p.DeletionCost.Number())
		}
		seen[p.Slot] = true
	}
	return nil
}

// floorStands is the invariant: an owner that has all its replicas has its floor, if it ever had it.
func (w *steps) floorStands() error {
	have := w.count()
	if have.All == w.replicas && have.OnDemand < min(w.mix().Floor, w.replicas) {
		return fmt.Errorf("complete with %d on-demand replicas, the floor is %d", have.OnDemand, w.mix().Floor)
	}
	return nil
}

// replaceOne makes one pod that is missing, if there is one.
func (w *steps) replaceOne() {
	s := w.sets[0]
	have := map[string]bool{}
	for _, p := range append(w.active(s), w.inFlight...) {
		have[p.Name] = true
	}
	if len(have) >= w.replicas {
		return
	}
	name := ""
	for n := 0; w.ordinals; n++ {
		if name = fmt.Sprintf("%s-%d", w.name, n); !have[name] {
			break
		}
	}
	w.create(s, name)
}
