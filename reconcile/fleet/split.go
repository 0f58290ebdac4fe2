package fleet

// split decides how many replicas each member is to have, from what is asked for and what there is. What runs now only
// settles ties, so that nothing moves for nothing.
//
// Spot comes before on-demand, in whatever tier: a drought in one member becomes spot in another before it becomes on-demand
// anywhere. Within a capacity type an earlier tier comes before a later one, and within a tier replicas are dealt one by one
// by the method of Sainte-Laguë on the weights: that is even, and one replica more changes one number.
//
// Where dry supplies may be tried, it splits twice: as if each had room for one more, which shows where that would be used,
// and then for what is known.
func (pl *planner) split() {
	if pl.anyAttempt() {
		pl.trying = true
		pl.divide()
		pl.trying = false
		for i := range pl.places {
			p := &pl.places[i]
			if pl.mayTry(p) && p.target[Spot] > p.have[Spot].Ready+p.have[Spot].Starting {
				p.attempt = 1
			}
			p.target, p.reasons = [2]int{}, nil
		}
		pl.placed = [2]int{}
		clear(pl.inDomain)
	}
	pl.divide()
	pl.noteMinima()
	pl.noteUnplaced()
}

func (pl *planner) divide() {
	n := pl.policy.Replicas
	pl.freeze()
	floor := max(pl.policy.MinOnDemand-pl.placed[OnDemand], 0)
	left := max(n-pl.placed[Spot]-pl.placed[OnDemand], floor)
	spot := min(max(pl.policy.spotWanted(n)-pl.placed[Spot], 0), left-floor)
	onDemand, spot := pl.minima(left-spot, spot)
	noOnDemand := pl.deal(OnDemand, onDemand, nil)
	noSpot := pl.deal(OnDemand, pl.deal(Spot, spot, nil), nil)
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
}

// anyAttempt reports whether a dry supply may be tried, and asks for another plan when the next one may.
func (pl *planner) anyAttempt() bool {
	any := false
	for i := range pl.places {
		p := &pl.places[i]
		if p.tier < 0 || p.frozen != moves || pl.policy.SpotPercentage == 0 || p.Spot.DrySince.IsZero() {
			continue
		}
		pl.recheck(p.Spot.TryAt)
		any = any || pl.mayTry(p)
	}
	return any
}

// mayTry reports whether one replica may find out whether a dry supply has room again. One that does so already goes on.
func (pl *planner) mayTry(p *place) bool {
	if p.tier < 0 || p.frozen != moves || p.Spot.DrySince.IsZero() || p.Spot.TryAt.IsZero() {
		return false
	}
	return p.have[Spot].Waiting > 0 || (p.Spot.tryable(pl.now) && !pl.tried[p.at])
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
