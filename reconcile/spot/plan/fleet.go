package plan

import "slices"

// inTransit reports whether a workload is to have another number of replicas than its spec asks for yet: then its pods get their
// slots for that number, and none is moved for the mix.
func (pl *planner) inTransit() bool {
	return pl.policy.Fleet != nil && pl.policy.Fleet.Replicas != pl.Replicas
}

// movedByFleet reports whether a fleet placement moves the replicas. It makes before it breaks, over all members, and asks for one of
// another type first; what differs from the split here came about since it looked, and would be broken by a move for the mix.
// Ordinals exist only once, so that nobody can make another one first: as many are moved here as the fleet placement can do without.
func (pl *planner) movedByFleet() bool {
	return pl.policy.Fleet != nil && (!pl.Ordinals || pl.policy.Fleet.Exchanges == 0)
}

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

// interruptedGoFirst gives pods on nodes that go slots behind all others: the owner counts them until they are gone, and one that shrinks
// meanwhile, which a budget or the time of a notice may let take a while, is to give up these and not what serves on.
func (pl *planner) interruptedGoFirst(o *ownerPods, t *table) {
	if pl.policy.Fleet.Replicas >= o.Replicas {
		return
	}
	first := len(t.taken)
	for _, slot := range t.slots {
		first = max(first, int(slot)+1)
	}
	used := map[int]bool{}
	var homeless []*Pod
	for _, pod := range o.interrupted {
		if pod.Slot >= first && !used[pod.Slot] {
			used[pod.Slot] = true
		} else {
			homeless = append(homeless, pod)
		}
	}
	for _, pod := range homeless {
		for used[first] {
			first++
		}
		used[first] = true
		if !pl.going(pod) {
			pl.assignSlot(pod, first)
		}
	}
}

// WaitsFor reports whether a plan waits for something of a kind.
func (r *Result) WaitsFor(kind WaitKind) bool {
	return slices.ContainsFunc(r.Waits, func(w Wait) bool { return w.Kind == kind })
}
