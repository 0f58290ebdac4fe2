package placing

import (
	"cmp"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// sight is what is known about a placement's workload in one member.
type sight struct {
	member *Member
	// view is what the member's cache shows; known is false where it shows nothing.
	view  spot.FleetView
	known bool
	facts facts
	// last is what the status says of the member, nil if nothing; set is what was decided for it, nil if nothing was.
	last *v1alpha1.MemberStatus
	set  *policy.FleetSplit
	// ordered is the most that was set there until lately; see orders.
	ordered int
	// lostSight is since when a member that was seen before shows nothing; zero: it does, or never did.
	lostSight time.Time
	// acts says that this replica acts on the member.
	acts bool
	// failed is why the last write to the member failed, and refused why the member is not counted on for it; empty: neither.
	failed, refused string
	// dry is what is remembered of spot that had no room.
	dry dryness
	// life is the predicted lifetime of spot there.
	life time.Duration
	// held is what that is predicted from.
	held v1alpha1.Held
}

// facts are what was asked of a member itself.
type facts struct {
	asked    time.Time // zero: it was not asked yet
	problem  string    // why that is not known; empty: it is
	exists   bool
	disabled string // why the workload does not take part: its labels; empty: they are there
	scaler   string // what else scales it there; empty: nothing does
	selector string // of its pods
}

// dryness remembers that spot had no room for a workload's pods where none of them is left that could show it.
type dryness struct {
	since, last time.Time
	ready       int // that many were ready in spite of it; more say that there is room
}

// After a loss of replicas that served, others that wait for a node without a sign of one show within suspectAfter that there is no
// room: spot placement there gives them longer, but a replica on spot elsewhere costs little. Later than suspectFor it is no loss any more.
const (
	suspectAfter = 10 * time.Second
	suspectFor   = 5 * time.Minute
)

// dryTryAfter is how long spot that had no room is left alone where nothing is looking out for room again.
const dryTryAfter = 2 * time.Minute

// see brings the memory up to date.
func (d dryness) see(v *spot.FleetView, known bool, lost, now time.Time) dryness {
	switch {
	case !known:
		return d
	case v.SpotDrySince.IsZero() && !v.SpotUnboundSince.IsZero() && now.Sub(v.SpotUnboundSince) >= suspectAfter && !lost.IsZero() && now.Sub(lost) < suspectFor:
		return dryness{since: v.SpotUnboundSince, last: now, ready: v.Spot.Ready}
	case !v.SpotDrySince.IsZero():
		return dryness{since: v.SpotDrySince, last: now}
	case v.SpotProbing || v.Spot.Ready > d.ready:
		return dryness{}
	}
	// Of replicas that are no more, those that come in their place and are ready have found room.
	d.ready = min(d.ready, v.Spot.Ready+v.Spot.Starting+v.Spot.Waiting)
	return d
}

// defaultStart is how long a node takes to come where none was seen to, and defaultNotice how long before it goes spot capacity
// says so.
const (
	defaultStart  = time.Minute
	defaultNotice = 30 * time.Second
)

// out is why the member's workload takes no part; empty: it does, or nobody knows yet.
func (s *sight) out() string {
	switch {
	case !s.member.Reachable:
		return ""
	case s.member.ReadOnly:
		return "the member is in read-only mode"
	case s.facts.scaler != "":
		return s.facts.scaler + " scales it there"
	case !s.known && !s.facts.asked.IsZero() && s.facts.problem == "" && !s.facts.exists:
		return "the workload does not exist there"
	case !s.known && s.facts.disabled != "":
		return s.facts.disabled
	case s.known && s.view.ReadOnly:
		return "it is in read-only mode there"
	case !s.known && s.set == nil:
		return cmp.Or(s.facts.problem, "placement has not planned it yet")
	case s.set == nil && !s.facts.exists:
		return cmp.Or(s.facts.problem, "not checked yet whether something else scales it there")
	case s.facts.asked.IsZero() && s.last != nil && s.last.State == v1alpha1.MemberOut:
		return s.last.Reason
	case s.refused != "":
		return s.refused
	}
	return ""
}

// outOfReach is since when nothing can be done in the member; zero: something can.
func (s *sight) outOfReach(grace time.Duration, now time.Time) time.Time {
	since := time.Time{}
	switch {
	case !s.member.Reachable:
		since = s.member.Since
	case !s.known && s.set != nil:
		since = s.lostSight
	default:
		return since
	}
	if since.IsZero() {
		since = now
	}
	if s.last != nil && s.last.State == v1alpha1.MemberLost && now.Sub(since) < grace {
		return since.Add(-grace) // it was given up before this process began
	}
	return since
}

// running is what the member runs, as the plan is to see it. No more is believed of a member than the hub has ordered: what one runs
// beyond that, or says it does, replaces nothing that others run or are to run.
func (s *sight) running(gone bool, replicas int) fleet.Running {
	r := fleet.Running{Member: s.member.Name, Out: s.out()}
	switch {
	case gone:
		if s.last != nil {
			r.Spot, r.OnDemand = remembered(s.last, s.set)
		}
	case s.known:
		r.Spot, r.OnDemand = counts(&s.view, s.set, s.limit(replicas), !s.dry.since.IsZero())
		r.Ordinals = ordinals(&s.view, present(r.Spot)+present(r.OnDemand), !s.dry.since.IsZero())
	}
	return r
}

// limit is how many replicas are believed of a member: those that are set, or were until lately and may still be kept. Where nothing
// was set yet they are adopted, up to as many as the fleet is to have.
func (s *sight) limit(replicas int) int {
	n := min(max(s.view.Replicas, 0), max(replicas, 0))
	if s.set != nil {
		n = max(s.set.Replicas, min(s.view.Replicas, s.ordered))
	}
	if s.view.Ordinals != nil { // each is one in the memory of the hub
		n = min(n, policy.MaxSlot)
	}
	return n
}

// remembered is what counts of a member that is out of reach. Where it was not told how many to have, it is as many as were planned. What
// was not planned on on-demand counts as spot: the floor of the others does not follow from what it said of its nodes.
func remembered(last *v1alpha1.MemberStatus, set *policy.FleetSplit) (onSpot, onDemand fleet.Count) {
	onSpot, onDemand = countSaid(&last.Spot), countSaid(&last.OnDemand)
	floor := int(last.OnDemand.Wanted)
	for _, stage := range [][2]*int{{&onDemand.Starting, &onSpot.Starting}, {&onDemand.Ready, &onSpot.Ready}} {
		n := min(max(present(onDemand)-floor, 0), *stage[0])
		*stage[0], *stage[1] = *stage[0]-n, *stage[1]+n
	}
	limit := int(last.Spot.Wanted) + floor
	if set != nil {
		limit = set.Replicas
	}
	shed(&onSpot, &onDemand, floor, limit)
	return onSpot, onDemand
}

func countSaid(c *v1alpha1.Counts) fleet.Count {
	return fleet.Count{Ready: int(c.Ready), Starting: int(max(c.Running-c.Ready, 0))}
}

// counts are the replicas of both types, up to the limit: the pods that are there, those that were asked for and are not there yet, and
// without those that are about to go because the workload has shrunk, or is to.
func counts(v *spot.FleetView, set *policy.FleetSplit, limit int, dry bool) (onSpot, onDemand fleet.Count) {
	onSpot, onDemand = countOf(v.Spot), countOf(v.OnDemand)
	if dry {
		onSpot.Waiting, onSpot.Starting = onSpot.Waiting+onSpot.Starting, 0
	}
	floor := 0
	if set != nil {
		floor = set.OnDemand
	}
	leaveOrdinals(v, limit, &onSpot, &onDemand)
	if missing := limit - present(onSpot) - present(onDemand); missing > 0 {
		onDemands := min(max(floor-present(onDemand), 0), missing)
		onDemand.Starting += onDemands
		if dry {
			onSpot.Waiting += missing - onDemands
		} else {
			onSpot.Starting += missing - onDemands
		}
	}
	shed(&onSpot, &onDemand, floor, limit)
	return onSpot, onDemand
}

// shed counts as leaving what is beyond a limit: first what is on-demand and not of the floor.
func shed(onSpot, onDemand *fleet.Count, floor, limit int) {
	surplus := present(*onSpot) + present(*onDemand) - limit
	if surplus <= 0 {
		return
	}
	fromOnDemand := min(max(present(*onDemand)-min(floor, limit), 0), surplus)
	leave(onDemand, fromOnDemand)
	leave(onSpot, surplus-fromOnDemand)
}

// stages of replicas, as the plan names them.
var stages = [...]fleet.Stage{spot.FleetGone: fleet.Gone, spot.FleetWaiting: fleet.Waiting, spot.FleetStarting: fleet.Starting, spot.FleetReady: fleet.Ready}

// ordinals are the first n replicas of a StatefulSet, as the plan is to see them. Nil: it is none.
func ordinals(v *spot.FleetView, n int, dry bool) []fleet.Ordinal {
	if v.Ordinals == nil {
		return nil
	}
	all := make([]fleet.Ordinal, n)
	for _, o := range v.Ordinals {
		if o.Number >= n || o.State == spot.FleetGone {
			continue
		}
		at := fleet.Ordinal{Capacity: fleet.Spot, Stage: stages[o.State]}
		if o.OnDemand {
			at.Capacity = fleet.OnDemand
		} else if dry && at.Stage == fleet.Starting {
			at.Stage = fleet.Waiting
		}
		all[o.Number] = at
	}
	return all
}

func countOf(c spot.FleetCount) fleet.Count {
	return fleet.Count{Ready: c.Ready, Starting: c.Starting, Waiting: c.Waiting, Leaving: c.Leaving}
}

func present(c fleet.Count) int { return c.Ready + c.Starting + c.Waiting }

// leave counts n replicas as leaving: Kubernetes takes those first that have no node, and then those that are not ready.
func leave(c *fleet.Count, n int) {
	for _, from := range []*int{&c.Waiting, &c.Starting, &c.Ready} {
		some := min(*from, n)
		*from -= some
		c.Leaving += some
		n -= some
	}
}

// leaveOrdinals counts replicas of a StatefulSet as leaving that are beyond a limit.
func leaveOrdinals(v *spot.FleetView, limit int, onSpot, onDemand *fleet.Count) {
	for _, o := range v.Ordinals {
		if o.Number < limit {
			return
		}
		c := onSpot
		if o.OnDemand {
			c = onDemand
		}
		if n := [...]*int{spot.FleetWaiting: &c.Waiting, spot.FleetStarting: &c.Starting, spot.FleetReady: &c.Ready}[o.State]; n != nil && *n > 0 {
			*n--
			c.Leaving++
		}
	}
}

// supply is what the plan is to know of the member for this placement's pods, which take so long elsewhere to be ready on a node.
func (s *sight) supply(a *asked, elsewhere time.Duration, since time.Time) *fleet.Member {
	prices := a.prices[s.member.Name]
	start := cmp.Or(s.view.NodeStart, defaultStart) + cmp.Or(s.view.PodStart, elsewhere)
	m := &fleet.Member{
		Name: s.member.Name, Domain: a.domains[s.member.Name], UnreachableSince: since,
		Spot:     fleet.Supply{Room: fleet.Unbounded, Price: prices[fleet.Spot], Start: start, Life: s.life, Notice: defaultNotice, Assured: true},
		OnDemand: fleet.Supply{Room: fleet.Unbounded, Price: prices[fleet.OnDemand], Start: start, DrySince: s.view.OnDemandDrySince},
	}
	switch {
	case !s.dry.since.IsZero():
		m.Spot.DrySince, m.Spot.Assured = s.dry.since, false
		if s.view.SpotDrySince.IsZero() { // else a probe finds out
			m.Spot.TryAt = s.dry.last.Add(dryTryAfter)
		}
	case s.view.SpotProbing:
		m.Spot.Room, m.Spot.Assured = max(1-s.view.Spot.Starting-s.view.Spot.Waiting, 0), false
	}
	if s.member.Cordoned {
		m.Spot.Room, m.OnDemand.Room, m.Spot.Assured = 0, 0, false
	}
	return m
}
