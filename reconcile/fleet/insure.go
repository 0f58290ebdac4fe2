package fleet

// insure adds spot replicas beyond the wanted number, as many as are worth it: each must avert as much time with replicas
// missing as the policy's availability allows in all. Several are looked at together, for where two members hold half of the
// replicas each, one more averts nothing and as many again avert it all.
func (pl *planner) insure() {
	allowed := 1 - pl.policy.availability()
	wanted := 0
	best, risk := 0, pl.risk()
	pl.result.Risk = risk
	if pl.placed[Spot] == 0 || pl.policy.SpotPercentage <= 0 {
		return
	}
	cost := risk
	var went []*place
	for e := 1; e <= pl.policy.ExtraSpot; e++ {
		if pl.deal(Spot, 1, &went) > 0 {
			// There is no room for it now; it would be wanted if it were worth it with what there is.
			wanted = e
			break
		}
		if r := pl.risk(); r+float64(e)*allowed < cost {
			best, risk, cost = e, r, r+float64(e)*allowed
		}
	}
	for e := len(went); e > best; e-- {
		pl.takeBack(went[e-1], Spot)
	}
	pl.result.Insurance, pl.result.Risk = best, risk
	if wanted == best+1 && risk > allowed {
		pl.unmet++
	}
}

// holder is what would be lost at once, and how often.
type holder struct {
	replicas    int
	rate        float64 // a second
	gap, start  float64 // seconds that a lost replica is missing, and that its replacement takes
	ofOneMember bool
}

// risk is the expected share of time for which replicas are missing: because a member loses its spot capacity, a domain does,
// or a second member does before what the first has lost is replaced.
func (pl *planner) risk() float64 {
	slack := pl.placed[Spot] + pl.placed[OnDemand] - pl.policy.Replicas
	holders := pl.holders()
	total := 0.0
	for i := range holders {
		a := &holders[i]
		if a.replicas > slack {
			total += a.rate * a.gap
			continue
		}
		for j := range i {
			b := &holders[j]
			if b.replicas <= slack && a.replicas+b.replicas > slack && a.ofOneMember && b.ofOneMember {
				total += a.rate * b.rate * (a.start + b.start) / 2 * max(a.gap, b.gap)
			}
		}
	}
	return min(total, 1)
}

// maxHolders bounds what pairs of losses cost to look at.
const maxHolders = 64

func (pl *planner) holders() []holder {
	var holders []holder
	byDomain := make([]holder, len(pl.domains))
	for i := range pl.places {
		p := &pl.places[i]
		n := p.target[Spot]
		if n == 0 || p.frozen == lost || p.frozen == out {
			continue
		}
		h := holder{replicas: n, rate: p.Spot.rate(), gap: p.Spot.gap().Seconds(), start: p.Spot.Start.Seconds(), ofOneMember: true}
		if h.rate > 0 && len(holders) < maxHolders {
			holders = append(holders, h)
		}
		if d := pl.domain[p.at]; d >= 0 {
			all := &byDomain[d]
			all.replicas += n
			all.gap, all.start = max(all.gap, h.gap), max(all.start, h.start)
		}
	}
	for d := range byDomain {
		if byDomain[d].rate = rateOf(pl.domains[d].Life); byDomain[d].replicas > 0 && byDomain[d].rate > 0 {
			holders = append(holders, byDomain[d])
		}
	}
	return holders
}
