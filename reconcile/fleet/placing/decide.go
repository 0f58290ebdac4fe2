package placing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// item is one FleetPlacement in a round: what is known about it, and what is decided.
type item struct {
	object *v1alpha1.FleetPlacement
	target target
	asked  asked
	// stop is why nothing is decided; nil: nothing is in the way.
	stop *stop
	// waits says that nothing is decided in this round: too little is known yet.
	waits bool
	// sights are of the members that matter to it, in the order of their names.
	sights []*sight

	placement fleet.Placement
	result    fleet.Result
	since     map[string]time.Time // members out of reach, and since when
	// sets is what each member is to have now. Members without one are not touched.
	sets map[string]policy.FleetSplit
	// made are the moves of this round.
	made []v1alpha1.Move
}

// stop is why a FleetPlacement is not acted upon, as a condition says it.
type stop struct {
	reason, message string
	// keeps says that what was decided before stays in effect.
	keeps bool
	// waits says that a person wants it so.
	waits bool
}

func (it *item) name() string { return it.object.Namespace + "/" + it.object.Name }

func (it *item) deleting() bool { return it.object.DeletionTimestamp != nil }

// oppose stops all but the oldest of several FleetPlacements for one target.
func oppose(items []*item) {
	order := slices.SortedFunc(slices.Values(items), func(a, b *item) int {
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), strings.Compare(a.name(), b.name()))
	})
	first := map[policy.WorkloadKey]*item{}
	for _, it := range order {
		// One that is paused, say, keeps its workload.
		if it.stop != nil && (!it.stop.keeps || it.target.key == (policy.WorkloadKey{})) {
			continue
		}
		rival := first[it.target.key]
		if rival != nil && it.stop != nil {
			continue
		}
		if rival != nil {
			it.stop = &stop{reason: v1alpha1.ReasonConflict, message: "FleetPlacement " + rival.object.Name + ", which is older, has the same target"}
			continue
		}
		first[it.target.key] = it
	}
}

// decide plans all items in one go, and says what each member is to have.
func decide(items []*item, members []Member, now time.Time) {
	var planned []*item
	var placements []fleet.Placement
	for _, it := range items {
		if it.stop == nil && !it.waits {
			it.prepare(now)
			planned, placements = append(planned, it), append(placements, it.placement)
		}
	}
	for i, result := range fleet.PlanAll(fleetOf(members), placements, now) {
		planned[i].result = result
		planned[i].settle()
	}
}

// fleetOf is the fleet as far as it is the same for all placements: each knows what the members have for its own pods.
func fleetOf(members []Member) *fleet.Fleet {
	f := &fleet.Fleet{Members: make([]fleet.Member, len(members))}
	for i := range members {
		f.Members[i] = fleet.Member{Name: members[i].Name, Spot: fleet.Supply{Room: fleet.Unbounded}, OnDemand: fleet.Supply{Room: fleet.Unbounded}}
	}
	return f
}

// prepare puts together what the plan is made from.
func (it *item) prepare(now time.Time) {
	asked := it.asked.policy
	grace := cmp.Or(asked.Grace, fleet.DefaultGrace)
	it.since = map[string]time.Time{}
	p := fleet.Placement{Name: it.name(), Members: map[string]*fleet.Member{}}
	if moves := it.object.Status.LastMoves; len(moves) > 0 {
		p.LastMove = moves[0].Time.Time
	}
	podStart := time.Duration(0)
	for _, s := range it.sights {
		podStart = max(podStart, s.view.PodStart)
	}
	for _, s := range it.sights {
		since := time.Time{}
		if s.out() == "" {
			since = s.outOfReach(grace, now)
		}
		if !since.IsZero() {
			it.since[s.member.Name] = since
		}
		p.Members[s.member.Name] = s.supply(&it.asked, podStart, since)
		p.Running = append(p.Running, s.running(!since.IsZero(), asked.Replicas))
	}
	if it.deleting() && it.object.Spec.OnDelete == v1alpha1.Gather {
		asked = gathered(asked, it.gatherInto(p.Running))
	}
	p.Policy = asked
	it.placement = p
}

// gathered is the policy by which one member runs everything.
func gathered(p fleet.Policy, into string) fleet.Policy {
	p.Tiers, p.Spread, p.ExtraSpot = []fleet.Tier{{{Member: into}}}, fleet.Spread{}, 0
	return p
}

// gatherInto is the member that is to run everything: the one that spec names if it takes part, or else the one that runs most,
// of the first tier that has any.
func (it *item) gatherInto(running []fleet.Running) string {
	have := map[string]int{}
	for i := range running {
		if r := &running[i]; r.Out == "" && it.since[r.Member].IsZero() {
			have[r.Member] = present(r.Spot) + present(r.OnDemand)
		}
	}
	if _, takesPart := have[it.object.Spec.GatherInto]; takesPart {
		return it.object.Spec.GatherInto
	}
	best := ""
	for _, tier := range it.asked.policy.Tiers {
		for _, choice := range tier {
			if n, takesPart := have[choice.Member]; takesPart && (best == "" || n > have[best]) {
				best = choice.Member
			}
		}
		if best != "" {
			break
		}
	}
	return best
}

// settle says what each member is to have. Members of which nothing is known now keep what was decided for them before.
func (it *item) settle() {
	it.sets = map[string]policy.FleetSplit{}
	wanted := map[string]*fleet.Wanted{}
	for i := range it.result.Members {
		wanted[it.result.Members[i].Member] = &it.result.Members[i]
	}
	for _, s := range it.sights {
		name := s.member.Name
		w := wanted[name]
		switch {
		case s.out() != "" && (s.facts.scaler != "" || !s.known): // somebody else's
		case s.out() != "", !it.since[name].IsZero(), s.view.Paused, w == nil:
			if s.set != nil {
				it.sets[name] = *s.set
			}
		default:
			it.sets[name] = policy.FleetSplit{Replicas: w.SpotNow + w.OnDemandNow, OnDemand: w.OnDemandNow, Exchanges: w.Exchanges}
		}
	}
}

// handedBack reports whether nothing is left to be done for a FleetPlacement that is being deleted.
func (it *item) handedBack() bool {
	return it.object.Spec.OnDelete != v1alpha1.Gather || it.stop != nil || it.ungathered() == ""
}

// ungathered is what is in the way of one member running all replicas; empty: nothing. A member that is out of reach for longer
// than the grace is left behind, but not all of them.
func (it *item) ungathered() string {
	left, reached, gone := "", false, ""
	for _, s := range it.sights {
		name, out, since := s.member.Name, s.out(), it.since[s.member.Name]
		set, ours := it.sets[name]
		switch {
		case !ours: // it has none, or somebody else's
		case out != "":
			left = cmp.Or(left, fmt.Sprintf("member %s: %s", name, out))
		case !since.IsZero():
			gone = cmp.Or(gone, fmt.Sprintf("member %s is unreachable", name))
			if s.last == nil || s.last.State != v1alpha1.MemberLost {
				left = cmp.Or(left, gone)
			}
		default:
			reached = true
			if s.view.Replicas != set.Replicas {
				left = cmp.Or(left, fmt.Sprintf("member %s has %d replicas, and must have %d", name, s.view.Replicas, set.Replicas))
			}
		}
	}
	if !reached {
		return cmp.Or(left, gone)
	}
	if n := len(it.result.Moves) + len(it.result.Later); n > 0 || it.result.Unplaced > 0 {
		left = cmp.Or(left, fmt.Sprintf("%d moves are left, and %d replicas have no place", n, it.result.Unplaced))
	}
	return left
}
