package fleet_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// jointHub is the shell around [fleet.Plan] for one placement over the members of the model. What it decided and what it saw last
// are in a status that outlives it; nothing else does.
type jointHub struct {
	now     time.Time
	members []*jointMember
	policy  fleet.Policy
	lag     time.Duration // how old what it sees of members may be
	status  map[string]*jointStatus
	seen    map[string][]jointView
	moved   time.Time
	result  fleet.Result
	writes  int
	broken  []string // what did not hold
}

// jointStatus is what is kept of a member.
type jointStatus struct {
	last  jointView
	since time.Time // since when the member is out of reach
}

// jointView is what a member showed at a time.
type jointView struct {
	at      time.Time
	run     fleet.Running
	dry     [2]time.Time // by capacity type
	trial   bool
	settled bool
	spec    int
}

// plenty is more than is ever asked for.
const plenty = 100

var jointEpoch = time.Unix(1_700_000_000, 0)

func newJointHub(members int) *jointHub {
	h := &jointHub{now: jointEpoch, status: map[string]*jointStatus{}, seen: map[string][]jointView{}}
	for i := range members {
		m := &jointMember{
			name: fmt.Sprintf("m%d", i), domain: fmt.Sprintf("d%d", i%2), now: &h.now, start: time.Minute, taken: h.taken,
			room: map[capacity.Type]int{capacity.Spot: 6, capacity.OnDemand: plenty}, pods: map[types.UID]*jointPod{}, probes: map[string]*shortage.Probe{},
		}
		m.restart()
		h.members = append(h.members, m)
		h.status[m.name] = &jointStatus{last: jointView{run: fleet.Running{Member: m.name}}}
	}
	return h
}

// view is what a member shows now, as spot placement tells it.
func (m *jointMember) view() jointView {
	v := jointView{at: *m.now, run: fleet.Running{Member: m.name}, settled: m.settled(), spec: m.replicas}
	v.dry = [2]time.Time{fleet.Spot: m.dry(capacity.Spot), fleet.OnDemand: m.dry(capacity.OnDemand)}
	v.trial, _ = m.droughts.OnTrial(jointShape)
	for _, p := range m.pods {
		c, dry := &v.run.Spot, !v.dry[fleet.Spot].IsZero()
		if p.Capacity == capacity.OnDemand {
			c, dry = &v.run.OnDemand, !v.dry[fleet.OnDemand].IsZero()
		}
		switch {
		case !p.Supply():
			c.Leaving++
		case p.Ready:
			c.Ready++
		case p.Bound || !dry:
			c.Starting++
		default:
			c.Waiting++
		}
	}
	return v
}

// look takes in what members show, as long ago as the lag.
func (h *jointHub) look() {
	for _, m := range h.members {
		s := h.status[m.name]
		if !m.away.IsZero() {
			h.seen[m.name] = nil
			if s.since.IsZero() {
				s.since = m.away
			}
			continue
		}
		s.since = time.Time{}
		h.seen[m.name] = append(h.seen[m.name], m.view())
		for len(h.seen[m.name]) > 0 && h.now.Sub(h.seen[m.name][0].at) >= h.lag {
			s.last, h.seen[m.name] = h.seen[m.name][0], h.seen[m.name][1:]
		}
	}
}

// plan is the real plan of what is seen.
func (h *jointHub) plan() {
	f := &fleet.Fleet{}
	p := &fleet.Placement{Name: "shop/web", Policy: h.policy, LastMove: h.moved}
	for _, m := range h.members {
		s := h.status[m.name]
		room := fleet.Unbounded
		if s.last.trial && s.last.dry[fleet.Spot].IsZero() {
			room = max(1-s.last.run.Spot.Starting-s.last.run.Spot.Waiting, 0)
		}
		f.Members = append(f.Members, fleet.Member{
			Name: m.name, Domain: m.domain, UnreachableSince: s.since,
			Spot: fleet.Supply{
				Room: room, DrySince: s.last.dry[fleet.Spot], Assured: s.last.dry[fleet.Spot].IsZero() && !s.last.trial, Price: 1, Start: m.start, Life: time.Hour,
			},
			OnDemand: fleet.Supply{Room: fleet.Unbounded, DrySince: s.last.dry[fleet.OnDemand], Price: 3, Start: m.start},
		})
		p.Running = append(p.Running, s.last.run)
	}
	h.result = fleet.Plan(f, p, h.now)
}

// act writes what the plan says: first the split, and fewer replicas only when the pods have their slots for it.
func (h *jointHub) act() {
	for _, w := range h.result.Members {
		m, s := h.memberOf(w.Member), h.status[w.Member]
		if !s.since.IsZero() || !m.away.IsZero() {
			continue
		}
		split := policy.FleetSplit{Replicas: w.SpotNow + w.OnDemandNow, OnDemand: w.OnDemandNow}
		if m.split == nil || *m.split != split {
			m.split = &split
			m.last.Assignments = []plan.Assignment{{}} // it has not been planned for yet
			s.last.settled = false
			h.seen[m.name] = nil
			h.writes++
			if split.Replicas < m.replicas {
				continue
			}
		}
		if split.Replicas > m.replicas || (split.Replicas < m.replicas && s.last.settled) {
			if split.Replicas < m.replicas {
				h.moved = h.now
			}
			m.replicas = split.Replicas
			h.writes++
			m.control()
		}
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
	h.look()
	h.plan()
	h.act()
}

// counted is how many ready replicas the hub may count on: those of members in reach, and those it saw last in members that may be
// back soon.
func (h *jointHub) counted() (all, onDemand int) {
	for _, m := range h.members {
		s := h.status[m.name]
		switch {
		case m.away.IsZero():
			for _, p := range m.pods {
				if p.serves() {
					all++
					onDemand += truth(p.Capacity == capacity.OnDemand)
				}
			}
		case h.now.Sub(m.away) < fleet.DefaultGrace:
			all += s.last.run.Spot.Ready + s.last.run.OnDemand.Ready
			onDemand += s.last.run.OnDemand.Ready
		}
	}
	return all, onDemand
}

// taken checks what must hold when the hub takes a ready pod away.
func (h *jointHub) taken(m *jointMember, p *jointPod, why string) {
	if h.lag > 0 || !m.away.IsZero() {
		return // what it did not know it could not keep; and what members do alone is not the hub's work
	}
	all, onDemand := h.counted()
	if all-1 < h.policy.Replicas {
		h.broken = append(h.broken, fmt.Sprintf("at %s: %s of %s goes because %s: %d of %d are left", h.now.Sub(jointEpoch), p.Name, m.name, why, all-1, h.policy.Replicas))
	}
	if floor := min(h.policy.MinOnDemand, h.policy.Replicas); p.Capacity == capacity.OnDemand && onDemand-1 < floor {
		h.broken = append(h.broken, fmt.Sprintf("at %s: %s of %s goes because %s: %d on-demand are left and the floor is %d", h.now.Sub(jointEpoch), p.Name, m.name, why, onDemand-1, floor))
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
