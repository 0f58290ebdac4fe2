package plan

import (
	"slices"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// assignSlots gives every pod that stays a slot of its own, of its own capacity type as far as there is one. That fixes
// duplicates, gaps and pods without slots, and leaves the excess, and only the excess, on slots of the other type.
func (pl *planner) assignSlots() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if pl.Ordinals {
			pl.assignOrdinals(o)
		} else if len(o.alive) <= o.Replicas && pl.unexplained(o) == 0 {
			// Else pods are about to go, and giving them better slots would only change which.
			pl.assign(o)
		}
	}
	pl.noteCosts()
}

func (pl *planner) assignOrdinals(o *ownerPods) {
	for _, pod := range o.alive {
		if slot := pl.slotOf(o, pod); slot != NoSlot && slot != pod.Slot {
			pl.assignSlot(pod, slot)
		}
	}
}

// assign decides the slots of a ReplicaSet's pods, with as few changes as possible:
//
//  1. Who stays and has a slot of its own type keeps it; of several on one slot, the oldest.
//  2. Who stays and has none gets the lowest that is free, slots that the rest holds last.
//  3. The rest, which is the excess and pods of unknown type, keep their slots as far as nobody needs them.
//
// There are enough slots: alive pods and promised slots are no more than the replicas, for nothing is unexplained.
func (pl *planner) assign(o *ownerPods) {
	n := pl.slotsOf(o)
	t := newTable(pl.mix, min(n, policy.MaxSlot), o.alive) // replicas that nobody can create take no memory
	for _, r := range pl.promised(o) {
		t.take(r.Slot)
	}
	rest := pl.excessOf(o, n)
	var stay, leave []int
	for at, pod := range o.alive {
		if rest[at] || (pod.Capacity == capacity.Unknown && pl.mix.Managed) {
			leave = append(leave, at)
		} else if !t.keep(at) {
			stay = append(stay, at)
		}
	}
	t.settle(append(leave, t.fill(stay, leave)...))
	if n == o.Replicas {
		pl.evenOut(o, t)
	} else {
		t.beyond(n)
		pl.interruptedGoFirst(o, t)
	}
	changed := 0
	for at, pod := range o.alive {
		if int(t.slots[at]) != pod.Slot {
			changed++
		}
	}
	pl.result.Assignments = slices.Grow(pl.result.Assignments, changed)
	for at, pod := range o.alive {
		if slot := int(t.slots[at]); slot != NoSlot && !pl.going(pod) {
			pl.assignSlot(pod, slot)
		}
	}
}

// excessOf returns for each alive pod of an owner whether it goes by this plan, or is too many of its type beside those, in the
// order in which they would be moved. n is how many replicas there are to be.
func (pl *planner) excessOf(o *ownerPods, n int) []bool {
	excess := make([]bool, len(o.alive))
	if !pl.mix.Managed {
		return excess
	}
	var stay capacity.Tally
	for at, pod := range o.alive {
		if pl.going(pod) {
			excess[at] = true
		} else {
			stay.Add(pod.Capacity, 1)
		}
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if over := stay.Of(capacityType) - pl.mix.Wanted(capacityType, n); over > 0 {
			for _, at := range pl.victimOrder(o, capacityType)[:over] {
				excess[at] = true
			}
		}
	}
	return excess
}

// assignSlot writes a slot, and its deletion cost with it, where they differ from what the pod has. A cost that is not of
// our making stays. A workload without a policy has no order in which to shrink.
func (pl *planner) assignSlot(pod *Pod, slot int) {
	s := Assignment{Pod: pod.UID, Name: pod.Name, Slot: slot}
	has := pod.DeletionCost
	if !pl.Ordinals && ((has.Own(pod.Slot) && has.Number() != pl.mix.CostOf(slot)) || (!has.IsSet() && pl.mix.Managed)) {
		s.DeletionCost = pl.mix.Cost(slot)
	}
	if slot != pod.Slot || s.DeletionCost != "" {
		pl.result.Assignments = append(pl.result.Assignments, s)
	}
}

// noteCosts says what a deletion cost of the user's own costs.
func (pl *planner) noteCosts() {
	if pl.Ordinals || !pl.mix.Managed {
		return
	}
	own := 0
	for i := range pl.owners {
		for _, pod := range pl.owners[i].alive {
			if pod.DeletionCost.IsSet() && !pod.DeletionCost.Own(pod.Slot) {
				own++
			}
		}
	}
	if own > 0 {
		pl.note("%s a deletion cost that Plimsoll did not set and does not change: it decides, and not the slot, which of them a scale-down deletes",
			phrase.Count(own, "pod has", "pods have"))
	}
}

// table is the slots of one ReplicaSet while they are assigned. Pods are named by their indexes in the order of their slots.
type table struct {
	mix   policy.Mix
	pods  []*Pod
	taken []bool
	slots []int32 // what each pod was given; NoSlot: nothing
}

func newTable(mix policy.Mix, slots int, pods []*Pod) *table {
	t := &table{mix: mix, pods: pods, taken: make([]bool, slots), slots: make([]int32, len(pods))}
	for at := range t.slots {
		t.slots[at] = NoSlot
	}
	return t
}

// take takes a slot; false when it is not there or taken already.
func (t *table) take(slot int) bool {
	if slot < 0 || slot >= len(t.taken) || t.taken[slot] {
		return false
	}
	t.taken[slot] = true
	return true
}

// give gives a slot to a pod; false when it is not there or taken already.
func (t *table) give(at, slot int) bool {
	if !t.take(slot) {
		return false
	}
	t.slots[at] = int32(slot)
	return true
}

// keep leaves a pod on its slot, if it is free and of the pod's type.
func (t *table) keep(at int) bool {
	pod := t.pods[at]
	return (!t.mix.Managed || t.mix.Of(pod.Slot) == pod.Capacity) && t.give(at, pod.Slot)
}

// fill gives pods the free slots of their types, those on which others sit last, and returns the pods it has none for.
func (t *table) fill(pods, others []int) (left []int) {
	if len(pods) == 0 {
		return nil
	}
	free := t.free(others)
	for _, at := range pods {
		capacityType := t.pods[at].Capacity
		if !t.mix.Managed {
			capacityType = capacity.Unknown
		}
		slots := &free[capacity.CodeOf(capacityType)]
		if len(*slots) == 0 {
			left = append(left, at)
			continue
		}
		t.give(at, (*slots)[0])
		*slots = (*slots)[1:]
	}
	return left
}

// free returns the free slots of each type, those on which others sit last.
func (t *table) free(others []int) (free [len(capacity.Types)][]int) {
	occupied := make([]bool, len(t.taken))
	for _, at := range others {
		if slot := t.pods[at].Slot; slot >= 0 && slot < len(occupied) {
			occupied[slot] = true
		}
	}
	for _, last := range []bool{false, true} {
		for slot := range t.taken {
			if occupied[slot] == last && !t.taken[slot] {
				code := capacity.CodeOf(t.mix.Of(slot))
				free[code] = append(free[code], slot)
			}
		}
	}
	return free
}

// settle leaves pods on their slots where those are free, and gives the others the lowest that are.
func (t *table) settle(pods []int) {
	slices.Sort(pods) // those that were left over come after the others
	var homeless []int
	for _, at := range pods {
		if !t.give(at, t.pods[at].Slot) {
			homeless = append(homeless, at)
		}
	}
	for slot := 0; slot < len(t.taken) && len(homeless) > 0; slot++ {
		if t.give(homeless[0], slot) {
			homeless = homeless[1:]
		}
	}
}
