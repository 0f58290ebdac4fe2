package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Explanation says why a plan is as it is.
type Explanation struct {
	Result Result
	// Summary is about the whole fleet, in sentences.
	Summary []string
	// Members are in the order of the result's.
	Members []Why
}

// Why says why a member has as many as the plan gives it.
type Why struct {
	Member string
	// Supply is what the plan knew of its capacity types.
	Supply [2]Supply
	// Place says why this member; Capacity why each capacity type, empty where it has none of it.
	Place    string
	Capacity [2]string
	// Obstacles are what would give it other numbers if it were otherwise.
	Obstacles []Obstacle
}

// Obstacle is one thing that stands in the way of a member. What the plan would give it without was found by planning without it.
type Obstacle struct {
	// Is says what it is, and Change what would have to change.
	Is, Change string
	// Spot and OnDemand are what the member would have then.
	Spot, OnDemand int
}

// maxSupposed bounds how many further plans an explanation makes.
const maxSupposed = 256

// Explain plans the placement of a name together with the others, as [PlanAll] does, and says why its plan is as it is; false: none
// of the placements has that name.
func Explain(f *Fleet, placements []Placement, name string, now time.Time) (Explanation, bool) {
	r, p := roundBefore(f, placements, name, now)
	if p == nil {
		return Explanation{}, false
	}
	pl := newPlanner(r.clone(), p)
	pl.split()
	pl.step()
	pl.explain()
	e := Explanation{Result: pl.result, Summary: pl.summary()}
	left := maxSupposed
	for i := range pl.places {
		at := &pl.places[i]
		why := Why{Member: at.Name, Supply: [2]Supply{at.Spot, at.OnDemand}, Place: pl.result.Members[i].Reason, Capacity: pl.capacityOf(at)}
		for _, s := range pl.supposals(at) {
			if left--; left < 0 {
				break
			}
			if found, differs := r.without(p, at, s); differs {
				why.Obstacles = append(why.Obstacles, found)
			}
		}
		e.Members = append(e.Members, why)
	}
	return e, true
}

// PlanOne plans the placement of a name as [PlanAll] would; false: none of the placements has that name.
func PlanOne(f *Fleet, placements []Placement, name string, now time.Time) (Result, bool) {
	r, p := roundBefore(f, placements, name, now)
	if p == nil {
		return Result{}, false
	}
	return r.plan(p), true
}

// roundBefore is a round in which all placements before the one of a name are planned.
func roundBefore(f *Fleet, placements []Placement, name string, now time.Time) (*round, *Placement) {
	var before []int
	var found *Placement
	for i := range placements {
		switch strings.Compare(placements[i].Name, name) {
		case -1:
			before = append(before, i)
		case 0:
			found = &placements[i]
		}
	}
	if found == nil {
		return nil, nil
	}
	slices.SortStableFunc(before, func(a, b int) int { return strings.Compare(placements[a].Name, placements[b].Name) })
	r := newRound(f, placements, now)
	for _, i := range before {
		r.plan(&placements[i])
	}
	return r, found
}

// clone is a round in which planning changes nothing of this one.
func (r *round) clone() *round {
	other := *r
	other.room, other.tried, other.load = slices.Clone(r.room), slices.Clone(r.tried), slices.Clone(r.load)
	return &other
}

// supposal is a change of what a placement is planned from.
type supposal struct {
	is, change string
	always     bool // said also where the numbers stay
	member     func(m *Member)
	policy     func(p *Policy)
	running    func(r *Running)
}

// without plans the placement with a change, and says what that gives a member. differs: it is worth being said.
func (r *round) without(p *Placement, at *place, s supposal) (o Obstacle, differs bool) {
	other := *p
	other.Policy.Tiers = cloneTiers(p.Policy.Tiers)
	other.Running = slices.Clone(p.Running)
	changed := *at.Member
	if s.member != nil {
		s.member(&changed)
	}
	if s.policy != nil {
		s.policy(&other.Policy)
	}
	for i := range other.Running {
		if other.Running[i].Member == at.Name && s.running != nil {
			s.running(&other.Running[i])
		}
	}
	members := make(map[string]*Member, len(p.Members)+1)
	for name, m := range p.Members {
		members[name] = m
	}
	members[at.Name] = &changed
	other.Members = members
	result := r.clone().plan(&other)
	for i := range result.Members {
		if w := &result.Members[i]; w.Member == at.Name {
			o = Obstacle{Is: s.is, Change: s.change, Spot: w.Spot, OnDemand: w.OnDemand}
			return o, s.always || w.Spot != at.target[Spot] || w.OnDemand != at.target[OnDemand]
		}
	}
	return o, false
}

func cloneTiers(tiers []Tier) []Tier {
	all := slices.Clone(tiers)
	for i := range all {
		all[i] = slices.Clone(all[i])
	}
	return all
}

