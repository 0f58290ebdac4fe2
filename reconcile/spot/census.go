package spot

import (
	"slices"
	"sync"
	"sync/atomic"
)

// census counts the capacity labels that a member's nodes carry, and keeps the steering that follows from them, so that an
// admission only loads it. What was carried once stays known as long as the member is followed: a pool that an autoscaler has
// scaled to zero has no nodes to learn from. It is safe for concurrent use; until [census.begin] it steers nothing.
type census struct {
	current atomic.Pointer[Steering]

	mu     sync.Mutex
	labels CapacityLabels
	counts []labelCount // by label
	pools  []carriage   // by label: which values nodes can have that do not exist yet; nil: nobody says

	steerBy func() string   // what the member's registration names to steer by; nil: nothing
	changed func(*Steering) // told of every new steering that differs, with mu held
}

// labelCount counts nodes by one label.
type labelCount struct {
	carriage

	spot, onDemand int
}

// begin sets what is counted, before the first node comes.
func (c *census) begin(labels CapacityLabels, steerBy func() string, changed func(*Steering)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.labels, c.counts, c.steerBy, c.changed = labels, make([]labelCount, len(labels.labels)), steerBy, changed
	c.current.Store(labels.Configured())
}

// steering returns how pods are steered now. It allocates only when that has changed.
func (c *census) steering() *Steering {
	s, steerBy := c.current.Load(), ""
	if c.steerBy != nil {
		steerBy = c.steerBy()
	}
	if s != nil && s.steerBy == steerBy {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steerLocked(steerBy)
}

// replace takes in that a node's labels have changed, or that it came (no labels before) or went (none after).
func (c *census) replace(before, after map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := false
	for i := range c.counts {
		count, was := &c.counts[i], c.counts[i].carriage
		count.add(&c.labels.labels[i], before, -1)
		count.add(&c.labels.labels[i], after, 1)
		news = news || count.carriage != was
	}
	if news {
		c.steerLocked(c.current.Load().steerBy)
	}
}

// expect takes in which values of labels the nodes of the member's NodePools can have, in place of what was expected before.
// Karpenter's label is not carried by that alone: nodes of others may be all there are.
func (c *census) expect(values []poolValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pools := make([]carriage, len(c.counts))
	for _, v := range values {
		at := c.labels.index(v.key)
		if at < 0 {
			continue
		}
		l := &c.labels.labels[at]
		switch l.of(v.value) {
		case Spot:
			pools[at].furtherSpot = pools[at].furtherSpot || v.value != l.Spot[0]
		case OnDemand:
			pools[at].furtherOnDemand = pools[at].furtherOnDemand || v.value != l.OnDemand[0]
		}
	}
	if !slices.Equal(pools, c.pools) {
		c.pools = pools
		c.steerLocked(c.current.Load().steerBy)
	}
}

// add counts a node n times.
func (c *labelCount) add(l *NodeLabel, labels map[string]string, n int) {
	value, has := labels[l.Key]
	capacity := l.of(value)
	if _, family := labels[l.Family]; !has && family {
		capacity = OnDemand
	}
	switch capacity {
	case Spot:
		c.spot += n
		c.furtherSpot = c.furtherSpot || value != l.Spot[0]
	case OnDemand:
		c.onDemand += n
		c.furtherOnDemand = c.furtherOnDemand || (has && value != l.OnDemand[0])
	}
	c.carried = c.carried || capacity != Unknown
	c.spotNow, c.onDemandNow = c.spot > 0, c.onDemand > 0
}

// steerLocked makes the steering anew. The caller holds mu.
func (c *census) steerLocked(steerBy string) *Steering {
	nodes := make([]carriage, len(c.counts))
	for i := range c.counts {
		nodes[i] = c.counts[i].carriage
		if c.pools != nil {
			nodes[i].furtherSpot = nodes[i].furtherSpot || c.pools[i].furtherSpot
			nodes[i].furtherOnDemand = nodes[i].furtherOnDemand || c.pools[i].furtherOnDemand
		}
	}
	before, s := c.current.Load(), c.labels.steering(nodes, steerBy)
	c.current.Store(s)
	if c.changed != nil && (before == nil || before.String() != s.String() || before.steerBy != steerBy) {
		c.changed(s)
	}
	return s
}
