package placing

import (
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// lastRound is what the last round knew and decided. It is not changed any more.
type lastRound struct {
	items   []*item
	members []Member
	at      time.Time
}

// Explanation says why the plan of a FleetPlacement is as it is.
type Explanation struct {
	// Stopped is why there is no plan, as its condition Ready says it; empty: there is one.
	Stopped string
	fleet.Explanation
	// At is when what it is made from was looked at.
	At time.Time
}

// Hypothesis is another policy of a FleetPlacement.
type Hypothesis struct {
	// Change makes of what it asks for what it might.
	Change func(spec *v1alpha1.FleetPlacementSpec)
	// IgnoreWindow plans as if the disruption window were open.
	IgnoreWindow bool
}

// Supposition is what the plan of a FleetPlacement would be under another policy.
type Supposition struct {
	// Stopped is why there would be no plan; empty: there would be one.
	Stopped string
	// Result is the plan, and Problems what cannot be had beside its conditions.
	Result   fleet.Result
	Problems []fleet.Condition
	// CostNow and Cost are what the replicas of the plan that is carried out, and of this one, cost: in the unit of prices, and where
	// none are known as multiples of a spot replica.
	CostNow, Cost float64
	// At is when what it is made from was looked at.
	At time.Time
}

// finish keeps what a round knew for those who ask.
func (c *Controller) finish(items []*item, members []Member, now time.Time) {
	c.latest.Store(&lastRound{items: items, members: members, at: now})
}

// of returns the item of a FleetPlacement, and all that are planned with their names.
func (r *lastRound) of(namespace, name string) (found *item, placements []fleet.Placement) {
	for _, it := range r.items {
		if it.object.Namespace == namespace && it.object.Name == name {
			found = it
		}
		if it.stop == nil && !it.waits {
			placements = append(placements, it.placement)
		}
	}
	return found, placements
}

// fleet is what all placements are planned in.
func (r *lastRound) fleet() *fleet.Fleet { return fleetOf(r.members) }

// Explain says why the plan of a FleetPlacement is as it is, from what the last round of this replica knew; false: it knew of none of
// that name, or this replica does not act. It is safe for concurrent use, and explains and supposes one thing at a time.
func (c *Controller) Explain(namespace, name string) (Explanation, bool) {
	last := c.latest.Load()
	if last == nil {
		return Explanation{}, false
	}
	it, placements := last.of(namespace, name)
	if it == nil || it.waits {
		return Explanation{}, false
	}
	if it.stop != nil {
		return Explanation{Stopped: it.stop.message, At: last.at}, true
	}
	c.asking.Lock()
	defer c.asking.Unlock()
	found, ok := fleet.Explain(last.fleet(), placements, it.name(), last.at)
	return Explanation{Explanation: found, At: last.at}, ok
}

// Suppose plans a FleetPlacement under another policy, from what the last round knew. Nothing comes of it. It is as [Controller.Explain] is.
func (c *Controller) Suppose(namespace, name string, h Hypothesis) (Supposition, bool) {
	last := c.latest.Load()
	if last == nil {
		return Supposition{}, false
	}
	it, placements := last.of(namespace, name)
	if it == nil || it.waits {
		return Supposition{}, false
	}
	found := Supposition{At: last.at}
	if it.stop != nil {
		found.Stopped = it.stop.message
		return found, true
	}
	other := c.supposed(it, last, h)
	if other.asked.invalid != "" {
		found.Stopped = other.asked.invalid
		return found, true
	}
	at := slices.IndexFunc(placements, func(p fleet.Placement) bool { return p.Name == it.name() })
	if at < 0 {
		return found, false
	}
	placements[at] = other.placement
	c.asking.Lock()
	defer c.asking.Unlock()
	var ok bool
	found.Result, ok = fleet.PlanOne(last.fleet(), placements, it.name(), last.at)
	found.Problems = other.asked.problems
	found.CostNow, found.Cost = cost(&it.placement, &it.result), cost(&other.placement, &found.Result)
	return found, ok
}

// supposed is an item under another policy.
func (c *Controller) supposed(it *item, last *lastRound, h Hypothesis) *item {
	other := &item{object: it.object.DeepCopy(), target: it.target, sights: slices.Clone(it.sights)}
	h.Change(&other.object.Spec)
	other.asked = policyOf(other.object, last.members, last.at)
	if h.IgnoreWindow {
		other.asked.policy.Pace.Shut = false
	}
	looked := map[string]bool{}
	for _, s := range other.sights {
		looked[s.member.Name] = true
	}
	for _, tier := range other.asked.policy.Tiers {
		for _, choice := range tier {
			if looked[choice.Member] {
				continue
			}
			looked[choice.Member] = true
			at := slices.IndexFunc(last.members, func(m Member) bool { return m.Name == choice.Member })
			s := &sight{member: &last.members[at], life: fleet.FirstLife}
			if s.member.Reachable {
				s.view, s.known = c.options.Workloads.FleetView(s.member.Name, it.target.key)
			}
			other.sights = append(other.sights, s)
		}
	}
	slices.SortFunc(other.sights, func(a, b *sight) int { return strings.Compare(a.member.Name, b.member.Name) })
	other.prepare(last.at)
	return other
}

// cost of the replicas that a plan leads to.
func cost(p *fleet.Placement, r *fleet.Result) (sum float64) {
	for i := range r.Members {
		w := &r.Members[i]
		spot, onDemand := 1.0, float64(fleet.DefaultPriceRatio)
		if m := p.Members[w.Member]; m != nil && m.Spot.Price > 0 && m.OnDemand.Price > 0 {
			spot, onDemand = m.Spot.Price, m.OnDemand.Price
		}
		sum += spot*float64(w.Spot) + onDemand*float64(w.OnDemand)
	}
	return sum
}
