package fleet

// insure adds replicas beyond the wanted number, as many as are worth it: each must avert as much time with replicas missing as
// the policy's availability allows in all; one that is on-demand as many times that as it costs more. Several are looked at
// together: where two members hold half of the replicas each, one more averts little and as many again avert it all.
func (pl *planner) insure() {
	best := insurance{risk: pl.risk(0)}
	if pl.placed[Spot] > 0 {
		best = pl.bestInsurance(best)
	}
	if best.onDemand > 0 {
		best.onDemand -= pl.deal(OnDemand, best.onDemand, nil)
	}
	pl.result.Insurance, pl.result.Risk = best.spot+best.onDemand, best.risk
}

// insurance is how many replicas are beyond the wanted number, and what is risked with them.
type insurance struct {
	spot, onDemand int
	risk           float64
}

// Insurance that runs is given up for less than what it must avert, and started for more: by so much of it. What is risked is estimated
// from what is measured, and insurance at the limit must not come and go with every measurement.
const band = 0.1

func (pl *planner) bestInsurance(best insurance) insurance {
	each := 1 - pl.policy.availability()
	eachOnDemand := each * pl.priceRatio()
	runsOnDemand := pl.runsBeyond(OnDemand)
	costOf := func(more, runs int) float64 {
		kept := min(more, runs)
		return float64(kept)*(1-band) + float64(more-kept)*(1+band)
	}
	cost, kept := best.risk, 0
	var went []*place
	for {
		for onDemand := range pl.policy.ExtraSpot - len(went) + 1 {
			risk := pl.risk(onDemand)
			if now := risk + costOf(len(went), kept)*each + costOf(onDemand, runsOnDemand)*eachOnDemand; now < cost {
				cost, best = now, insurance{spot: len(went), onDemand: onDemand, risk: risk}
			}
			if risk == 0 {
				break
			}
		}
		if len(went) == pl.policy.ExtraSpot {
			break
		}
		p := pl.nextSpot(each)
		if p == nil {
			break
		}
		if p.target[Spot] < p.have[Spot].have() {
			kept++
		}
		pl.put(p, Spot)
		went = append(went, p)
	}
	for _, p := range went[best.spot:] {
		pl.takeBack(p, Spot)
	}
	return best
}

// runsBeyond is how many replicas of a type run that the plan has no other use for.
func (pl *planner) runsBeyond(c Capacity) (n int) {
	for i := range pl.places {
		if p := &pl.places[i]; p.frozen == moves {
			n += max(p.have[c].have()-p.target[c], 0)
		}
	}
	return n
}

// nextSpot is where one more spot replica leaves the least at risk. It does not leave where it runs for a gain that is not
// worth a replica.
func (pl *planner) nextSpot(each float64) *place {
	for tier := range pl.tiers {
		var best candidate
		least := 0.0
		for i := range pl.places {
			p := &pl.places[i]
			if p.tier != tier || p.frozen != moves || !pl.fits(p, Spot) {
				continue
			}
			r := pl.rank(p, Spot)
			pl.put(p, Spot)
			risk := pl.risk(0)
			pl.takeBack(p, Spot)
			if r.moved {
				risk += each
			}
			if best.place == nil || risk < least || (risk == least && r.before(&best)) {
				best, least = r, risk
			}
		}
		if best.place != nil {
			return best.place
		}
	}
	return nil
}

// priceRatio is what on-demand costs as a multiple of spot: the cheapest of each.
func (pl *planner) priceRatio() float64 {
	var least [2]float64
	for i := range pl.places {
		for c := range least {
			if price := pl.places[i].of(Capacity(c)).Price; price > 0 && (least[c] == 0 || price < least[c]) {
				least[c] = price
			}
		}
	}
	if least[Spot] == 0 || least[OnDemand] == 0 {
		return DefaultPriceRatio
	}
	return max(least[OnDemand]/least[Spot], 1)
}

// holder is what would be lost at once, and how often.
type holder struct {
	replicas   int
	rate       float64 // a second
	gap, start float64 // seconds that a lost replica is missing, and that its replacement takes
	members    int
}

// risk is the expected share of time for which replicas are missing, with so many more that are not lost: because a member
// loses spot capacity, a domain does, or a second member does before what the first has lost is replaced.
func (pl *planner) risk(more int) float64 {
	slack := pl.placed[Spot] + pl.placed[OnDemand] - pl.policy.Replicas + more
	holders := pl.holders()
	total := 0.0
	for i := range holders {
		a := &holders[i]
		total += a.rate * a.gap * a.short(slack)
		if a.replicas > slack || a.members > 1 || i >= paired {
			continue
		}
		for j := range i {
			if b := &holders[j]; b.replicas <= slack && a.replicas+b.replicas > slack && b.members == 1 {
				total += a.rate * b.rate * (a.start + b.start) / 2 * max(a.gap, b.gap)
			}
		}
	}
	return min(total, 1)
}

// short is the share of losses that slack does not cover: a loss takes any number of the replicas, each as likely.
func (h *holder) short(slack int) float64 {
	return float64(max(h.replicas-max(slack, 0), 0)) / float64(h.replicas)
}

// Together is the share of losses in a domain that take the spot capacity of all its members.
const Together = 0.25

// paired bounds what pairs of losses cost to look at: beyond so many members, pairs are left out.
const paired = 24

// holders are the members and domains with spot replicas in the plan.
func (pl *planner) holders() []holder {
	holders := pl.buffers.holders[:0]
	if pl.buffers.domains == nil {
		pl.buffers.domains = make([]holder, len(pl.domains))
	}
	byDomain := pl.buffers.domains
	clear(byDomain)
	for i := range pl.places {
		p := &pl.places[i]
		n := p.target[Spot]
		if n == 0 || p.frozen == lost || p.frozen == out {
			continue
		}
		h := holder{replicas: n, rate: p.Spot.rate(), gap: p.Spot.gap().Seconds(), start: p.Spot.Start.Seconds(), members: 1}
		if h.rate > 0 {
			holders = append(holders, h)
		}
		if d := pl.domain[p.at]; d >= 0 {
			all := &byDomain[d]
			all.replicas += n
			all.members++
			all.rate = max(all.rate, h.rate)
			all.gap, all.start = max(all.gap, h.gap), max(all.start, h.start)
		}
	}
	for d := range byDomain {
		if all := &byDomain[d]; all.members > 1 {
			if life := pl.domains[d].Life; life > 0 {
				all.rate = rateOf(life)
			}
			all.rate *= Together
			holders = append(holders, *all)
		}
	}
	pl.buffers.holders = holders
	return holders
}
