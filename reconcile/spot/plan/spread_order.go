package plan

import (
	"cmp"
	"slices"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// balanceWork bounds how often the domains of a workload's pods are compared for one order of them; beyond it their order is that of their
// slots. heldBackWork is at how many domains one plan looks to find out whether replacements can be scheduled; beyond it none is held back.
const balanceWork, heldBackWork = 1 << 20, 1 << 24

// places are pods of which those with the same domains may go instead of one another, in the order in which they go.
type places map[[capacity.MaxSpreads]int32][]int32

func (p places) add(pod *Pod, at int32) {
	var place [capacity.MaxSpreads]int32
	for i := range place {
		place[i] = int32(pod.domain(i))
	}
	p[place] = append(p[place], at)
}

// spreadOf counts an owner's pods by domain, without those that leave by this plan; nil: nothing has to be spread. Pods of nodes that
// go, and released ones, count as long as they run, for the scheduler counts them.
func (pl *planner) spreadOf(o *ownerPods) unbalance {
	if len(o.Spreads) == 0 {
		return nil
	}
	stay := slices.DeleteFunc(slices.Concat(o.alive, o.interrupted, o.released), pl.going)
	return newUnbalance(o.Spreads, stay)
}

// balance puts victims of one class, which are indexes of the alive pods, in the order in which they keep the spread: each is of a
// domain that has the most when it goes and, before that, one whose replacement can be scheduled. Equal ones stay in their order.
func (pl *planner) balance(o *ownerPods, u unbalance, class []int32, to capacity.Type) []int32 {
	if len(u) == 0 || len(class) < 2 {
		for _, at := range class {
			pl.giveUp(o, u, at, to)
		}
		return class
	}
	groups := places{}
	for position, at := range class {
		groups.add(o.alive[at], int32(position))
	}
	ordered := make([]int32, 0, len(class))
	for work := len(groups) * u.cost(); len(ordered) < len(class) && work < balanceWork; work += len(groups) * u.cost() {
		place, first := u.fullest(groups, func(position int32) *Pod { return o.alive[class[position]] }, to)
		groups[place] = groups[place][1:]
		if len(groups[place]) == 0 {
			delete(groups, place)
		}
		ordered = append(ordered, class[first])
		pl.giveUp(o, u, class[first], to)
		class[first] = -1
	}
	for _, at := range class {
		if at >= 0 {
			ordered = append(ordered, at)
		}
	}
	return ordered
}

// giveUp takes a victim away from the count, and notes if its replacement could not be scheduled.
func (pl *planner) giveUp(o *ownerPods, u unbalance, at int32, to capacity.Type) {
	pod := o.alive[at]
	if by, _ := pl.blocked(u, pod, to); by != nil {
		return // it stays
	}
	u.remove(pod)
}

// fullest returns the group of which a pod goes next, and the pod: the first of a group whose replacement can be scheduled, if there
// is one, then of the one with the most replicas. Of equal ones it is the first.
func (u unbalance) fullest(groups places, pod func(at int32) *Pod, to capacity.Type) (place [capacity.MaxSpreads]int32, first int32) {
	first = -1
	var best [2 * capacity.MaxSpreads]int32
	var bestBlocked bool
	for candidate, list := range groups {
		p := pod(list[0])
		by, _ := u.blocks(p, to)
		blocked, weights := by != nil, u.weights(p)
		order := compareBool(blocked, bestBlocked)
		if order == 0 {
			order = slices.Compare(best[:], weights[:])
		}
		if first < 0 || order < 0 || (order == 0 && list[0] < first) {
			place, first, best, bestBlocked = candidate, list[0], weights, blocked
		}
	}
	return place, first
}

// blocked is [unbalance.blocks], as long as the plan has not looked at too many domains.
func (pl *planner) blocked(u unbalance, pod *Pod, to capacity.Type) (by *Spread, left []string) {
	if pl.looked += u.cost(); pl.looked > heldBackWork {
		return nil, nil
	}
	return u.blocks(pod, to)
}

// heldBack reports whether a victim stays because its replacement could not be scheduled within its skew, and says why.
func (pl *planner) heldBack(u unbalance, pod *Pod, to capacity.Type) bool {
	by, left := pl.blocked(u, pod, to)
	if by == nil {
		return false
	}
	pl.hold(pod, WaitTemplate)
	pl.wait(Wait{Kind: WaitTemplate, Subject: by.Key, Replicas: 1}, "the %s leaves only %s for a replacement, where the template allows no %s node",
		by, some(left), to)
	return true
}

// evenOut exchanges slots of pods of the same capacity type, so that the workload stays within its skew when it shrinks: it gives up
// the highest slots. It does so only at rest, and only as far as needed, and moves no pod.
func (pl *planner) evenOut(o *ownerPods, t *table) {
	if len(o.Spreads) == 0 || !pl.mix.Managed || pl.excess > 0 || len(pl.moving) > 0 || len(o.alive) != o.Replicas || len(o.interrupted)+len(o.released) > 0 {
		return
	}
	holder := make([]int32, o.Replicas)
	for at, pod := range o.alive {
		if !pod.Bound || t.slots[at] == NoSlot {
			return
		}
		holder[t.slots[at]] = int32(at)
	}
	e := evening{u: newUnbalance(o.Spreads, o.alive), pods: o.alive, gone: make([]bool, len(o.alive))}
	for _, at := range holder {
		e.groups(o.alive[at].Capacity).add(o.alive[at], at)
	}
	for slot, at := range slices.Backward(holder) {
		t.slots[e.next(at)] = int32(slot)
	}
}

// evening is an exchange of slots under way, from the highest slot down.
type evening struct {
	u      unbalance
	pods   []*Pod
	gone   []bool // pods that have their slots
	byType [len(capacity.Types)]places
	homes  [len(capacity.Types)][]int32 // pods whose slots others got
	work   int
}

// groups are the pods of a capacity type, the lowest slot first.
func (e *evening) groups(capacityType capacity.Type) places {
	p := &e.byType[capacity.CodeOf(capacityType)]
	if *p == nil {
		*p = places{}
	}
	return *p
}

// next returns the pod that gets the next slot, which a pod holds now: that one if the skew is kept without it, else one that lost
// its slot, else the one whose going keeps it best.
func (e *evening) next(holder int32) int32 {
	code := capacity.CodeOf(e.pods[holder].Capacity)
	chosen := int32(-1)
	if e.may(holder) {
		chosen = holder
	}
	for i := len(e.homes[code]) - 1; i >= 0 && chosen < 0; i-- {
		e.work++
		if at := e.homes[code][i]; e.may(at) {
			chosen = at
		}
	}
	if chosen < 0 {
		chosen = e.best(holder)
	}
	if chosen != holder { // which is in none of the homes yet
		if !e.gone[holder] {
			e.homes[code] = append(e.homes[code], holder)
		}
		e.homes[code] = slices.DeleteFunc(e.homes[code], func(at int32) bool { return at == chosen })
	}
	e.gone[chosen] = true
	e.u.remove(e.pods[chosen])
	return chosen
}

// may reports whether a pod may be given up next; when enough was compared, every pod may that has no slot yet.
func (e *evening) may(at int32) bool {
	return !e.gone[at] && (e.work > balanceWork || e.u.keeps(e.pods[at]))
}

// best returns the pod of the holder's type whose going keeps the skew, or leaves it lowest; of equal ones the holder, or the one
// with the highest slot.
func (e *evening) best(holder int32) int32 {
	groups := e.groups(e.pods[holder].Capacity)
	e.work += len(groups)
	best, bestKeeps, bestWeights := int32(-1), false, [2 * capacity.MaxSpreads]int32{}
	for place, list := range groups {
		for len(list) > 0 && e.gone[list[len(list)-1]] {
			list = list[:len(list)-1]
		}
		groups[place] = list
		if len(list) == 0 {
			continue
		}
		at := list[len(list)-1]
		if !e.gone[holder] && slices.Equal(e.pods[at].Domains, e.pods[holder].Domains) {
			at = holder
		}
		keeps, weights := e.u.keeps(e.pods[at]), e.u.weights(e.pods[at])
		order := cmp.Or(compareBool(bestKeeps, keeps), slices.Compare(bestWeights[:], weights[:]), compareBool(best == holder, at == holder))
		if best < 0 || order < 0 || (order == 0 && at > best) {
			best, bestKeeps, bestWeights = at, keeps, weights
		}
	}
	return best
}