// supposals are what may stand in the way of a member.
func (pl *planner) supposals(p *place) (all []supposal) {
	add := func(s supposal) { all = append(all, s) }
	switch p.frozen {
	case out:
		add(supposal{is: p.out, change: "its workload must take part there", always: true, running: func(r *Running) { r.Out = "" }})
		return all
	case grace, lost:
		add(supposal{is: "it is unreachable", change: "it must be reachable", always: true, member: func(m *Member) { m.UnreachableSince = time.Time{} }})
		return all
	}
	if p.tier < 0 {
		return nil
	}
	for _, c := range []Capacity{Spot, OnDemand} {
		if s := p.of(c); s.dry() {
			add(supposal{is: c.String() + " has no room for more", change: c.String() + " must have room again", member: func(m *Member) {
				s := m.of(c)
				s.DrySince, s.TryAt, s.Room = time.Time{}, time.Time{}, Unbounded
			}})
		}
	}
	if p.dear() {
		add(supposal{is: "spot is not cheaper than on-demand", change: "spot must be cheaper there", member: func(m *Member) { m.Spot.Price, m.OnDemand.Price = 0, 0 }})
	}
	if most := p.choice.Max; most > 0 && p.total() >= most {
		add(supposal{is: fmt.Sprintf("its maximum is %d", most), change: "its maximum must be higher", policy: func(policy *Policy) { policy.unbind(p.Name) }})
	}
	if p.choice.Min > 0 && p.total() <= p.choice.Min {
		add(supposal{is: fmt.Sprintf("its minimum is %d", p.choice.Min), change: "its minimum must be lower", policy: func(policy *Policy) { policy.release(p.Name) }})
	}
	if percent := pl.policy.Spread.Member; percent > 0 && p.total() >= pl.capMember {
		add(supposal{is: fmt.Sprintf("at most %d %% may be in one member", percent), change: "the spread must allow more in one member",
			policy: func(policy *Policy) { policy.Spread.Member = 0 }})
	}
	if percent := pl.policy.Spread.Domain; percent > 0 && p.Domain != "" && pl.inDomain[pl.domain[p.at]] >= pl.capDomain {
		add(supposal{is: fmt.Sprintf("at most %d %% may be in domain %s", percent, p.Domain), change: "the spread must allow more in one domain",
			policy: func(policy *Policy) { policy.Spread.Domain = 0 }})
	}
	if p.tier > 0 && p.total() == 0 {
		add(supposal{is: fmt.Sprintf("the tiers before tier %d run all replicas that are wanted", p.tier+1), change: "it must be in the first tier",
			policy: func(policy *Policy) { policy.first(p.Name) }})
	}
	return all
}

// each calls f for the choices of a member.
func (p *Policy) each(member string, f func(c *Choice)) {
	for t := range p.Tiers {
		for i := range p.Tiers[t] {
			if p.Tiers[t][i].Member == member {
				f(&p.Tiers[t][i])
			}
		}
	}
}

func (p *Policy) unbind(member string)  { p.each(member, func(c *Choice) { c.Max = 0 }) }
func (p *Policy) release(member string) { p.each(member, func(c *Choice) { c.Min = 0 }) }

// first moves a member to the first tier.
func (p *Policy) first(member string) {
	for t := range p.Tiers {
		for i, c := range p.Tiers[t] {
			if c.Member == member && t > 0 {
				p.Tiers[t] = slices.Delete(p.Tiers[t], i, i+1)
				p.Tiers[0] = append(p.Tiers[0], c)
				return
			}
		}
	}
}

// onDemandAsked is how many of the replicas belong on on-demand, by the floor and the share.
func (p *Policy) onDemandAsked() int { return p.Replicas - p.spotWanted(p.Replicas) }

// planned is how many replicas of the plan are of a capacity type, in members that count.
func (pl *planner) planned(c Capacity) (n int) {
	for i := range pl.places {
		if p := &pl.places[i]; p.frozen == moves || p.frozen == grace {
			n += p.target[c]
		}
	}
	return n
}

// capacityOf says why a member has replicas of each capacity type.
func (pl *planner) capacityOf(p *place) (why [2]string) {
	if p.frozen == out || p.frozen == lost {
		return why
	}
	if n := p.target[Spot]; n > 0 {
		why[Spot] = fmt.Sprintf("%s on spot, which comes before on-demand wherever it has room", count(n, "replica is", "replicas are"))
	}
	if n := p.target[OnDemand]; n > 0 {
		asked := pl.policy.onDemandAsked()
		why[OnDemand] = fmt.Sprintf("%s on on-demand: floor and percentage require %d in the fleet", count(n, "replica is", "replicas are"), asked)
		if excess := pl.planned(OnDemand) - asked; excess > 0 {
			why[OnDemand] += fmt.Sprintf(", and %d more replace spot replicas, for which there is no room", excess)
		}
	}
	return why
}

// summary says what is asked for, and what the plan is.
func (pl *planner) summary() []string {
	asked, floor := pl.policy.Replicas, pl.policy.MinOnDemand
	said := []string{
		fmt.Sprintf("%s asked for: at least %d on on-demand, and up to %d %% on spot.", count(asked, "replica is", "replicas are"), floor, pl.policy.SpotPercentage),
		fmt.Sprintf("The plan has %d on spot and %d on on-demand.", pl.planned(Spot), pl.planned(OnDemand)),
	}
	if excess := pl.planned(OnDemand) - pl.policy.onDemandAsked(); excess > 0 {
		said = append(said, fmt.Sprintf("%s on on-demand because spot has no room for them in any member that may have more.", count(excess, "replica is", "replicas are")))
	}
	if extra := pl.result.Insurance; extra > 0 {
		said = append(said, fmt.Sprintf("%s beyond what is asked for, as insurance; with them replicas are expected to be missing %.3f %% of the time.",
			count(extra, "replica is", "replicas are"), 100*pl.result.Risk))
	}
	for _, c := range pl.result.Conditions {
		said = append(said, string(c.Type)+": "+c.Message+".")
	}
	switch {
	case len(pl.result.Moves) == 0 && len(pl.result.Later) == 0:
		said = append(said, "Everything is where the plan has it.")
	default:
		said = append(said, fmt.Sprintf("%s can be made now, and %s.", count(len(pl.result.Moves), "move"), count(len(pl.result.Later), "waits", "wait")))
	}
	return said
}
