package fleet

import "math"

// candidate is a member that may get the next replica, with its rank among the others: the lowest comes first.
type candidate struct {
	place *place
	// share is what the member would have by its weight, by Sainte-Laguë.
	share float64
	// moved: it has no replica yet that this one would be.
	moved bool
	// inDomain is how many replicas of the plan are in its failure domain.
	inDomain int
	price    float64
	class    int // how short the predicted lifetime is; see unsteady
	load     int // replicas of other placements
	at       int
}

func (a *candidate) before(b *candidate) bool {
	switch {
	case a.share != b.share:
		return a.share < b.share
	case a.moved != b.moved:
		return b.moved
	case a.inDomain != b.inDomain:
		return a.inDomain < b.inDomain
	case a.price != b.price:
		return a.price < b.price
	case a.class != b.class:
		return a.class < b.class
	case a.load != b.load:
		return a.load < b.load
	}
	return a.at < b.at
}

// deal gives n replicas of a capacity type to the members, tier by tier, and returns how many found no place. It notes where
// each went, where that is asked for.
func (pl *planner) deal(c Capacity, n int, went *[]*place) (left int) {
	for tier := 0; tier < pl.tiers && n > 0; tier++ {
		n = pl.dealTier(c, tier, n, went)
	}
	return n
}

func (pl *planner) dealTier(c Capacity, tier, n int, went *[]*place) (left int) {
	pl.queue = pl.queue[:0]
	for i := range pl.places {
		if p := &pl.places[i]; p.tier == tier && p.frozen == moves && pl.fits(p, c) {
			pl.queue = append(pl.queue, pl.rank(p, c))
		}
	}
	for i := len(pl.queue)/2 - 1; i >= 0; i-- {
		pl.sink(i)
	}
	for n > 0 && len(pl.queue) > 0 {
		top := &pl.queue[0]
		p := top.place
		if !pl.fits(p, c) {
			last := len(pl.queue) - 1
			pl.queue[0] = pl.queue[last]
			pl.queue = pl.queue[:last]
			pl.sink(0)
			continue
		}
		// Others of its domain may have got some since it was ranked; ranks only ever get worse.
		if d := pl.domain[p.at]; d >= 0 && top.inDomain != pl.inDomain[d] {
			top.inDomain = pl.inDomain[d]
			pl.sink(0)
			continue
		}
		pl.put(p, c)
		if went != nil {
			*went = append(*went, p)
		}
		n--
		pl.queue[0] = pl.rank(p, c)
		pl.sink(0)
	}
	return n
}

func (pl *planner) rank(p *place, c Capacity) candidate {
	s := p.of(c)
	r := candidate{
		place: p,
		share: float64(2*p.total()+1) / float64(2*max(p.choice.Weight, 1)),
		moved: p.target[c] >= p.have[c].have(),
		price: s.Price,
		class: unsteady(s),
		load:  pl.load[p.at] - p.have[Spot].have() - p.have[OnDemand].have(),
		at:    p.at,
	}
	if d := pl.domain[p.at]; d >= 0 {
		r.inDomain = pl.inDomain[d]
	}
	return r
}

// unsteady reports how short the predicted lifetime of a supply is, in powers of two: a difference that is smaller than what can
// be predicted does not outweigh an even load.
func unsteady(s *Supply) int {
	if s.Life <= 0 {
		return 0
	}
	return 64 - int(math.Log2(max(s.Life.Seconds(), 1)))
}

// sink restores the order of the heap below a candidate whose rank got worse.
func (pl *planner) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(pl.queue) {
			return
		}
		if second := first + 1; second < len(pl.queue) && pl.queue[second].before(&pl.queue[first]) {
			first = second
		}
		if !pl.queue[first].before(&pl.queue[i]) {
			return
		}
		pl.queue[first], pl.queue[i] = pl.queue[i], pl.queue[first]
		i = first
	}
}

// fits reports whether one more replica of a type may be in a member.
func (pl *planner) fits(p *place, c Capacity) bool {
	return pl.below(p) && p.target[c] < pl.roomFor(p, c)
}

// below reports whether the policy allows one more replica in a member.
func (pl *planner) below(p *place) bool {
	most := pl.capMember
	if p.choice.Max > 0 {
		most = min(most, p.choice.Max)
	}
	if d := pl.domain[p.at]; d >= 0 && pl.inDomain[d] >= pl.capDomain {
		return false
	}
	return p.total() < most
}

// roomFor is how many replicas of a type a member can have: those that it runs, and what its supply takes beyond them. Where
// a supply is dry, what waits for it is not counted on.
func (pl *planner) roomFor(p *place, c Capacity) int {
	s, have := p.of(c), p.have[c]
	if c == Spot && p.dear() {
		return 0
	}
	if s.dry() {
		if c == Spot && pl.trying && pl.mayTry(p) {
			return have.Ready + have.Starting + 1
		}
		return have.Ready + have.Starting
	}
	room := min(pl.room[p.at][c], s.Room)
	if room == Unbounded {
		return Unbounded
	}
	return have.have() + room
}

// dear reports whether spot costs no less than on-demand there.
func (p *place) dear() bool {
	return p.Spot.Price > 0 && p.OnDemand.Price > 0 && p.Spot.Price >= p.OnDemand.Price
}

func (pl *planner) put(p *place, c Capacity) {
	p.target[c]++
	pl.placed[c]++
	if d := pl.domain[p.at]; d >= 0 {
		pl.inDomain[d]++
	}
}

func (pl *planner) takeBack(p *place, c Capacity) {
	p.target[c]--
	pl.placed[c]--
	if d := pl.domain[p.at]; d >= 0 {
		pl.inDomain[d]--
	}
}

func (p *place) total() int { return p.target[Spot] + p.target[OnDemand] }
