package nodes

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Census counts the capacity labels that a member's nodes carry, and keeps the steering that follows from them, so that an
// admission only loads it. What was carried once stays known as long as the member is followed: a pool that an autoscaler has
// scaled to zero has no nodes to learn from. It is safe for concurrent use; until [Census.Begin] it steers nothing.
type Census struct {
	current atomic.Pointer[capacity.Steering]

	mu     sync.Mutex
	labels capacity.Labels
	counts []labelCount        // by label
	pools  []capacity.LabelUse // by label: which values nodes can have that do not exist yet; nil: nobody says

	steerBy func() string            // what the member's registration names to steer by; nil: nothing
	changed func(*capacity.Steering) // called for every new steering that differs, with mu held
}

// labelCount counts nodes by one label.
type labelCount struct {
	capacity.LabelUse

	spot, onDemand int
}

// Begin sets what is counted, before the first node comes.
func (c *Census) Begin(labels capacity.Labels, steerBy func() string, changed func(*capacity.Steering)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.labels, c.counts, c.steerBy, c.changed = labels, make([]labelCount, len(labels.NodeLabels)), steerBy, changed
	c.current.Store(labels.Configured())
}

// Steering returns how pods are steered now. It allocates only when that has changed.
func (c *Census) Steering() *capacity.Steering {
	s, steerBy := c.current.Load(), ""
	if c.steerBy != nil {
		steerBy = c.steerBy()
	}
	if s != nil && s.SteerBy == steerBy {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steerLocked(steerBy)
}

// Replace takes in that a node's labels have changed, or that it came (no labels before) or went (none after).
func (c *Census) Replace(before, after map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := false
	for i := range c.counts {
		count, was := &c.counts[i], c.counts[i].LabelUse
		count.add(&c.labels.NodeLabels[i], before, -1)
		count.add(&c.labels.NodeLabels[i], after, 1)
		news = news || count.LabelUse != was
	}
	if news {
		c.steerLocked(c.current.Load().SteerBy)
	}
}

// Expect takes in which values of labels the nodes of the member's NodePools can have, in place of what was expected before.
// Karpenter's label is not carried by that alone: nodes of others may be all there are.
func (c *Census) Expect(values []PoolValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pools := make([]capacity.LabelUse, len(c.counts))
	for _, v := range values {
		at := c.labels.Index(v.Key)
		if at < 0 {
			continue
		}
		l := &c.labels.NodeLabels[at]
		switch l.Of(v.Value) {
		case capacity.Spot:
			pools[at].FurtherSpot = pools[at].FurtherSpot || v.Value != l.Spot[0]
		case capacity.OnDemand:
			pools[at].FurtherOnDemand = pools[at].FurtherOnDemand || v.Value != l.OnDemand[0]
		}
	}
	if !slices.Equal(pools, c.pools) {
		c.pools = pools
		c.steerLocked(c.current.Load().SteerBy)
	}
}

// add counts a node n times.
func (c *labelCount) add(l *capacity.NodeLabel, labels map[string]string, n int) {
	value, has := labels[l.Key]
	capacityType := l.Of(value)
	if _, family := labels[l.Family]; !has && family {
		capacityType = capacity.OnDemand
	}
	switch capacityType {
	case capacity.Spot:
		c.spot += n
		c.FurtherSpot = c.FurtherSpot || value != l.Spot[0]
	case capacity.OnDemand:
		c.onDemand += n
		c.FurtherOnDemand = c.FurtherOnDemand || (has && value != l.OnDemand[0])
	}
	c.Carried = c.Carried || capacityType != capacity.Unknown
	c.SpotNow, c.OnDemandNow = c.spot > 0, c.onDemand > 0
}

// steerLocked makes the steering again. The caller holds mu.
func (c *Census) steerLocked(steerBy string) *capacity.Steering {
	nodes := make([]capacity.LabelUse, len(c.counts))
	for i := range c.counts {
		nodes[i] = c.counts[i].LabelUse
		if c.pools != nil {
			nodes[i].FurtherSpot = nodes[i].FurtherSpot || c.pools[i].FurtherSpot
			nodes[i].FurtherOnDemand = nodes[i].FurtherOnDemand || c.pools[i].FurtherOnDemand
		}
	}
	before, s := c.current.Load(), c.labels.SteeringFor(nodes, steerBy)
	c.current.Store(s)
	if c.changed != nil && (before == nil || before.String() != s.String() || before.SteerBy != steerBy) {
		c.changed(s)
	}
	return s
}
