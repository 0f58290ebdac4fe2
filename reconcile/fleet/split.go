package fleet

// split decides how many replicas each member is to have, from what is asked for and what there is. What runs now only
// settles ties, so that nothing moves for nothing.
//
// Spot comes before on-demand, in whatever tier: a drought in one member becomes spot in another before it becomes on-demand
// anywhere. Within a capacity type an earlier tier comes before a later one, and within a tier replicas are dealt one by one
// by the method of Sainte-Laguë on the weights: that is even, and one replica more changes one number.
func (pl *planner) split() {
	n := pl.policy.Replicas
	pl.freeze()
	left := max(n-pl.placed[Spot]-pl.placed[OnDemand], 0)
	spot := min(max(pl.policy.spotWanted(n)-pl.placed[Spot], 0), left)
	onDemand, spot := pl.minima(left-spot, spot)
	noOnDemand := pl.deal(OnDemand, onDemand, nil)
	noSpot := pl.deal(Spot, spot, nil)
	pl.unmet = noSpot
	noSpot = pl.deal(OnDemand, noSpot, nil)
	// What on-demand has no room for goes to spot, but for the floor.
	aboveFloor := 0
	if pl.policy.SpotPercentage > 0 {
		aboveFloor = min(max(n-pl.policy.MinOnDemand-pl.placed[Spot], 0), noOnDemand)
	}
	noOnDemand += pl.deal(Spot, aboveFloor, nil) - aboveFloor
	pl.result.Unplaced = noSpot + noOnDemand
	if pl.result.Unplaced == 0 {
		pl.insure()
	}
	pl.try()
	pl.tellUnplaced()
}

// freeze counts what stays as it is: the replicas of members that are out of reach, as long as they may be back soon.
func (pl *planner) freeze() {
	for i := range pl.places {
		p := &pl.places[i]
		if p.frozen == moves {
			continue
		}
		p.target = [2]int{p.have[Spot].have(), p.have[OnDemand].have()}
		if p.frozen != grace {
			continue
		}
		pl.placed[Spot] += p.target[Spot]
		pl.placed[OnDemand] += p.target[OnDemand]
		if d := pl.domain[p.at]; d >= 0 {
			pl.inDomain[d] += p.target[Spot] + p.target[OnDemand]
		}
	}
	if pl.anyGrace() {
		for i := range pl.places {
			if p := &pl.places[i]; p.frozen == grace {
				pl.recheck(p.UnreachableSince.Add(pl.policy.grace()))
			}
		}
	}
}

func (pl *planner) anyGrace() bool {
	for i := range pl.places {
		if pl.places[i].frozen == grace {
			return true
		}
	}
	return false
}

// minima gives members what they must have at least, in the order of the tiers: spot as long as some is wanted and there,
// else on-demand. It returns what of both is left.
func (pl *planner) minima(onDemand, spot int) (onDemandLeft, spotLeft int) {
	for i := range pl.places {
		p := &pl.places[i]
		if p.frozen != moves || p.tier < 0 {
			continue
		}
		for p.total() < p.choice.Min && onDemand+spot > 0 {
			switch {
			case spot > 0 && pl.fits(p, Spot):
				spot--
				pl.put(p, Spot)
			case !pl.fits(p, OnDemand):
				p.because("its minimum of %d cannot be met", p.choice.Min)
				goto next
			default:
				if onDemand > 0 {
					onDemand--
				} else {
					spot--
				}
				pl.put(p, OnDemand)
			}
		}
	next:
	}
	return onDemand, spot
}

// try sends a replica to dry supplies that may be tried, for each spot replica that found no room.
func (pl *planner) try() {
	for i := range pl.places {
		p := &pl.places[i]
		if p.Spot.DrySince.IsZero() || p.frozen != moves || p.Spot.TryAt.IsZero() || pl.unmet <= 0 {
			continue
		}
		if waits := p.have[Spot].Waiting; waits > 0 {
			p.trial = 1
			pl.unmet--
		}
	}
	for tier := 0; tier < pl.tiers && pl.unmet > 0; tier++ {
		for i := range pl.places {
			p := &pl.places[i]
			if p.tier != tier || p.frozen != moves || p.trial > 0 || p.Spot.DrySince.IsZero() || !pl.below(p) || pl.unmet <= 0 {
				continue
			}
			if pl.tried[p.at] || !p.Spot.tryable(pl.now) {
				pl.recheck(p.Spot.TryAt)
				continue
			}
			p.trial = 1
			pl.unmet--
			p.because("1 replica tries whether spot has room again")
		}
	}
}
