package plan

import (
	"cmp"
	"slices"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// countAdvised counts the pods that an advisory notice concerns.
func (pl *planner) countAdvised() {
	for i := range pl.owners {
		for _, pod := range pl.owners[i].alive {
			if pod.Advised() {
				pl.advised++
			}
		}
	}
}

// heedAdvice replaces pods of nodes that may go at the pace of moves. They stay supply until then: the notice may be taken back.
func (pl *planner) heedAdvice(o *ownerPods) {
	started, left := 0, 0
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand, capacity.Unknown} {
		pods := pl.advisedOf(o, capacityType)
		room := pl.roomForAdvised(o, capacityType, len(pods))
		for _, pod := range pods {
			switch {
			case pod.DoNotDisrupt:
				pl.protect(pod)
			case pod.Slot == NoSlot: // it gets one first
			case room > 0 && pl.leave(o, pod, PurposeAdvisory, interruptionReason(pod)):
				room--
				started++
				continue
			}
			left++
		}
	}
	switch {
	case started > 0:
		pl.recheck(pl.now.Add(pl.settings.Cooldown))
		if pl.excess == 0 {
			pl.state(StateMoving, "moving %d of %s off nodes at risk of interruption", started, phrase.Count(started+left, "replica"))
		}
	case left > 0 && pl.excess == 0:
		why := cmp.Or(pl.reasonOf(WaitBudget), pl.reasonOf(WaitReplacement), pl.reasonOf(WaitCooldown), pl.reasonOf(WaitWindow), pl.reasonOf(WaitProtected), "they are assigned a slot first")
		pl.state(StateWaiting, "%s should leave nodes at risk of interruption; %s", phrase.Count(left, "replica"), why)
	}
}

// advisedOf returns the pods of a type that an advisory notice concerns and that do not leave yet, those first that do not serve,
// then from the highest slot down.
func (pl *planner) advisedOf(o *ownerPods, capacityType capacity.Type) []*Pod {
	var pods []*Pod
	for _, pod := range o.alive {
		if pod.Advised() && pod.Capacity == capacityType && !pl.going(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int {
		return cmp.Or(compareBool(pl.available(a), pl.available(b)), cmp.Compare(pl.slotOf(o, b), pl.slotOf(o, a)), ByAge(b, a))
	})
	return pods
}

// roomForAdvised returns how many replicas of a type may be replaced now, and notes what they wait for if none may.
func (pl *planner) roomForAdvised(o *ownerPods, capacityType capacity.Type, replicas int) int {
	if replicas == 0 || pl.waitsForNodes(o, capacityType, replicas) {
		return 0
	}
	if until, cooling := pl.cooling(o, capacityType); cooling {
		pl.waitCooldown(until, replicas)
		return 0
	}
	t := pl.traffic(o, capacity.Unknown)
	room := min(pl.budget(o, capacityType), pl.limit(o)-len(o.interrupted)-t.moving())
	if room <= 0 {
		pl.wait(Wait{Kind: WaitReplacement, Replicas: replicas}, "moved replicas must become ready first")
	}
	return room
}
