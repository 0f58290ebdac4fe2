package placing

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// memory is what this process remembers of a FleetPlacement, by member. Nothing of it is needed to go on after a restart.
type memory struct {
	// written is the object as this process wrote it last, until the watch shows it.
	written *v1alpha1.FleetPlacement
	members map[string]*memberMemory
}

type memberMemory struct {
	facts     facts
	lostSight time.Time
	refused   string
	refusedAt time.Time
	dry       dryness
	spot      fleet.History
	leaving   int
	set       policy.FleetSplit
	setAt     time.Time // when set was decided
}

// refusalHolds is how long a member counts as refusing what it refused.
const refusalHolds = 30 * time.Second

// of returns what is remembered. The caller holds mu.
func (c *Controller) of(uid, member string) *memberMemory {
	known := c.memory[uid]
	if known == nil {
		known = &memory{members: map[string]*memberMemory{}}
		c.memory[uid] = known
	}
	m := known.members[member]
	if m == nil {
		m = &memberMemory{}
		known.members[member] = m
	}
	return m
}

// wrote remembers an object as it was written.
func (c *Controller) wrote(p *v1alpha1.FleetPlacement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.memory[string(p.UID)]
	if known == nil {
		known = &memory{members: map[string]*memberMemory{}}
		c.memory[string(p.UID)] = known
	}
	known.written = p.DeepCopy()
}

// newest returns an object as it was written last, where the watch does not show that yet. The caller holds mu.
func (c *Controller) newest(p *v1alpha1.FleetPlacement) *v1alpha1.FleetPlacement {
	known := c.memory[string(p.UID)]
	if known == nil || known.written == nil {
		return p
	}
	if order, err := resourceversion.CompareResourceVersion(known.written.ResourceVersion, p.ResourceVersion); err == nil && order > 0 {
		return known.written
	}
	known.written = nil
	return p
}

// forget drops what is remembered of FleetPlacements that are gone.
func (c *Controller) forget(items []*item) {
	there := map[string]bool{}
	for _, it := range items {
		there[string(it.object.UID)] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range c.memory {
		if !there[uid] {
			delete(c.memory, uid)
		}
	}
}

// look finds out what is known of a FleetPlacement in each member that matters to it: those of its tiers, those for which
// something was decided, and those that run some.
func (c *Controller) look(it *item, members []Member, now time.Time) {
	chosen := map[string]bool{}
	for _, tier := range it.asked.policy.Tiers {
		for _, choice := range tier {
			chosen[choice.Member] = true
		}
	}
	last := map[string]*v1alpha1.MemberStatus{}
	for i := range it.object.Status.Members {
		last[it.object.Status.Members[i].Name] = &it.object.Status.Members[i]
	}
	for i := range members {
		s := &sight{member: &members[i], last: last[members[i].Name]}
		s.set = setOf(s.last)
		if s.member.Reachable {
			s.view, s.known = c.Workloads.FleetView(s.member.Name, it.target.key)
		}
		if !chosen[s.member.Name] && s.set == nil && !s.known {
			continue
		}
		c.mu.Lock()
		c.of(string(it.object.UID), s.member.Name).tell(s, now)
		c.mu.Unlock()
		it.sights = append(it.sights, s)
	}
}

// warm tells whether everything is seen that was seen when the status was written.
func (it *item) warm() bool {
	for _, s := range it.sights {
		if s.set != nil && !s.known && s.last.State != v1alpha1.MemberUnreachable && s.last.State != v1alpha1.MemberLost {
			return false
		}
	}
	return true
}

// tell brings the memory of a member up to date, and says what it knows.
func (m *memberMemory) tell(s *sight, now time.Time) {
	switch {
	case s.known:
		m.lostSight = time.Time{}
	case m.lostSight.IsZero():
		m.lostSight = now
	}
	wasDry := !m.dry.since.IsZero()
	m.dry = m.dry.see(&s.view, s.known, now)
	if s.known {
		m.spot.Ran(now, s.view.Spot.Ready > 0)
		if (!m.dry.since.IsZero() && !wasDry) || s.view.Spot.Leaving > m.leaving {
			m.spot.Lost(now)
		}
		m.leaving = s.view.Spot.Leaving
	}
	if now.Sub(m.refusedAt) > refusalHolds {
		m.refused = ""
	}
	s.facts, s.lostSight, s.refused, s.dry, s.life = m.facts, m.lostSight, m.refused, m.dry, m.spot.Life(now)
}
