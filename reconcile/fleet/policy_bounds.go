package fleet

import (
	"fmt"
	"slices"
)

// normalise takes values of the policy that have no meaning as the nearest that have, and says so.
func (pl *planner) normalise() {
	p := pl.placement.Policy
	p.Replicas = pl.within("replicas", p.Replicas, 0, Unbounded)
	p.MinOnDemand = pl.within("minOnDemand", p.MinOnDemand, 0, Unbounded)
	p.SpotPercentage = pl.within("spotPercentage", p.SpotPercentage, 0, 100)
	p.ExtraSpot = pl.within("extraSpot", p.ExtraSpot, 0, Unbounded)
	p.Spread.Member = pl.within("spread in a member", p.Spread.Member, 0, 100)
	p.Spread.Domain = pl.within("spread in a domain", p.Spread.Domain, 0, 100)
	if p.MinOnDemand > p.Replicas {
		pl.condition(FloorAboveReplicas, "minOnDemand is %d and replicas %d: all are on-demand", p.MinOnDemand, p.Replicas)
		p.MinOnDemand = p.Replicas
	}
	p.Tiers = pl.normaliseTiers(p.Tiers)
	pl.policy = p
	pl.capMember = share(p.Spread.Member, p.Replicas)
	pl.capDomain = share(p.Spread.Domain, p.Replicas)
}

// share is how many of n replicas a percentage is, and at least one; a percentage of zero is no limit.
func share(percent, n int) int {
	if percent == 0 {
		return Unbounded
	}
	return max(n*percent/100, 1)
}

func (pl *planner) normaliseTiers(tiers []Tier) []Tier {
	minima := 0
	seen := map[string]bool{}
	var corrected []Tier
	for t, tier := range tiers {
		for i, c := range tier {
			good := c
			good.Min = pl.within("min of "+c.Member, c.Min, 0, Unbounded)
			good.Max = pl.within("max of "+c.Member, c.Max, 0, Unbounded)
			if good.Max > 0 && good.Min > good.Max {
				pl.condition(InvalidPolicy, "min of %s is %d and its max %d: using %d", c.Member, c.Min, c.Max, c.Max)
				good.Min = good.Max
			}
			if seen[c.Member] {
				pl.condition(InvalidPolicy, "%s is selected twice: the first one counts", c.Member)
				good.Min = 0
			}
			seen[c.Member] = true
			minima += good.Min
			if good == c {
				continue
			}
			if corrected == nil {
				corrected = slices.Clone(tiers)
			}
			if &corrected[t][0] == &tiers[t][0] {
				corrected[t] = slices.Clone(tier)
			}
			corrected[t][i] = good
		}
	}
	if replicas := pl.placement.Policy.Replicas; minima > replicas && replicas >= 0 {
		pl.condition(BoundsTooHigh, "the minima of the members add up to %d, but replicas is %d: they are satisfied in the order of the tiers", minima, replicas)
	}
	if corrected != nil {
		return corrected
	}
	return tiers
}

// within returns a value that is in its bounds.
func (pl *planner) within(what string, value, least, most int) int {
	good := min(max(value, least), most)
	if good != value {
		pl.condition(InvalidPolicy, "%s is %d: using %d", what, value, good)
	}
	return good
}

func (pl *planner) condition(t ConditionType, format string, args ...any) {
	pl.result.Conditions = append(pl.result.Conditions, Condition{Type: t, Message: fmt.Sprintf(format, args...)})
}

// noteMinima says which minima cannot be met, where it is not for lack of replicas: spread does not allow them, or there is no room.
func (pl *planner) noteMinima() {
	for i := range pl.places {
		p := &pl.places[i]
		switch {
		case p.tier < 0 || p.frozen != moves || p.total() >= p.choice.Min:
		case !pl.below(p):
			pl.condition(BoundsTooHigh, "min of %s is %d, and spread allows %d", p.Name, p.choice.Min, p.total())
		case !pl.fits(p, Spot) && !pl.fits(p, OnDemand):
			pl.condition(NoRoom, "min of %s is %d, and it has room for %d", p.Name, p.choice.Min, p.total())
		case !pl.fits(p, OnDemand) && pl.placed[Spot] >= pl.policy.spotWanted(pl.policy.Replicas):
			pl.condition(NoRoom, "min of %s is %d, and it gets %d: its on-demand capacity has no room, and spotPercentage allows no more on spot", p.Name, p.choice.Min, p.total())
		}
	}
}

// noteUnplaced says why some replicas have no place.
func (pl *planner) noteUnplaced() {
	chosen, allowed := 0, false
	for i := range pl.places {
		p := &pl.places[i]
		if p.tier < 0 || p.frozen == out {
			continue
		}
		chosen++
		allowed = allowed || (p.frozen == moves && pl.below(p))
	}
	left := pl.result.Unplaced
	switch {
	case chosen == 0 && pl.policy.Replicas > 0:
		pl.condition(NoMembers, "no tier has a member that takes part")
	case left == 0:
	case allowed:
		pl.condition(NoRoom, "%s no room in any member", count(left, "replica has", "replicas have"))
	default:
		pl.condition(BoundsTooLow, "%s no place: the maxima and the spread of the members allow no more", count(left, "replica has", "replicas have"))
	}
}
