package plan

import (
	"fmt"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// noteSpread says where the replicas are not spread as the template asks for over both capacity types, and why replicas wait.
func (pl *planner) noteSpread() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if len(o.Spreads) == 0 {
			continue
		}
		if n := pl.unscheduled(o, capacity.Spot) + pl.unscheduled(o, capacity.OnDemand); n > 0 {
			for j := range o.Spreads {
				pl.note("%s for a node, and the %s must be satisfied: %s", phrase.Count(n, "replica waits", "replicas wait"), &o.Spreads[j], o.Spreads[j].counting())
			}
		}
		if pl.settled(o) {
			pl.noteSkew(o)
		}
	}
}

// settled reports whether all replicas of an owner run, so that their domains say what will stay.
func (pl *planner) settled(o *ownerPods) bool {
	if len(o.alive) != o.Replicas || len(o.interrupted)+len(o.released)+len(pl.moving) > 0 || pl.excess > 0 {
		return false
	}
	for _, pod := range o.alive {
		if !pod.Bound {
			return false
		}
	}
	return true
}

// noteSkew says by how much the replicas of an owner are beyond a skew over both capacity types.
func (pl *planner) noteSkew(o *ownerPods) {
	u := newUnbalance(o.Spreads, o.alive)
	for i := range u {
		all := &u[i].all
		if all.skew() <= u[i].MaxSkew {
			continue
		}
		most, fewest := "", ""
		for j := range u[i].Domains {
			switch n := int(all.counts[j]); {
			case most == "" && n == all.most:
				most = fmt.Sprintf("%s has %d", u[i].Domains[j].Name, n)
			case fewest == "" && n == all.few:
				fewest = fmt.Sprintf("%s %d", u[i].Domains[j].Name, n)
			}
		}
		if fewest == "" {
			fewest = fmt.Sprintf("there are fewer than %d domains", u[i].MinDomains)
		}
		why := "no replica is moved to satisfy it"
		if !u[i].Together {
			why = u[i].counting()
		}
		pl.result.Skew = fmt.Sprintf("the %s is not satisfied over both capacity types: %s, %s; %s", u[i].Spread, most, fewest, why)
		pl.note("%s", pl.result.Skew)
	}
}

// counting says which pods the scheduler counts for the constraint.
func (s *Spread) counting() string {
	if s.Together {
		return "pods on spot and on-demand count together"
	}
	return "each capacity type is spread on its own, because " + s.Apart
}

// some names the first few of many.
func some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
