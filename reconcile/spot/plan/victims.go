package plan

import (
	"cmp"
	"slices"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// victims returns the alive pods of a type in the order in which they are moved: those that do not serve anyway, then those on
// nodes that may go, then those whose slot is of the other type, then from the highest slot down, the youngest first. Of a
// StatefulSet the highest ordinal goes first. Pods that ask not to be disrupted are last. Where the template has to spread its
// pods, those of the fullest domains come before others, whatever their slots.
//
// Alive pods are in the order of their slots, so those of a ReplicaSet need no sorting, which would cost most of the plan of a
// very large one.
func (pl *planner) victims(o *ownerPods, capacityType capacity.Type) []*Pod {
	order := pl.victimOrder(o, capacityType)
	pods := make([]*Pod, len(order))
	for i, at := range order {
		pods[i] = o.alive[at]
	}
	return pods
}

// An orderOfVictims is of pods of one type, made when so many pods were going.
type orderOfVictims struct {
	order []int32
	going int
}

// victimOrder returns the victims as indexes of the owner's alive pods. It is asked for again when moves have begun, and its callers
// do not change it.
func (pl *planner) victimOrder(o *ownerPods, capacityType capacity.Type) []int32 {
	if u := pl.spreadOf(o); u != nil { // each pod that goes changes the order of the others
		classes := pl.victimClasses(o, capacityType)
		for class := range classes {
			classes[class] = pl.balance(o, u, classes[class], capacityType.Other())
		}
		return slices.Concat(classes[:]...)
	}
	known, ok := o.victims[capacityType]
	switch {
	case ok && known.going == len(pl.moving): // nothing that goes by a plan stays after all
		return known.order
	case ok:
		known.order = slices.DeleteFunc(slices.Clone(known.order), func(at int32) bool { return pl.going(o.alive[at]) })
	default:
		classes := pl.victimClasses(o, capacityType)
		known.order = slices.Concat(classes[:]...)
	}
	known.going = len(pl.moving)
	if o.victims == nil {
		o.victims = map[capacity.Type]orderOfVictims{}
	}
	o.victims[capacityType] = known
	return known.order
}

// victimClasses sorts the pods of a type that stay so far into classes, see classOf, each in the order of its slots.
func (pl *planner) victimClasses(o *ownerPods, capacityType capacity.Type) (classes [1 << 5][]int32) {
	for at, pod := range slices.Backward(o.alive) {
		if pod.Capacity != capacityType {
			continue
		}
		if !pl.going(pod) {
			class := pl.classOf(pod, len(o.Spreads) > 0)
			classes[class] = append(classes[class], int32(at))
		}
	}
	if pl.Ordinals { // by their names, which the labels may not follow
		for _, class := range classes {
			slices.SortFunc(class, func(x, y int32) int {
				a, b := o.alive[x], o.alive[y]
				return cmp.Or(cmp.Compare(pl.slotOf(o, b), pl.slotOf(o, a)), ByAge(b, a))
			})
		}
	}
	return classes
}

// classOf orders pods by how little it costs to move them, the cheapest first; see victims.
func (pl *planner) classOf(pod *Pod, spread bool) (class int) {
	ownSlot := !pl.Ordinals && pl.mix.Of(pod.Slot) == pod.Capacity && !spread // a slot can be exchanged, a domain cannot
	for _, dear := range [...]bool{pod.DoNotDisrupt, pl.available(pod), pod.Bound, !pod.Advised(), ownSlot} {
		class <<= 1
		if dear {
			class |= 1
		}
	}
	return class
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
