package placing

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// jointHub is one placement over the members of the model, as the controller keeps it: what it sees, counts, decides and writes down is
// the real code, without the API servers in between. The status outlives it, and its memory does not.
type jointHub struct {
	now        time.Time
	members    []*jointMember
	policy     fleet.Policy
	lag        time.Duration // how old what it sees of members may be
	object     *v1alpha1.FleetPlacement
	controller *Controller
	seen       map[string][]spot.FleetView
	last       map[string]spot.FleetView
	result     fleet.Result
	writes     int
	broken     []string // what did not hold
	grant      grant
	looked     time.Time // when it made its last round
}

// plenty is more than is ever asked for.
const plenty = 100

func newJointHub(members int, ordinals bool) *jointHub {
	h := &jointHub{now: epoch, object: placementOf(v1alpha1.FleetPlacementSpec{})}
	h.restart()
	for i := range members {
		m := &jointMember{
			name: fmt.Sprintf("m%d", i), domain: fmt.Sprintf("d%d", i%2), ordinals: ordinals, now: &h.now, start: time.Minute, taken: h.taken,
			room: map[capacity.Type]int{capacity.Spot: 6, capacity.OnDemand: plenty}, pods: map[types.UID]*jointPod{}, probes: map[string]*shortage.Probe{},
		}
		m.restart()
		h.members = append(h.members, m)
	}
	return h
}

// view is what a member shows now.
func (m *jointMember) view() spot.FleetView {
	observed := m.observed()
	v := spot.ViewOf(&observed)
	v.At, v.Split, v.Settled = *m.now, m.planned, m.settled()
	return v
}

// look takes in what members show, as long ago as the lag, and keeps what the controller remembers of it.
func (h *jointHub) look() *item {
	it := &item{object: h.object, asked: asked{policy: h.policy, domains: map[string]string{}, prices: map[string][2]float64{}}}
	last := map[string]*v1alpha1.MemberStatus{}
	for i := range h.object.Status.Members {
		last[h.object.Status.Members[i].Name] = &h.object.Status.Members[i]
	}
	for _, m := range h.members {
		it.asked.domains[m.name], it.asked.prices[m.name] = m.domain, [2]float64{fleet.Spot: 1, fleet.OnDemand: 3}
		s := &sight{member: &Member{Name: m.name, Reachable: m.away.IsZero(), Since: m.away}, last: last[m.name], acts: true}
		s.set = setOf(s.last)
		if m.away.IsZero() {
			h.seen[m.name] = append(h.seen[m.name], m.view())
			for len(h.seen[m.name]) > 0 && h.now.Sub(h.seen[m.name][0].At) >= h.lag {
				h.last[m.name], h.seen[m.name] = h.seen[m.name][0], h.seen[m.name][1:]
			}
			s.view, s.known = h.last[m.name]
		} else {
			h.unseen(m.name) // it is looked at again before it counts as seen
		}
		known := h.controller.of(string(h.object.UID), m.name)
		known.facts = facts{asked: h.now, exists: true}
		known.update(s, fleet.DefaultGrace, h.now)
		it.sights = append(it.sights, s)
	}
	return it
}

func (h *jointHub) unseen(member string) {
	delete(h.seen, member)
	delete(h.last, member)
}

// round is one of the controller.
func (h *jointHub) round() {
	it := h.look()
	members := make([]Member, len(it.sights))
	for i, s := range it.sights {
		members[i] = *s.member
	}
	decide([]*item{it}, members, h.now)
	h.object.Status = it.status(h.now)
	h.result = it.result
	for _, s := range it.sights {
		h.act(it, s)
	}
	h.grant, h.looked = h.granted(), h.now
}

