package plan

import "slices"

// inTransit reports whether a workload is to have another number of replicas than its spec asks for yet: then its pods get their
// slots for that number, and none is moved for the mix.
func (pl *planner) inTransit() bool {
	return pl.policy.Fleet != nil && pl.policy.Fleet.Replicas != pl.Replicas
}

// movedByFleet reports whether a fleet placement moves the replicas. It makes before it breaks, over all members, and asks for one of
// another type first; what differs from the split here came about since it looked, and would be broken by a move for the mix.
// Ordinals exist only once, so that nobody can make another one first: those are moved here.
func (pl *planner) movedByFleet() bool { return pl.policy.Fleet != nil && !pl.Ordinals }

// slotsOf is for how many replicas the pods of an owner get their slots.
func (pl *planner) slotsOf(o *ownerPods) int {
	if !pl.inTransit() || pl.Rolling || pl.sole() != o || o.Replicas != pl.Replicas {
		return o.Replicas
	}
	return pl.policy.Fleet.Replicas
}

// beyond gives pods that have no slot below n those from there on. They are the first that the owner gives up when it shrinks.
func (t *table) beyond(n int) {
	var homeless []int
	used := map[int]bool{}
	for at, pod := range t.pods {
		switch {
		case t.slots[at] != NoSlot:
		case pod.Slot >= n && !used[pod.Slot]:
			t.slots[at], used[pod.Slot] = int32(pod.Slot), true
		default:
			homeless = append(homeless, at)
		}
	}
	slot := n
	for _, at := range homeless {
		for used[slot] {
			slot++
		}
		t.slots[at], used[slot] = int32(slot), true
	}
}

// WaitsFor reports whether a plan waits for something of a kind.
func (r *Result) WaitsFor(kind WaitKind) bool {
	return slices.ContainsFunc(r.Waits, func(w Wait) bool { return w.Kind == kind })
}
