package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// StuckAfter is when something that does not come up no longer counts as being on the move: from then on as many replicas
// as may be moved at a time are tolerated, so that a drought or a broken replica does not stop a workload forever. More of
// them do stop it: healthy replicas are not drained into capacity that does not work.
const StuckAfter = 5 * time.Minute

// Plan decides what a workload needs now. It has no effects, and the same input has the same result: it may be asked
// again at any time, and when everything is as it should be, it wants nothing.
//
// What is urgent comes first: pods of nodes that go, and pods that wait for capacity that has no room. Then releases are ended
// whose replacements are ready, and then replicas are moved for the mix, and off nodes that may go. Of a policy that does not say
// where replicas belong, only the first two are done.
func Plan(o Observed, p policy.Policy, s Settings, now time.Time) Result {
	pl := newPlanner(&o, &p, s, now)
	pl.fillNumbers()
	pl.noteContradiction()
	pl.noteProblems()
	switch {
	case !p.Valid():
		pl.replaceUrgent()
		pl.finishReleases()
		pl.state(StateInvalid, "%s", problems(p.Problems))
		pl.settle()
		return pl.result
	case !p.Managed():
		pl.finishReleases()
		pl.state(StateUnmanaged, "no policy value is set on the workload, its namespace or in the configuration: replicas are counted and never moved")
	default:
		pl.replaceUrgent()
		pl.finishReleases()
		pl.move()
		pl.noteUrgent()
		pl.noteStrategy()
		pl.noteProtection()
		pl.noteSpread()
	}
	pl.assignSlots()
	pl.settle()
	return pl.result
}

// Finish plans the end of the releases of a workload that is not enabled any more, or is gone: then there are no owners, and
// all pods that were released go. It moves nothing else.
func Finish(o Observed, s Settings, now time.Time) Result {
	pl := newPlanner(&o, &policy.Policy{}, s, now)
	pl.fillNumbers()
	pl.finishReleases()
	pl.state(StateUnmanaged, "the workload is not enabled: moves in progress are completed")
	pl.settle()
	return pl.result
}

// planner holds what one plan is made from. Its slices are its own, the pods in them are not.
type planner struct {
	*Observed
	policy   *policy.Policy
	settings Settings
	mix      policy.Mix
	now      time.Time

	owners  []ownerPods
	orphans []*Pod    // released pods whose owner is gone
	room    []int     // what each budget still allows
	last    time.Time // when the last batch of moves was
	floor   floor
	excess  int // replicas of one type above what is wanted
	from    capacity.Type
	// advised counts the alive pods that an advisory notice concerns.
	advised int
	moving  map[*Pod]struct{}      // pods that this plan takes away
	held    map[types.UID]WaitKind // pods that should go and wait
	looked  int                    // domains at which heldBack has looked
	urgent  tallyOfUrgent
	result  Result
}

// ownerPods is an owner with its pods; finished pods are in none of the lists.
type ownerPods struct {
	*Owner
	alive       []*Pod // supply, in the order of their slots; see byAge for equal ones
	interrupted []*Pod // alive on nodes that go for certain
	released    []*Pod // alive, and not the owner's any more
	dying       []*Pod // being deleted, or evicted by us

	victims map[capacity.Type]orderOfVictims // as far as they were asked for; see victimOrder

	parked int // released pods that only wait for the disruption window
	stuck  int // released pods that stand in for replacements that do not come up
}

func newPlanner(o *Observed, p *policy.Policy, s Settings, now time.Time) *planner {
	pl := &planner{Observed: o, policy: p, settings: s, mix: p.Mix(), now: now, owners: make([]ownerPods, len(o.Owners))}
	index := make(map[types.UID]int, len(o.Owners))
	for i := range o.Owners {
		index[o.Owners[i].UID] = i
		pl.owners[i].Owner = &o.Owners[i]
		if len(o.Owners) == 1 {
			pl.owners[i].alive = make([]*Pod, 0, len(o.Pods))
		}
	}
	var owner types.UID // of the pod before, whose index is at: most pods have the same
	at, ours := index[owner]
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Owner != owner {
			owner = pod.Owner
			at, ours = index[owner]
		}
		switch {
		case pod.Finished:
		case pod.Released != nil && !pod.Alive(): // its replacement is there, and nobody waits for its end
		case pod.Released != nil && !ours:
			pl.orphans = append(pl.orphans, pod)
		case !ours:
		case !pod.Alive():
			pl.owners[at].dying = append(pl.owners[at].dying, pod)
		case pod.Released != nil:
			pl.owners[at].released = append(pl.owners[at].released, pod)
		case pod.Leaving():
			pl.owners[at].interrupted = append(pl.owners[at].interrupted, pod)
		default:
			pl.owners[at].alive = append(pl.owners[at].alive, pod)
		}
	}
	for i := range pl.owners {
		if alive := pl.owners[i].alive; !slices.IsSortedFunc(alive, bySlot) {
			slices.SortFunc(alive, bySlot)
		}
	}
	for i := range o.Budgets {
		pl.room = append(pl.room, o.Budgets[i].Allowed)
	}
	pl.last = pl.lastMove()
	pl.countFloor()
	pl.countAdvised()
	return pl
}