// act gives a member its split, and then its number of replicas, when the pods have their slots for it.
func (h *jointHub) act(it *item, s *sight) {
	m := h.memberOf(s.member.Name)
	set, ours := it.sets[m.name]
	if !ours {
		return
	}
	if m.split == nil || *m.split != set {
		m.split = &set
		h.writes++
	}
	if s.workable() && it.since[m.name].IsZero() && s.out() == "" && s.view.Replicas != set.Replicas && h.controller.slotted(it, s, set, h.now) && m.replicas != set.Replicas {
		m.replicas = set.Replicas
		h.writes++
		m.control()
	}
}

func (h *jointHub) memberOf(name string) *jointMember {
	for _, m := range h.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// tick lets some time pass, in which everybody does its work.
func (h *jointHub) tick(d time.Duration) {
	h.now = h.now.Add(d)
	for _, m := range h.members {
		m.control()
		m.live()
		if m.away.IsZero() {
			m.probe()
			m.place()
		}
	}
	h.round()
}

// counted is how many ready replicas the hub may count on: those of members in reach, and those it saw last in members that may be
// back soon.
func (h *jointHub) counted() (all, onDemand int) {
	status := map[string]*v1alpha1.MemberStatus{}
	for i := range h.object.Status.Members {
		status[h.object.Status.Members[i].Name] = &h.object.Status.Members[i]
	}
	for _, m := range h.members {
		s := status[m.name]
		switch {
		case m.away.IsZero():
			for _, p := range m.pods {
				if p.serves() {
					all++
					onDemand += truth(p.Capacity == capacity.OnDemand)
				}
			}
		case s != nil && h.now.Sub(m.away) < fleet.DefaultGrace:
			all += int(s.Spot.Ready + s.OnDemand.Ready)
			onDemand += int(s.OnDemand.Ready)
		}
	}
	return all, onDemand
}

// grant is what serves beyond what must, as the hub saw it in its last round: so many ordinals may move to the other capacity type.
type grant struct{ all, onDemand int }

func (h *jointHub) granted() grant {
	all, onDemand := h.counted()
	return grant{all - h.policy.Replicas, onDemand - min(h.policy.MinOnDemand, h.policy.Replicas)}
}

// taken checks what must hold when the hub takes a ready pod away. An ordinal is moved some time after the round that allowed it.
func (h *jointHub) taken(m *jointMember, p *jointPod, why string) {
	if h.lag > 0 || !m.away.IsZero() {
		return // what it did not know it could not keep; and what members do alone is not the hub's work
	}
	left := h.granted()
	if m.ordinals && why == evictedFor+string(plan.PurposeMove) {
		left = h.grant
		for _, other := range m.pods { // those that came since then are as good
			if other.serves() && other.UnreadySince.After(h.looked) {
				left.all++
				left.onDemand += truth(other.Capacity == capacity.OnDemand)
			}
		}
		h.grant.all--
		h.grant.onDemand -= truth(p.Capacity == capacity.OnDemand)
	}
	if left.all < 1 || (p.Capacity == capacity.OnDemand && left.onDemand < 1) {
		h.broken = append(h.broken, fmt.Sprintf("at %s: %s of %s on %s goes because %s, with %+v to spare of %d and %d", h.now.Sub(epoch), p.Name, m.name, p.Capacity, why, left, h.policy.Replicas, h.policy.MinOnDemand))
	}
}

// atRest reports whether everything is as the plan has it and serves, and no drought is left of which the end would be news.
func (h *jointHub) atRest() bool {
	if len(h.result.Moves)+len(h.result.Later) > 0 || h.result.Unplaced > 0 {
		return false
	}
	for _, w := range h.result.Members {
		m := h.memberOf(w.Member)
		if len(m.droughts.All()) > 0 {
			return false
		}
		spots, onDemand := 0, 0
		for _, p := range m.pods {
			if !p.serves() {
				return false
			}
			if p.Capacity == capacity.Spot {
				spots++
			} else {
				onDemand++
			}
		}
		if spots != w.Spot || onDemand != w.OnDemand {
			return false
		}
	}
	return true
}
