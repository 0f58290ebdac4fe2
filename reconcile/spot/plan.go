package spot

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// StuckAfter is when something that does not come up no longer counts as being on the move: from then on as many replicas
// as may be moved at a time are tolerated, so that a drought or a broken replica does not stop a workload for ever. More of
// them do stop it: healthy replicas are not drained into capacity that does not work.
const StuckAfter = 5 * time.Minute

// Plan decides what a workload needs now. It has no effects, and the same input has the same result: it may be asked
// again at any time, and when everything is as it should be, it wants nothing.
func Plan(o Observed, p Policy, s Settings, now time.Time) PlanResult {
	pl := newPlanner(&o, &p, s, now)
	pl.tell()
	switch {
	case !p.Valid():
		pl.state(StateInvalid, "%s", problems(p.Problems))
		return pl.result
	case !p.Managed():
		pl.state(StateUnmanaged, "no policy value is set on the workload, its namespace or in the configuration: replicas are counted and never moved")
	default:
		pl.move()
	}
	pl.stamp()
	pl.settle()
	return pl.result
}

// planner holds what one plan is made from. Its slices are its own, the pods in them are not.
type planner struct {
	*Observed
	policy   *Policy
	settings Settings
	mix      Mix
	now      time.Time

	owners []ownerPods
	excess int      // replicas of one type above what is wanted
	from   Capacity // that type
	moving map[types.UID]struct{}
	result PlanResult
}

// ownerPods is an owner with its pods.
type ownerPods struct {
	*Owner
	alive []*Pod // in the order of their slots; see byAge for equal ones
	dying []*Pod // being deleted, or evicted by us; finished pods are in neither
}

func newPlanner(o *Observed, p *Policy, s Settings, now time.Time) *planner {
	pl := &planner{Observed: o, policy: p, settings: s, mix: p.Mix(), now: now, moving: map[types.UID]struct{}{}}
	index := make(map[types.UID]int, len(o.Owners))
	for i := range o.Owners {
		index[o.Owners[i].UID] = i
		pl.owners = append(pl.owners, ownerPods{Owner: &o.Owners[i]})
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		at, ours := index[pod.Owner]
		switch {
		case !ours || pod.Finished:
		case pod.Alive():
			pl.owners[at].alive = append(pl.owners[at].alive, pod)
		default:
			pl.owners[at].dying = append(pl.owners[at].dying, pod)
		}
	}
	for i := range pl.owners {
		slices.SortFunc(pl.owners[i].alive, bySlot)
	}
	return pl
}

// tell fills in the numbers.
func (pl *planner) tell() {
	pl.result.SpotWanted, pl.result.OnDemandWanted = pl.mix.Spot(pl.Replicas), pl.mix.OnDemand(pl.Replicas)
	for i := range pl.owners {
		for _, pod := range pl.owners[i].alive {
			switch pod.Capacity {
			case Spot:
				pl.result.SpotActual++
			case OnDemand:
				pl.result.OnDemandActual++
			default:
				pl.result.UnknownActual++
			}
			if !pod.Ready {
				pl.result.Pending++
			}
		}
	}
}

// settle brings state and actions together, and takes back what read-only mode forbids.
func (pl *planner) settle() {
	r := &pl.result
	if !pl.settings.ReadOnly {
		if r.State == StateConverged && len(r.Stamps) > 0 {
			pl.state(StateMoving, "every replica is where it belongs; %s a slot", count(len(r.Stamps), "pod gets", "pods get"))
		}
		return
	}
	r.Stamps, r.Evictions = nil, nil
	if pl.excess > 0 && r.State != StateUnmanaged {
		r.Recheck = time.Time{}
		pl.state(StateReadOnly, "%s should move from %s to %s; the hub is in read-only mode", count(pl.excess, "replica"), pl.from, pl.from.Other())
	}
}

// sole returns the only owner that has or wants pods, nil when there are several, or none.
func (pl *planner) sole() *ownerPods {
	var sole *ownerPods
	for i := range pl.owners {
		if o := &pl.owners[i]; o.Replicas > 0 || len(o.alive) > 0 {
			if sole != nil {
				return nil
			}
			sole = o
		}
	}
	return sole
}

// slotOf returns the slot that a pod holds: by its label or, of a StatefulSet, by its name.
func (pl *planner) slotOf(o *ownerPods, pod *Pod) int {
	if !pl.Ordinals {
		return pod.Slot
	}
	ordinal, ok := OrdinalOf(pod.Name)
	if !ok || ordinal < o.Start {
		return NoSlot
	}
	return ordinal - o.Start
}

// bySlot orders pods by slot, the older first where several have the same.
func bySlot(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Slot, b.Slot), byAge(a, b))
}

// byAge orders pods by creation, the older first.
func byAge(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
