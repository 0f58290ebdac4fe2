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
		} else if len(o.alive) > 0 && len(o.alive) <= o.Replicas && o.Accounting.Unexplained == 0 {
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
//  2. Who stays and has none gets the lowest that is free, slots that the excess holds last.
//  3. The rest, which is the excess and pods of unknown type, keep their slots as far as nobody needs them.
//
// There are enough slots: alive pods and promised slots are no more than the replicas (Unexplained is 0), and no more pods
// of a type stay than it has slots.
func (pl *planner) assign(o *ownerPods) {
	t := &table{mix: pl.mix, taken: make([]bool, o.Replicas), avoid: make([]bool, o.Replicas)}
	for _, r := range o.Accounting.Reserved {
		if pl.now.Sub(r.At) < SettleTime {
			t.take(r.Slot)
		}
	}
	excess := pl.excessOf(o)
	slots := make(map[types.UID]int, len(o.alive))
	var stay, rest []*Pod
	for _, pod := range o.alive {
		_, over := excess[pod.UID]
		switch {
		case over || (pod.Capacity == Unknown && pl.mix.Managed):
			rest = append(rest, pod)
		case t.fits(pod) && t.take(pod.Slot):
			slots[pod.UID] = pod.Slot
		default:
			stay = append(stay, pod)
		}
	}
	for _, pod := range rest {
		t.reluctantly(pod.Slot)
	}
	for _, pod := range stay {
		if slot, ok := t.lowest(pod.Capacity); ok {
			slots[pod.UID] = slot
		} else {
			rest = append(rest, pod)
		}
	}
	for _, pod := range slices.SortedFunc(slices.Values(rest), bySlot) {
		if t.take(pod.Slot) {
			slots[pod.UID] = pod.Slot
		}
	}
	for _, pod := range rest {
		if _, has := slots[pod.UID]; !has {
			slots[pod.UID] = t.any()
		}
	}
	for _, pod := range o.alive {
		if _, going := pl.moving[pod.UID]; !going && slots[pod.UID] != NoSlot {
			pl.stampPod(pod, slots[pod.UID])
		}
	}
}

// excessOf returns the pods of an owner that are too many of their type, in the order in which they would be moved.
func (pl *planner) excessOf(o *ownerPods) map[types.UID]struct{} {
	if !pl.mix.Managed {
		return nil
	}
	excess := map[types.UID]struct{}{}
	for _, capacity := range []Capacity{Spot, OnDemand} {
		pods := pl.victims(o, capacity)
		for _, pod := range pods[:max(len(pods)-pl.mix.Wanted(capacity, o.Replicas), 0)] {
			excess[pod.UID] = struct{}{}
		}
	}
	return excess
}

// stampPod writes a slot, and its deletion cost with it, where they differ from what the pod has. A cost that is not of
// our making stays. A workload without a policy has no order in which to shrink.
func (pl *planner) stampPod(pod *Pod, slot int) {
	s := Stamp{Pod: pod.UID, Name: pod.Name, Slot: slot}
	ours := ownCost(pod.Slot, pod.DeletionCost)
	if !pl.Ordinals && (ours || (pod.DeletionCost == "" && pl.mix.Managed)) && pod.DeletionCost != costOf(slot) {
		s.DeletionCost = costOf(slot)
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
			if pod.DeletionCost != "" && !ownCost(pod.Slot, pod.DeletionCost) {
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
	avoid []bool // held by a pod that could keep it
}

// fits tells whether a pod's slot is one of the wanted replicas', of the pod's type.
func (t *table) fits(pod *Pod) bool {
	return pod.Slot >= 0 && pod.Slot < len(t.taken) && (!t.mix.Managed || t.mix.Of(pod.Slot) == pod.Capacity)
}

// take takes a slot; false when it is not there or taken already.
func (t *table) take(slot int) bool {
	if slot < 0 || slot >= len(t.taken) || t.taken[slot] {
		return false
	}
	t.taken[slot] = true
	return true
}

func (t *table) reluctantly(slot int) {
	if slot >= 0 && slot < len(t.avoid) {
		t.avoid[slot] = true
	}
}

// lowest takes the lowest free slot of a type, one to avoid only if there is no other.
func (t *table) lowest(capacity Capacity) (int, bool) {
	for _, avoided := range []bool{false, true} {
		for slot := range t.taken {
			if !t.taken[slot] && t.avoid[slot] == avoided && (!t.mix.Managed || t.mix.Of(slot) == capacity) {
				t.taken[slot] = true
				return slot, true
			}
		}
	}
	return NoSlot, false
}

// any takes the lowest free slot.
func (t *table) any() int {
	for slot := range t.taken {
		if t.take(slot) {
			return slot
		}
	}
	return NoSlot
}
