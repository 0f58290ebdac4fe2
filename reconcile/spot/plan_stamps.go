package spot

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// stamp gives every pod that stays a slot of its own, of its own capacity type as far as there is one. That mends
// duplicates, gaps and pods without slots, and leaves the excess, and only the excess, on slots of the other type.
func (pl *planner) stamp() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if pl.Ordinals {
			pl.stampOrdinals(o)
		} else if len(o.alive) <= o.Replicas && pl.unexplained(o) == 0 {
			// Else pods are about to go, and giving them better slots would only change which.
			pl.assign(o)
		}
	}
	pl.noteCosts()
}

func (pl *planner) stampOrdinals(o *ownerPods) {
	for _, pod := range o.alive {
		if slot := pl.slotOf(o, pod); slot != NoSlot && slot != pod.Slot {
			pl.stampPod(pod, slot)
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
	t := newTable(pl.mix, o.Replicas)
	for _, r := range pl.promised(o) {
		t.take(r.Slot)
	}
	excess := pl.excessOf(o)
	var stay, rest []*Pod
	for _, pod := range o.alive {
		if _, over := excess[pod.UID]; over || (pod.Capacity == Unknown && pl.mix.Managed) {
			rest = append(rest, pod)
		} else if !t.keep(pod) {
			stay = append(stay, pod)
		}
	}
	t.settle(append(rest, t.fill(stay, rest)...))
	for _, pod := range o.alive {
		_, going := pl.moving[pod.UID]
		if slot, has := t.slots[pod.UID]; has && !going {
			pl.stampPod(pod, slot)
		}
	}
}

// excessOf returns the pods of an owner that go by this plan, and those that are too many of their type beside them, in the
// order in which they would be moved.
func (pl *planner) excessOf(o *ownerPods) map[types.UID]struct{} {
	if !pl.mix.Managed {
		return nil
	}
	excess := make(map[types.UID]struct{}, len(pl.moving))
	var stay tally
	for _, pod := range o.alive {
		if _, going := pl.moving[pod.UID]; going {
			excess[pod.UID] = struct{}{}
		} else {
			stay.add(pod.Capacity, 1)
		}
	}
	for _, capacity := range []Capacity{Spot, OnDemand} {
		if over := stay.of(capacity) - pl.mix.Wanted(capacity, o.Replicas); over > 0 {
			for _, pod := range pl.victims(o, capacity)[:over] {
				excess[pod.UID] = struct{}{}
			}
		}
	}
	return excess
}

// stampPod writes a slot, and its deletion cost with it, where they differ from what the pod has. A cost that is not of
// our making stays. A workload without a policy has no order in which to shrink.
func (pl *planner) stampPod(pod *Pod, slot int) {
	s := Stamp{Pod: pod.UID, Name: pod.Name, Slot: slot}
	cost, ours := ownCost(pod.Slot, pod.DeletionCost)
	if !pl.Ordinals && ((ours && cost != pl.mix.cost(slot)) || (pod.DeletionCost == "" && pl.mix.Managed)) {
		s.DeletionCost = pl.mix.Cost(slot)
	}
	if slot != pod.Slot || s.DeletionCost != "" {
		pl.result.Stamps = append(pl.result.Stamps, s)
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
			if pod.DeletionCost == "" {
				continue
			}
			if _, ours := ownCost(pod.Slot, pod.DeletionCost); !ours {
				own++
			}
		}
	}
	if own > 0 {
		pl.note("%s a deletion cost that Plimsoll did not set, and it stays: when the workload shrinks, it decides which of them go, not the slot",
			count(own, "pod has", "pods have"))
	}
}

// table is the slots of one ReplicaSet while they are assigned.
type table struct {
	mix   Mix
	taken []bool
	slots map[types.UID]int // what was assigned
}

func newTable(mix Mix, replicas int) *table {
	return &table{mix: mix, taken: make([]bool, replicas), slots: make(map[types.UID]int, replicas)}
}

// take takes a slot; false when it is not there or taken already.
func (t *table) take(slot int) bool {
	if slot < 0 || slot >= len(t.taken) || t.taken[slot] {
		return false
	}
	t.taken[slot] = true
	return true
}

// keep leaves a pod on its slot, if it is free and of the pod's type.
func (t *table) keep(pod *Pod) bool {
	if (t.mix.Managed && t.mix.Of(pod.Slot) != pod.Capacity) || !t.take(pod.Slot) {
		return false
	}
	t.slots[pod.UID] = pod.Slot
	return true
}

// fill gives pods the free slots of their types, those on which others sit last, and returns the pods it has none for.
func (t *table) fill(pods, others []*Pod) (left []*Pod) {
	occupied := make(map[int]struct{}, len(others))
	for _, pod := range others {
		occupied[pod.Slot] = struct{}{}
	}
	free := map[Capacity][]int{}
	for _, last := range []bool{false, true} {
		for slot := range t.taken {
			if _, sat := occupied[slot]; sat == last && !t.taken[slot] {
				free[t.mix.Of(slot)] = append(free[t.mix.Of(slot)], slot)
			}
		}
	}
	for _, pod := range pods {
		capacity := pod.Capacity
		if !t.mix.Managed {
			capacity = Unknown
		}
		if len(free[capacity]) == 0 {
			left = append(left, pod)
			continue
		}
		t.slots[pod.UID] = free[capacity][0]
		t.take(free[capacity][0])
		free[capacity] = free[capacity][1:]
	}
	return left
}

// settle leaves pods on their slots where those are free, and gives the others the lowest that are.
func (t *table) settle(pods []*Pod) {
	slices.SortFunc(pods, bySlot)
	var homeless []*Pod
	for _, pod := range pods {
		if t.take(pod.Slot) {
			t.slots[pod.UID] = pod.Slot
		} else {
			homeless = append(homeless, pod)
		}
	}
	for slot := range t.taken {
		if len(homeless) > 0 && t.take(slot) {
			t.slots[homeless[0].UID] = slot
			homeless = homeless[1:]
		}
	}
}
