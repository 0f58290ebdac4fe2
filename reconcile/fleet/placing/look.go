package placing

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// memory is what this process remembers of a FleetPlacement, by member. Nothing of it is needed to continue after a restart.
type memory struct {
	// begun is when this replica, as the one that acts, saw it first; zero: it has not.
	begun time.Time
	// written is the object as this process wrote it last, until the watch shows it.
	written *v1alpha1.FleetPlacement
	members map[string]*memberMemory
}

type memberMemory struct {
	facts     facts
	known     bool // something was said of the member before
	seen      bool // its workload was seen before
	lostSight time.Time
	refusal   refusal
	dry       dryness
	spot      fleet.History
	losing    int       // replicas whose nodes go, when it was seen last
	ready     int       // on spot, when it was seen last
	replicas  int       // of its spec, when it was seen last
	lost      time.Time // when fewer were ready on spot than before
	set       policy.FleetSplit
	setAt     time.Time // when set was decided
	orders    orders
	order     *policy.FleetSplit // what is to be written there now; nil: nothing
}

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

// look finds out what is known about a FleetPlacement in each member that matters to it: those of its tiers, those for which
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
	grace := cmp.Or(it.asked.policy.Grace, fleet.DefaultGrace)
	for i := range members {
		s := &sight{member: &members[i], last: last[members[i].Name], acts: c.options.Acts(members[i].Name)}
		s.set = setOf(s.last)
		if s.member.Reachable {
			s.view, s.known = c.options.Workloads.FleetView(s.member.Name, it.target.key)
		}
		if s.known && s.view.At.Before(c.reach[s.member.Name]) { // seen before the member was out of reach, or somebody else's
			c.options.Workloads.Revisit(s.member.Name, it.target.key)
			s.view, s.known = spot.FleetView{}, false
		}
		if !chosen[s.member.Name] && s.set == nil && !s.known {
			continue
		}
		c.mu.Lock()
		c.of(string(it.object.UID), s.member.Name).update(s, grace, now)
		c.mu.Unlock()
		it.sights = append(it.sights, s)
	}
}

// warm reports whether everything is seen that was seen when the status was written, and all members were asked: which of them
// another autoscaler scales is in no cache.
func (it *item) warm() bool {
	for _, s := range it.sights {
		if s.set != nil && !s.known && s.last.State != v1alpha1.MemberUnreachable && s.last.State != v1alpha1.MemberLost {
			return false
		}
		if s.member.Reachable && s.acts && s.facts.asked.IsZero() {
			return false
		}
	}
	return true
}

// waits reports whether nothing is to be decided for a FleetPlacement yet, since so little is known of its members. After some
// time it is decided anyway: one member that does not answer must not hold it up.
func (c *Controller) waits(it *item, now time.Time) bool {
	c.mu.Lock()
	known := c.memory[string(it.object.UID)]
	if known == nil {
		known = &memory{members: map[string]*memberMemory{}}
		c.memory[string(it.object.UID)] = known
	}
	if known.begun.IsZero() {
		known.begun = now
	}
	begun := known.begun
	c.mu.Unlock()
	if it.deleting() && it.object.Spec.OnDelete != v1alpha1.Gather {
		return false // nothing is decided for it any more
	}
	return now.Sub(begun) < warmTime && !it.warm()
}

// update brings the memory of a member up to date, and says what it knows.
func (m *memberMemory) update(s *sight, grace time.Duration, now time.Time) {
	if !m.known && s.set != nil && s.last.State == v1alpha1.MemberOut { // another process knew why: it is asked before it counts again
		m.refusal = refusal{why: s.last.Reason, since: now, times: 1, forbidden: true}
	}
	if !m.known && s.last != nil {
		m.spot = historyOf(s.last.SpotHeld)
	}
	switch {
	case s.set == nil || m.orders.kept != nil:
	case m.known: // it has just been adopted, with what it ran
		m.orders.most(int(s.last.Spot.Running)+int(s.last.OnDemand.Running), s.known, now)
	default: // what another process has set may be anything
		m.orders.most(fleet.Unbounded, s.known, now)
	}
	m.known = true
	switch {
	case s.known:
		m.lostSight = time.Time{}
	case m.lostSight.IsZero():
		m.lostSight = now
	}
	wasDry := !m.dry.since.IsZero()
	if s.known && m.seen && s.view.Spot.Ready < m.ready && s.view.Replicas >= m.replicas { // not because it has shrunk
		m.lost = now
	}
	m.dry = m.dry.see(&s.view, s.known, m.lost, now)
	if s.known {
		m.spot.Ran(now, s.view.Spot.Ready > 0)
		// What a process sees first may be old.
		if m.seen && ((!m.dry.since.IsZero() && !wasDry) || s.view.Spot.Lost > m.losing) {
			m.spot.Lost(now)
		}
		m.losing, m.ready, m.replicas, m.seen = s.view.Spot.Lost, s.view.Spot.Ready, s.view.Replicas, true
	}
	s.facts, s.lostSight, s.dry, s.life = m.facts, m.lostSight, m.dry, m.spot.Life(now)
	s.held = heldOf(&m.spot)
	if s.last != nil {
		s.held = steady(s.last.SpotHeld, s.held)
	}
	if s.set != nil {
		s.ordered = m.orders.most(s.set.Replicas, s.known, now)
	}
	s.failed, s.refused = m.refusal.why, m.refusal.out(grace, now)
}

// historyOf is what the status remembers of spot in a member, and heldOf what it is to remember.
func historyOf(h v1alpha1.Held) fleet.History {
	since := time.Time{}
	if h.Since != nil {
		since = h.Since.Time
	}
	return fleet.Resume(since, time.Duration(h.Seconds)*time.Second)
}

// steady is what was said before, if what is to be said is the same but for how exact clocks are: a status that is read
// again has whole seconds, and the least drift would have it written again.
func steady(before, now v1alpha1.Held) v1alpha1.Held {
	if before.Since != nil && now.Since != nil && before.Since.Sub(now.Since.Time).Abs() <= 2*time.Second {
		return before
	}
	return now
}

func heldOf(history *fleet.History) v1alpha1.Held {
	since, held := history.Held()
	if since.IsZero() {
		return v1alpha1.Held{Seconds: int64(held.Seconds())}
	}
	return v1alpha1.Held{Since: &metav1.Time{Time: since.Truncate(time.Second)}}
}
