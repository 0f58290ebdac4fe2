package placing

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// keptMoves is how many moves the status lists.
const keptMoves = 10

// status is what the FleetPlacement says of itself after a round.
func (it *item) status(now time.Time) v1alpha1.FleetPlacementStatus {
	before := &it.object.Status
	s := v1alpha1.FleetPlacementStatus{LastMoves: slices.Clone(before.LastMoves), Selector: before.Selector}
	s.ObservedGeneration, s.Conditions = it.object.Generation, before.DeepCopy().Conditions
	s.LastHandledRequest = it.object.Annotations[reconcile.AnnotationRequestedAt]
	switch {
	case it.stop != nil && it.stop.keeps:
		s = *before.DeepCopy()
		s.ObservedGeneration = it.object.Generation
	case it.stop == nil:
		s.Insurance, s.Unplaced = narrow(it.result.Insurance), narrow(it.result.Unplaced)
		s.Members = it.members(now)
		for i := range s.Members {
			m := &s.Members[i]
			if m.State != v1alpha1.MemberOut && m.State != v1alpha1.MemberLost {
				add(&s.Spot, &m.Spot)
				add(&s.OnDemand, &m.OnDemand)
			}
		}
		s.Replicas, s.ReadyReplicas = sum(s.Spot.Running, s.OnDemand.Running), sum(s.Spot.Ready, s.OnDemand.Ready)
		s.Selector = it.selector()
		it.made = moves(before.Members, s.Members, now)
		s.LastMoves = append(slices.Clone(it.made), before.LastMoves...)
		s.LastMoves = slices.Clip(s.LastMoves[:min(len(s.LastMoves), keptMoves)])
	}
	it.conditions(&s, now)
	full.bound(&s)
	return s
}

func add(to, c *v1alpha1.Counts) {
	to.Wanted, to.Set, to.Running, to.Ready = sum(to.Wanted, c.Wanted), sum(to.Set, c.Set), sum(to.Running, c.Running), sum(to.Ready, c.Ready)
}

// narrow is a number as the status has it: one that is too large for it is the largest there is.
func narrow(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

func sum(a, b int32) int32 { return narrow(int(a) + int(b)) }

// selector of the pods: that of the first member that shows it. An earlier one stays while none does.
func (it *item) selector() string {
	for _, s := range it.sights {
		if s.facts.selector != "" {
			return s.facts.selector
		}
	}
	return it.object.Status.Selector
}

// members says what there is in each member of the plan, in its order.
func (it *item) members(now time.Time) []v1alpha1.MemberStatus {
	tiers := map[string]int32{}
	for t, tier := range it.asked.policy.Tiers {
		for _, choice := range tier {
			tiers[choice.Member] = int32(t) + 1
		}
	}
	sights := map[string]*sight{}
	running := map[string]*fleet.Running{}
	for i, s := range it.sights {
		sights[s.member.Name], running[s.member.Name] = s, &it.placement.Running[i]
	}
	all := make([]v1alpha1.MemberStatus, 0, len(it.result.Members))
	for i := range it.result.Members {
		w := &it.result.Members[i]
		s, r := sights[w.Member], running[w.Member]
		m := v1alpha1.MemberStatus{Name: w.Member, Tier: tiers[w.Member], Reason: w.Reason, SpotHeld: s.held}
		m.Spot, m.OnDemand = countsOf(&r.Spot, w.Spot), countsOf(&r.OnDemand, w.OnDemand)
		if set, ours := it.sets[w.Member]; ours {
			m.OnDemand.Set, m.Spot.Set = narrow(set.OnDemand), narrow(set.Replicas-set.OnDemand)
		}
		m.State = it.memberState(s, &m, now)
		all = append(all, m)
	}
	return all
}

func countsOf(c *fleet.Count, wanted int) v1alpha1.Counts {
	return v1alpha1.Counts{Wanted: narrow(wanted), Running: narrow(present(*c)), Ready: narrow(c.Ready)}
}

func (it *item) memberState(s *sight, m *v1alpha1.MemberStatus, now time.Time) v1alpha1.MemberState {
	since, gone := it.since[s.member.Name]
	grace := it.asked.policy.Grace
	if grace <= 0 {
		grace = fleet.DefaultGrace
	}
	switch {
	case s.out() != "":
		return v1alpha1.MemberOut
	case gone && now.Before(since.Add(grace)):
		return v1alpha1.MemberUnreachable
	case gone:
		return v1alpha1.MemberLost
	case atRest(&m.Spot) && atRest(&m.OnDemand) && s.view.Replicas == int(m.Spot.Set)+int(m.OnDemand.Set):
		return v1alpha1.MemberPlaced
	}
	return v1alpha1.MemberMoving
}

func atRest(c *v1alpha1.Counts) bool {
	return c.Wanted == c.Set && c.Set == c.Running && c.Running == c.Ready
}

// moves are the changes of what members are to have.
func moves(before, now []v1alpha1.MemberStatus, at time.Time) (all []v1alpha1.Move) {
	was := map[string]*v1alpha1.MemberStatus{}
	for i := range before {
		was[before[i].Name] = &before[i]
	}
	for i := range now {
		m := &now[i]
		old := was[m.Name]
		if old == nil {
			old = &v1alpha1.MemberStatus{Spot: v1alpha1.Counts{Set: m.Spot.Running}, OnDemand: v1alpha1.Counts{Set: m.OnDemand.Running}}
		}
		if m.State == v1alpha1.MemberOut {
			continue
		}
		for _, c := range []struct {
			capacity fleet.Capacity
			by       int32
		}{{fleet.Spot, m.Spot.Set - old.Spot.Set}, {fleet.OnDemand, m.OnDemand.Set - old.OnDemand.Set}} {
			if c.by != 0 {
				all = append(all, v1alpha1.Move{Time: metav1.NewTime(at.Truncate(time.Second)), Member: m.Name, Capacity: c.capacity.String(), By: c.by, Reason: m.Reason})
			}
		}
	}
	return all
}

// setOf is what a status says that was decided for a member; nil: nothing was.
func setOf(m *v1alpha1.MemberStatus) *policy.FleetSplit {
	if m == nil || (m.State == v1alpha1.MemberOut && m.Spot.Set == 0 && m.OnDemand.Set == 0) {
		return nil
	}
	return &policy.FleetSplit{Replicas: int(m.Spot.Set) + int(m.OnDemand.Set), OnDemand: int(m.OnDemand.Set)}
}
