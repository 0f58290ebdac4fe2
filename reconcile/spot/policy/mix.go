package policy

import (
	"sort"
	"strconv"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Mix is the arithmetic of a policy: how many of n replicas go where. The zero Mix is that of a workload without a policy.
type Mix struct {
	// Percent is the share on spot capacity, 0 to 100.
	Percent int
	// Floor is the least number of on-demand replicas, 0 or more.
	Floor int
	// Managed is false when no value is set anywhere: such a workload is counted and never moved.
	Managed bool
	// Dry says that spot capacity has no room for the owner's pods now. It changes nothing of what belongs where; until it
	// ends, slots.Accounting.Reserve places new pods on-demand, and plan.Plan moves none to spot.
	Dry bool
	// OnDemandDry says the same of on-demand capacity: until it ends, new pods above the floor go to spot.
	OnDemandDry bool
}

// TakesSpot reports whether replicas that belong on-demand may be on spot while on-demand is dry, beside so many that are there
// already: spot was asked for, or they are still on their way from it.
func (m Mix) TakesSpot(already int) bool { return m.Managed && (m.Percent > 0 || already > 0) }

// FallsBack reports whether a replica above the floor goes to spot for lack of on-demand capacity, beside so many that are there.
func (m Mix) FallsBack(already int) bool { return m.OnDemandDry && !m.Dry && m.TakesSpot(already) }

// Spot returns how many of n replicas belong on spot capacity: clamp(min(⌊n·Percent/100⌋, n − Floor), 0, n).
//
// It never falls and never rises by more than one when n grows by one: ⌊n·p/100⌋ does so because p ≤ 100, n − Floor rises
// by exactly one, and both the minimum and the clamp of such sequences are such sequences. That is what makes slots work.
func (m Mix) Spot(n int) int {
	if n <= 0 {
		return 0
	}
	share := int(int64(n) * int64(m.Percent) / 100)
	return min(max(min(share, n-m.Floor), 0), n)
}

// OnDemand returns how many of n replicas belong on on-demand capacity.
func (m Mix) OnDemand(n int) int { return max(n, 0) - m.Spot(n) }

// IsSpot reports whether a slot is a spot slot: the replica that makes slot+1 of them out of slot goes on spot capacity. By
// the property of [Mix.Spot], the slots 0 to n−1 hold exactly Spot(n) spot slots, and the first Floor slots hold none.
func (m Mix) IsSpot(slot int) bool {
	return slot >= 0 && m.Spot(slot+1) > m.Spot(slot)
}

// Of returns the capacity type of a slot; [capacity.Unknown] when the workload has no policy.
func (m Mix) Of(slot int) capacity.Type {
	switch {
	case !m.Managed:
		return capacity.Unknown
	case m.IsSpot(slot):
		return capacity.Spot
	}
	return capacity.OnDemand
}

// First returns the lowest slot of a capacity type, maxSlot if there is none below it. Both counts never fall as n grows.
func (m Mix) First(capacityType capacity.Type) int {
	switch {
	case !m.Managed && capacityType == capacity.Unknown:
		return 0
	case !m.Managed || capacityType == capacity.Unknown:
		return MaxSlot
	}
	return sort.Search(MaxSlot, func(slot int) bool { return m.Wanted(capacityType, slot+1) > 0 })
}

// Wanted returns how many of n replicas belong on the given capacity type; 0 for [capacity.Unknown].
func (m Mix) Wanted(capacityType capacity.Type, n int) int {
	switch capacityType {
	case capacity.Spot:
		return m.Spot(n)
	case capacity.OnDemand:
		return m.OnDemand(n)
	}
	return 0
}

// Split returns how many of n replicas belong on spot and on on-demand capacity under a policy. An invalid policy wants all
// of them on-demand, and so does one without values.
func Split(n int, p Policy) (spot, onDemand int) {
	m := p.Mix()
	return m.Spot(n), m.OnDemand(n)
}

// SlotIsSpot reports whether a slot is a spot slot under a policy; see [Mix.IsSpot].
func SlotIsSpot(slot int, p Policy) bool { return p.Mix().IsSpot(slot) }

// MaxSlot bounds what a label can make us remember; ReplicaSets of more replicas are not known to exist.
const MaxSlot = 1 << 17

// floorCost is the deletion cost of slot 0 where the floor needs it; the costs of the other slots of the floor are below, and
// above 0.
const floorCost = 1_000_000

// Cost returns the deletion cost of a slot, by which a ReplicaSet that shrinks gives up the highest slot first: minus the slot.
// Slots of the floor have costs above 0, which is the cost of a pod without one: those that nobody has given a slot, because the
// hub was away, go before the floor does.
func (m Mix) Cost(slot int) string { return strconv.Itoa(m.CostOf(slot)) }

// CostOf is the deletion cost of a slot as a number; see [Mix.Cost].
func (m Mix) CostOf(slot int) int {
	if slot < m.Floor {
		return floorCost - slot
	}
	return -slot
}
