package sim

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// single is a member with one workload, in which nothing is lost or late and everybody does its work in every step.
type single struct {
	*Hub
	*Workload
	t    tb
	step time.Duration
	gone []evicted
}

// tb is what rapid's T and testing's have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// evicted is a pod that the hub has evicted.
type evicted struct {
	at    time.Time
	name  string
	ready bool
}

func newSingle(t tb, ordinals bool, replicas int, pol policy.Policy) *single {
	t.Helper()
	c := newCluster(1)
	c.strict, c.orderly, c.scaler = true, true, newScaler(0, 0)
	return singleIn(t, c, ordinals, replicas, pol)
}

// singleIn is a cluster with one workload.
func singleIn(t tb, c *Cluster, ordinals bool, replicas int, pol policy.Policy) *single {
	w := &single{t: t, step: time.Second, Workload: &Workload{name: "w", ordinals: ordinals, replicas: replicas, size: 1, probed: 1, policy: pol, settings: plantest.DefaultSettings}}
	c.workloads = []*Workload{w.Workload}
	c.newSet(w.Workload, replicas)
	w.Hub = newHub(c)
	w.evicted = func(_ *Workload, p *Pod, _ plan.Eviction, ready bool) {
		w.gone = append(w.gone, evicted{at: w.now, name: p.Name, ready: ready})
	}
	return w
}

// loseNodes takes all nodes of a type away, with their pods.
func (w *single) loseNodes(capacityType capacity.Type) {
	for _, n := range w.nodes {
		if n.capacity == capacityType {
			n.goneAt = w.now
			for _, p := range w.sorted(func(p *Pod) bool { return p.node == n }) {
				w.remove(p)
			}
		}
	}
	w.deliver(0)
}

// on counts the pods of a type that serve, and all that are bound to it or wait for it.
func (w *single) on(capacityType capacity.Type) (ready, all int) {
	for _, p := range w.active(w.sets[0]) {
		if p.Capacity == capacityType {
			all++
			if p.Ready {
				ready++
			}
		}
	}
	return ready, all
}

func (w *single) ready() int {
	spot, _ := w.on(capacity.Spot)
	onDemand, _ := w.on(capacity.OnDemand)
	return spot + onDemand
}

// readyEvictions counts the replicas that served when they were evicted, since a time.
func (w *single) readyEvictions(since time.Time) int {
	n := 0
	for _, e := range w.gone {
		if e.ready && !e.at.Before(since) {
			n++
		}
	}
	return n
}

// pass lets time pass, step by step; each is notified of every moment and may be nil.
func (w *single) pass(d time.Duration, each func()) {
	w.t.Helper()
	for until := w.now.Add(d); w.now.Before(until); {
		w.tick(w.step, 0)
		w.deliver(0)
		if len(w.asserted) > 0 {
			w.t.Fatal(w.asserted[0])
		}
		if each != nil {
			each()
		}
	}
}

// until lets time pass until a condition holds.
func (w *single) until(what string, limit time.Duration, done func() bool) {
	w.t.Helper()
	for start := w.now; !done(); w.pass(w.step, nil) {
		if w.now.Sub(start) > limit {
			w.t.Fatalf("not %s within %s: %s", what, limit, w.describe())
		}
	}
}

func (w *single) plan() plan.Result {
	return plan.Plan(w.observed(w.Workload), w.policy, w.settings, w.now)
}

func (w *single) describe() string {
	r := w.plan()
	return fmt.Sprintf("%d spot and %d on-demand pods, %d ready; %s: %s; %v; decisions %+v", r.SpotActual, r.OnDemandActual, w.ready(),
		r.State, r.Reason, r.Notes, w.droughts.All())
}

// settled reports whether every replica is where the policy wants it.
func (w *single) settled() bool { return w.exactMix() }
