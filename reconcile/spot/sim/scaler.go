package sim

import (
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Scaler is the autoscaler of a cluster: it brings nodes for what waits for one, a while after that began, and takes nodes of
// its own away that are empty.
type Scaler struct {
	takes   time.Duration
	signs   float64       // chance that it can be seen that a node comes
	idle    time.Duration // how long a node may be empty; 0: forever
	room    map[capacity.Type]int
	most    map[capacity.Type]int // nodes of its own; 0: there is no such capacity
	ordered map[capacity.Type]Order
}

func newScaler(takes, idle time.Duration) Scaler {
	return Scaler{takes: takes, idle: idle, signs: 1, room: map[capacity.Type]int{}, most: map[capacity.Type]int{}, ordered: map[capacity.Type]Order{}}
}

// makes sets how many nodes of a type the autoscaler may have at a time, and the room of each.
func (s *Scaler) makes(capacityType capacity.Type, nodes, room int) {
	s.most[capacityType], s.room[capacityType] = nodes, room
}

// Order is a node that is on its way.
type Order struct {
	at      time.Time
	visible bool // it can be seen that it comes
}

// scale lets the autoscaler do its work once. It returns the nodes that have joined.
func (c *Cluster) scale() []*Node {
	var joined []*Node
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		order, ordered := c.scaler.ordered[capacityType]
		switch {
		case ordered && c.now.Sub(order.at) >= c.scaler.takes:
			delete(c.scaler.ordered, capacityType)
			if !c.strict && c.rand.IntN(6) == 0 {
				continue // it never came
			}
			n := c.addNode(capacityType, c.scaler.room[capacityType])
			n.scaled = true
			joined = append(joined, n)
		case !ordered && c.waits(capacityType) && c.made(capacityType) < c.scaler.most[capacityType]:
			c.scaler.ordered[capacityType] = Order{at: c.now, visible: c.rand.Float64() < c.scaler.signs}
		}
	}
	c.scaleDown()
	return joined
}

// waits reports whether something waits for a node of a type.
func (c *Cluster) waits(capacityType capacity.Type) bool {
	for _, p := range c.pods {
		if p.node == nil && p.Capacity == capacityType && p.GoneBy.IsZero() && !p.UnschedulableSince.IsZero() {
			return true
		}
	}
	for _, p := range c.probes {
		if !p.Gated && p.BoundAt.IsZero() && p.Capacity == capacityType {
			return true
		}
	}
	return false
}

func (c *Cluster) made(capacityType capacity.Type) (n int) {
	for _, node := range c.nodes {
		if node.scaled && node.capacity == capacityType && node.goneAt.IsZero() {
			n++
		}
	}
	return n
}

func (c *Cluster) scaleDown() {
	used := map[*Node]bool{}
	for _, p := range c.pods {
		used[p.node] = true
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(n *Node) bool {
		if !n.scaled || used[n] || n.idle.IsZero() {
			n.idle = c.now
			return false
		}
		return c.scaler.idle > 0 && c.now.Sub(n.idle) > c.scaler.idle
	})
}

// coming reports whether it can be seen that a node is on its way for pods of a type.
func (c *Cluster) coming(capacityType capacity.Type) bool {
	return c.scaler.ordered[capacityType].visible
}
