package sim

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// schedule binds pods to nodes with room for them, in random order, and says of the others that there is none.
func (c *Cluster) schedule() {
	used := map[*Node]int{}
	for _, p := range c.pods {
		if p.node != nil && !p.Finished {
			used[p.node] += p.set.size
		}
	}
	place := func(capacityType capacity.Type, size int, p *Pod) *Node {
		for _, at := range c.perm(len(c.nodes)) {
			n := c.nodes[at]
			if n.goneAt.IsZero() && n.interruption == nil && n.room-used[n] >= size && (capacityType == capacity.Unknown || capacityType == n.capacity) &&
				(p == nil || c.refuses == nil || !c.refuses(p, n)) {
				return n
			}
		}
		return nil
	}
	waiting := c.sorted(func(p *Pod) bool { return p.node == nil && p.GoneBy.IsZero() && !p.Finished })
	for _, at := range c.perm(len(waiting)) {
		p := waiting[at]
		if n := place(p.Capacity, p.set.size, p); n != nil {
			p.node, p.Bound, p.Capacity, p.UnschedulableSince = n, true, n.capacity, time.Time{}
			p.boundAt = c.now.Truncate(time.Second)
			p.readyAt = c.now.Add(3 * time.Second)
			if !c.orderly {
				p.readyAt = c.now.Add(time.Duration(c.rand.IntN(4000)) * time.Millisecond)
			}
			used[n] += p.set.size
			c.write(p)
		} else if p.UnschedulableSince.IsZero() {
			p.UnschedulableSince = c.now.Truncate(time.Second)
			c.write(p)
		}
	}
	for _, probe := range inOrder(c.probes) {
		if probe.Gated || !probe.BoundAt.IsZero() {
			continue
		}
		if n := place(probe.Capacity, int(probe.Requirements.CPU), nil); n != nil {
			probe.BoundAt, probe.NodeJoined = c.now, n.joined
		}
	}
}

// run lets kubelets, the node controllers and the budgets' controller do their work.
func (c *Cluster) run() {
	for _, n := range c.nodes {
		if n.interruption != nil && !n.interruption.By.IsZero() && n.goneAt.IsZero() && !c.now.Before(n.interruption.By) {
			c.lose(n)
		}
	}
	for _, p := range c.sorted(func(p *Pod) bool { return p.node != nil }) {
		lost := !p.node.goneAt.IsZero()
		switch {
		case lost && c.now.Sub(p.node.goneAt) >= 40*time.Second:
			c.remove(p) // the garbage collector
		case lost:
		case !p.GoneBy.IsZero() && !c.now.Before(p.GoneBy):
			c.remove(p)
		case p.Finished:
			if p.controller != "" && (c.strict || p.set.ordinals) {
				c.remove(p) // the garbage collector, or the StatefulSet's controller
			}
		case p.Released != nil && !p.Released.Until.IsZero() && !c.now.Before(p.Released.Until):
			c.fail(p) // activeDeadlineSeconds
		case p.GoneBy.IsZero() && !p.Ready && !c.now.Before(p.readyAt):
			p.Ready = true
			c.write(p)
		}
	}
	for _, w := range c.workloads {
		for _, b := range w.budgets {
			b.count(w.replicas, c.of(w))
		}
	}
}

// fail ends a pod without anybody's asking.
func (c *Cluster) fail(p *Pod) {
	if p.GoneBy.IsZero() && !p.Finished {
		p.Finished, p.Ready = true, false
		c.write(p)
	}
}

// lose takes a node away without a word: nobody changes its pods before the garbage collector does.
func (c *Cluster) lose(n *Node) {
	n.goneAt = c.now
	n.interruption = &plan.Interruption{Node: n.name, Notice: "the node was deleted", Since: c.now, Gone: true}
}