// fillNumbers fills in the numbers.
func (pl *planner) fillNumbers() {
	r := &pl.result
	r.SpotWanted, r.OnDemandWanted = pl.mix.Spot(pl.Replicas), pl.mix.OnDemand(pl.Replicas)
	r.Released, r.Advised = len(pl.orphans), pl.advised
	for i := range pl.owners {
		o := &pl.owners[i]
		for _, pod := range o.alive {
			switch pod.Capacity {
			case capacity.Spot:
				r.SpotActual++
			case capacity.OnDemand:
				r.OnDemandActual++
			default:
				r.UnknownActual++
			}
			if !pod.Ready {
				r.Pending++
			}
		}
		r.Interrupted += len(o.interrupted)
		r.Released += len(o.released)
	}
}

// movingOf counts the replicas of an owner that we took away or let go, and whose replacements are not ready yet.
func (pl *planner) movingOf(o *ownerPods) int {
	coming := 0
	for _, pod := range o.alive {
		if pod.Moved && !pl.available(pod) && (pod.Ready || pl.now.Before(pod.UnreadySince.Add(StuckAfter))) {
			coming++
		}
	}
	missing := max(o.Replicas-len(o.alive)-len(o.interrupted), 0)
	return max(o.standIns()+min(len(o.dying), missing), coming)
}

// settle brings state and actions together, and takes back what the workload's mode forbids.
func (pl *planner) settle() {
	r := &pl.result
	for i := range pl.owners {
		r.Moving += pl.movingOf(&pl.owners[i])
	}
	wanted := len(r.Evictions) + len(r.Releases)
	switch {
	case pl.settings.ReadOnly:
		pl.settleReadOnly(wanted)
	case pl.settings.Paused:
		pl.settlePaused(wanted)
	case r.State == StateConverged && len(r.Assignments) > 0:
		pl.state(StateMoving, "every replica is where it belongs; %s a slot", phrase.Count(len(r.Assignments), "pod gets", "pods get"))
	}
	pl.recheckDoubts()
	pl.notePods()
}

// recheckDoubts plans again when what nobody answered no longer counts: in whatever mode, for the slots are for new pods too.
// A time that has passed since the pods were observed is one at which to look at once.
func (pl *planner) recheckDoubts() {
	for i := range pl.Owners {
		if until := pl.Owners[i].Accounting.UnansweredUntil; !until.IsZero() {
			pl.recheck(when.Later(until, pl.now.Add(time.Millisecond)))
		}
	}
}

func (pl *planner) settleReadOnly(wanted int) {
	r := &pl.result
	r.Assignments, r.Releases, r.Evictions = nil, nil, nil
	by := pl.settings.ReadOnlyBy
	if by == "" {
		by = "the hub"
	}
	switch {
	case pl.excess > 0 && r.State != StateUnmanaged:
		pl.state(StateReadOnly, "%s should move from %s to %s; %s is in read-only mode", phrase.Count(pl.excess, "replica"), pl.from, pl.from.Other(), by)
	case wanted > 0:
		pl.state(StateReadOnly, "%s should be replaced; %s is in read-only mode", phrase.Count(wanted, "pod"), by)
	default:
		return
	}
	r.Recheck = time.Time{}
	pl.wait(Wait{Kind: WaitReadOnly, Subject: by, Replicas: max(pl.excess, wanted)}, "%s is in read-only mode", by)
}

func (pl *planner) settlePaused(wanted int) {
	r, by := &pl.result, cmp.Or(pl.settings.PausedBy, "the workload")
	r.Releases, r.Evictions = nil, nil
	if todo := max(pl.excess, wanted); todo > 0 {
		r.Recheck = time.Time{}
		pl.state(StateWaiting, "%s should move; %s is paused", phrase.Count(todo, "replica"), by)
		pl.wait(Wait{Kind: WaitPaused, Replicas: todo}, "%s is paused", by)
		return
	}
	pl.note("%s is paused: the workload has nothing to move", by)
}

// sole returns the only owner that has or wants pods, nil when there are several, or none.
func (pl *planner) sole() *ownerPods {
	var sole *ownerPods
	for i := range pl.owners {
		if o := &pl.owners[i]; o.Replicas > 0 || len(o.alive)+len(o.interrupted) > 0 {
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
	ordinal, ok := phrase.Ordinal(pod.Name)
	if !ok || ordinal < o.Start {
		return NoSlot
	}
	return ordinal - o.Start
}

// bySlot orders pods by slot, the older first where several have the same.
func bySlot(a, b *Pod) int {
	if order := cmp.Compare(a.Slot, b.Slot); order != 0 {
		return order
	}
	return ByAge(a, b)
}

// ByAge orders pods by creation, the older first.
func ByAge(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
