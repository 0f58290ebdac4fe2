package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Plan decides where the replicas of one placement belong, and what of it can be done now. It has no effects, and the same
// input has the same result; when everything is as it should be, it wants nothing.
func Plan(f *Fleet, p *Placement, now time.Time) Result {
	return newRound(f, []Placement{*p}, now).plan(p)
}

// PlanAll plans several placements in one go. Each sees what the ones before it take of the same supply. They are planned in
// the order of their names, and the results are in the order of the placements.
func PlanAll(f *Fleet, placements []Placement, now time.Time) []Result {
	r := newRound(f, placements, now)
	order := make([]int, len(placements))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(placements[a].Name, placements[b].Name) })
	results := make([]Result, len(placements))
	for _, i := range order {
		results[i] = r.plan(&placements[i])
	}
	return results
}

// round is what the placements of one go share.
type round struct {
	fleet   *Fleet
	now     time.Time
	index   map[string]int // member by name
	domain  []int          // of each member; -1: none
	domains []Domain
	room    [][2]int // what each member's supply still takes
	tried   []bool   // a dry spot supply that is tried already
	load    []int    // replicas of all placements, those that were planned with what they are to have
}

func newRound(f *Fleet, placements []Placement, now time.Time) *round {
	n := len(f.Members)
	r := &round{
		fleet: f, now: now, index: make(map[string]int, n),
		room: make([][2]int, n), tried: make([]bool, n), load: make([]int, n),
	}
	r.domain, r.domains = domainsOf(f, nil)
	for i := range f.Members {
		m := &f.Members[i]
		r.index[m.Name] = i
		r.room[i] = [2]int{max(m.Spot.Room, 0), max(m.OnDemand.Room, 0)}
	}
	for i := range placements {
		for _, run := range placements[i].Running {
			if at, known := r.index[run.Member]; known {
				r.load[at] += run.Spot.have() + run.OnDemand.have()
				r.tried[at] = r.tried[at] || run.Spot.Waiting > 0
			}
		}
	}
	return r
}

// domainsOf returns the failure domains, and which one each member is in; -1: none.
func domainsOf(f *Fleet, seen map[string]*Member) (domain []int, domains []Domain) {
	names := map[string]int{}
	for _, d := range f.Domains {
		names[d.Name] = len(domains)
		domains = append(domains, d)
	}
	domain = make([]int, len(f.Members))
	for i := range f.Members {
		m := &f.Members[i]
		if own := seen[m.Name]; own != nil {
			m = own
		}
		domain[i] = -1
		if m.Domain == "" {
			continue
		}
		at, known := names[m.Domain]
		if !known {
			at = len(domains)
			names[m.Domain] = at
			domains = append(domains, Domain{Name: m.Domain})
		}
		domain[i] = at
	}
	return domain, domains
}

func (r *round) plan(p *Placement) Result {
	pl := newPlanner(r, p)
	pl.split()
	pl.step()
	pl.explain()
	pl.take()
	return pl.result
}

// planner holds what one plan is made from.
type planner struct {
	*round
	placement *Placement
	policy    Policy
	places    []place
	tiers     int
	domain    []int // as the placement sees them; see round
	domains   []Domain
	inDomain  []int // replicas of the plan in each domain
	placed    [2]int
	trying    bool // dry supplies that may be tried count as having room for one
	capMember int  // at most so many in one member, in one domain; see [Spread]
	capDomain int
	queue     []candidate
	buffers   struct{ holders, domains []holder } // of one look at what is risked
	result    Result
}

// place is a member as the placement sees it.
type place struct {
	*Member
	at     int // in the fleet
	choice Choice
	tier   int // -1: in none
	frozen freeze
	out    string

	have      [2]Count
	ordinals  []Ordinal
	target    [2]int
	bridges   int // on-demand replicas that are started until it is known whether spot has room
	attempt   int // spot replicas that find out whether a dry supply has room, and count for nothing yet
	now       [2]int
	exchanges int
	reasons   []string
}

// freeze says why the replicas of a member stay as they are.
type freeze uint8

const (
	moves freeze = iota // they do not
	grace               // out of reach, and its replicas still count
	lost                // out of reach for longer than the grace: compensated for elsewhere
	out                 // takes no part
)

func newPlanner(r *round, p *Placement) *planner {
	pl := &planner{round: r, placement: p, domain: r.domain, domains: r.domains}
	if p.Members != nil {
		pl.domain, pl.domains = domainsOf(r.fleet, p.Members)
	}
	pl.inDomain = make([]int, len(pl.domains))
	pl.result.Name = p.Name
	pl.normalise()
	seen := make(map[int]int, len(p.Running))
	for i := range p.Running {
		if at, known := r.index[p.Running[i].Member]; known {
			seen[at] = i
		}
	}
	used := make([]bool, len(r.fleet.Members))
	add := func(at, tier int, c Choice) {
		used[at] = true
		var run Running
		if i, runs := seen[at]; runs {
			run = p.Running[i]
		}
		pl.places = append(pl.places, r.placeOf(at, tier, c, run, p.Members, pl.policy.grace()))
	}
	for tier, choices := range pl.policy.Tiers {
		for _, c := range choices {
			if at, known := r.index[c.Member]; known && !used[at] {
				add(at, tier, c)
			}
		}
	}
	for _, run := range p.Running {
		if at, known := r.index[run.Member]; known && !used[at] {
			add(at, -1, Choice{Member: run.Member})
		}
	}
	pl.tiers = len(pl.policy.Tiers)
	return pl
}

func (r *round) placeOf(at, tier int, c Choice, run Running, seen map[string]*Member, patience time.Duration) place {
	m := &r.fleet.Members[at]
	if own := seen[m.Name]; own != nil {
		m = own
	}
	p := place{Member: m, at: at, choice: c, tier: tier, out: run.Out, have: [2]Count{run.Spot, run.OnDemand}, ordinals: run.Ordinals}
	switch since := m.UnreachableSince; {
	case run.Out != "":
		p.frozen = out
	case since.IsZero():
	case r.now.Before(since.Add(patience)):
		p.frozen = grace
	default:
		p.frozen = lost
	}
	return p
}

// take books what the plan uses, so that the next placements see it.
func (pl *planner) take() {
	for i := range pl.places {
		p := &pl.places[i]
		total := 0
		for c := range p.now {
			more := max(p.now[c], p.target[c]) - p.have[c].have()
			if room := &pl.room[p.at][c]; *room != Unbounded {
				*room = max(*room-max(more, 0), 0)
			}
			total += p.target[c] - p.have[c].have()
		}
		pl.load[p.at] += total
		pl.tried[p.at] = pl.tried[p.at] || p.attempt > 0
	}
}

// recheck asks for another plan at a time, unless one is asked for before.
func (pl *planner) recheck(at time.Time) {
	if at.After(pl.now) && (pl.result.Recheck.IsZero() || at.Before(pl.result.Recheck)) {
		pl.result.Recheck = at
	}
}
