package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// move sets the state and picks the batch of moves that may start now: for the mix, and off nodes of which an advisory notice
// says that they may go.
//
// For the mix, only what is visibly too much moves: pods beyond the wanted number of their type. What is missing comes by
// itself, and admission sends it to the right type. So there are never more moves than the counts differ.
func (pl *planner) move() {
	o, stalled := pl.movable()
	if o == nil {
		pl.withoutOwner()
		return
	}
	pl.findExcess(o, stalled)
	stays := pl.excess > 0 && pl.stays(o)
	if stalled || pl.Ordinals { // of a StatefulSet each replica exists only once: none is given up for a wish
		pl.advised = 0
	}
	switch {
	case pl.excess+pl.advised > 0:
		if !pl.mayMove(o, stalled) {
			return
		}
		if pl.excess > 0 {
			pl.moveExcess(o)
		}
		if pl.advised > 0 {
			pl.heedAdvice(o)
		}
	case stalled:
		pl.withoutOwner()
	case !stays:
		pl.atRest(o)
	}
}

// findExcess finds the capacity type of which there are more pods than wanted. There is at most one: with no more pods than
// replicas, both cannot be. With more pods than replicas the owner takes some away first. Of a stalled rollout only as many are
// too many on spot as the floor lacks.
func (pl *planner) findExcess(o *ownerPods, stalled bool) {
	if len(o.alive) > o.Replicas {
		return
	}
	var have capacity.Tally
	for _, pod := range o.alive {
		if !pl.going(pod) {
			have.Add(pod.Capacity, 1)
		}
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if excess := have.Of(capacityType) - pl.mix.Wanted(capacityType, o.Replicas); excess > pl.excess {
			pl.excess, pl.from = excess, capacityType
		}
	}
	if pl.policy.Fleet != nil && pl.policy.Fleet.Exchanges > 0 {
		pl.excess = min(pl.excess, pl.policy.Fleet.Exchanges)
	}
	if lacking := min(pl.mix.Floor, o.Replicas) - have.OnDemand; stalled && (pl.from != capacity.Spot || lacking <= 0) {
		pl.excess, pl.from = 0, capacity.Unknown
	} else if stalled {
		pl.excess = min(pl.excess, lacking)
	}
}

// stays reports whether the replicas that belong on the other capacity type stay where they are, because there is no room for them,
// or their template leaves it out.
func (pl *planner) stays(o *ownerPods) bool {
	if pl.stayFor(o) {
		return true
	}
	if !o.Contradiction.LeavesOut(pl.from.Other()) {
		return false
	}
	pl.stayWhereTheyFit(o)
	return true
}

// stayWhereTheyFit leaves replicas where they are that belong on nodes that their template does not allow: their replacements
// could only wait.
func (pl *planner) stayWhereTheyFit(o *ownerPods) {
	pl.state(StateWaiting, "%s on %s: %s", phrase.Count(pl.excess, "replica stays", "replicas stay"), pl.from, o.Contradiction.Message())
	pl.waitForNodes(o.Contradiction, pl.excess)
	pl.excess, pl.from = 0, capacity.Unknown
}

// atRest names the state of a workload without excess.
func (pl *planner) atRest(o *ownerPods) {
	missing := o.Replicas - len(o.alive)
	switch {
	case pl.Rolling || o.Replicas != pl.Replicas:
		pl.state(StateMoving, "the workload is being scaled or rolled out; new replicas are placed at admission")
	case missing < 0:
		pl.state(StateMoving, "%s about to be deleted", phrase.Count(-missing, "surplus pod is", "surplus pods are"))
	case missing > 0:
		pl.state(StateMoving, "%s missing; admission places the replacement", phrase.Count(missing, "replica is", "replicas are"))
	case pl.unexplained(o) > 0:
		pl.state(StateMoving, "%s admitted beyond the wanted replicas, and the cache does not show why yet", phrase.Count(pl.unexplained(o), "pod was", "pods were"))
		pl.recheck(pl.now.Add(time.Second))
	case pl.stranded(o) > 0:
		pl.state(StateWaiting, "%s for a node: %s", phrase.Count(pl.stranded(o), "replica waits", "replicas wait"), o.Contradiction.Message())
		pl.waitForNodes(o.Contradiction, pl.stranded(o))
	case pl.result.UnknownActual > 0:
		pl.state(StateWaiting, "%s of unknown capacity type: not scheduled yet, or on a node without a known capacity label", phrase.Count(pl.result.UnknownActual, "replica is", "replicas are"))
		pl.wait(Wait{Kind: WaitCapacity, Replicas: pl.result.UnknownActual}, "the replicas are not scheduled yet, or are on nodes without a known capacity label")
	case pl.result.Pending > 0:
		pl.state(StateMoving, "every replica is where it belongs; %s not ready yet", phrase.Count(pl.result.Pending, "replica is", "replicas are"))
	case pl.result.Released > 0:
		pl.state(StateMoving, "every replica is where it belongs; %s to be evicted", phrase.Count(pl.result.Released, "released pod waits", "released pods wait"))
	default:
		pl.state(StateConverged, "every replica is where it belongs")
	}
}

// stranded counts the pods that wait for nodes that their template does not allow.
func (pl *planner) stranded(o *ownerPods) int {
	n := 0
	for _, pod := range o.alive {
		if !pod.Bound && pod.Capacity != capacity.Unknown && o.Contradiction.LeavesOut(pod.Capacity) {
			n++
		}
	}
	return n
}

// mayMove checks what forbids moves whatever their number and direction, and names the state if something does.
func (pl *planner) mayMove(o *ownerPods, stalled bool) bool {
	todo := pl.excess + pl.advised
	switch {
	case pl.inTransit():
		pl.state(StateWaiting, "%s, or be deleted, after the fleet placement has set the workload to %s", pl.should(), phrase.Count(pl.policy.Fleet.Replicas, "replica"))
		pl.wait(Wait{Kind: WaitRollout, Replicas: todo}, "the fleet placement is about to change the number of replicas")
	case pl.movedByFleet():
		pl.state(StateWaiting, "%s after the fleet placement has replacements ready", pl.should())
		pl.wait(Wait{Kind: WaitRollout, Replicas: todo}, "the fleet placement moves replicas and has not planned with the current ones yet")
	case (pl.Rolling || o.Replicas != pl.Replicas) && !stalled:
		pl.state(StateWaiting, "%s after scaling or the rollout has finished", pl.should())
		pl.wait(Wait{Kind: WaitRollout, Replicas: todo}, "the workload is being scaled or rolled out")
	case pl.unexplained(o) > 0:
		pl.state(StateWaiting, "%s admitted beyond the wanted replicas, and the cache does not show why yet; moves wait for it", phrase.Count(pl.unexplained(o), "pod was", "pods were"))
		pl.wait(Wait{Kind: WaitUnexplained, Replicas: todo, Until: pl.now.Add(time.Second)}, "%s admitted beyond the wanted replicas, and the cache does not show why yet",
			phrase.Count(pl.unexplained(o), "pod was", "pods were"))
		pl.recheck(pl.now.Add(time.Second))
	case pl.from == capacity.OnDemand && o.Accounting.UnprovenUntil.After(pl.now): // moves to on-demand cost no floor, whatever is there
		until := o.Accounting.UnprovenUntil
		pl.state(StateWaiting, "%s; the hub has just taken over the member, and moves wait until its cache shows earlier moves", pl.should())
		pl.wait(Wait{Kind: WaitUnexplained, Replicas: pl.excess, Until: until}, "the hub has just taken over")
		pl.recheck(until)
	case pl.shut():
		pl.waitWindow(todo)
		pl.state(StateWaiting, "%s; %s", pl.should(), pl.reasonOf(WaitWindow))
	default:
		return true
	}
	return false
}

// should says what waits: replicas that should move for the mix, and those that should leave their nodes.
func (pl *planner) should() string {
	if pl.excess > 0 {
		return fmt.Sprintf("%s should move to %s", phrase.Count(pl.excess, "replica"), pl.from.Other())
	}
	return phrase.Count(pl.advised, "replica") + " should leave nodes at risk of interruption"
}

// unexplained returns how many pods too many were admitted lately, as the accounting or the pods here show: pods without a
// slot are not in the accounting.
func (pl *planner) unexplained(o *ownerPods) int {
	if pl.Ordinals {
		return o.Accounting.Unexplained
	}
	return max(o.Accounting.Unexplained, len(o.alive)+len(pl.promised(o))-o.Replicas)
}

// promised returns the reservations of an owner whose pods may still appear.
func (pl *planner) promised(o *ownerPods) []Reservation {
	reserved := o.Accounting.Reserved // the oldest first
	for len(reserved) > 0 && pl.now.Sub(reserved[0].At) >= SettleTime {
		reserved = reserved[1:]
	}
	return reserved
}

// moveExcess starts moves for the mix as far as those under way, the cool-down and the room on the other type allow it.
func (pl *planner) moveExcess(o *ownerPods) {
	to := pl.from.Other()
	todo := fmt.Sprintf("%s still to move from %s to %s", phrase.Count(pl.excess, "replica"), pl.from, to)
	if pl.waitsForNodes(o, to, pl.excess) {
		pl.state(StateMoving, "%s; %s", todo, pl.reasonOf(WaitReplacement))
		return
	}
	if until, cooling := pl.cooling(o, to); cooling {
		pl.waitCooldown(until, pl.excess)
		pl.state(StateMoving, "%s; the next batch waits for the cool-down", todo)
		return
	}
	budget := pl.budget(o, to)
	if budget <= 0 {
		pl.state(StateMoving, "%s; moved replicas must become ready first", todo)
		pl.wait(Wait{Kind: WaitReplacement, Replicas: pl.excess}, "moved replicas must become ready first")
		return
	}
	victims := pl.untried(pl.victims(o, pl.from))
	if pl.stayTried(o, len(victims)) {
		return
	}
	pl.startMoves(o, victims[:min(pl.excess, len(victims))], budget)
}

// waitsForNodes reports whether replicas wait for nodes of a capacity type: until those come, no other gives up its place to join
// them.
func (pl *planner) waitsForNodes(o *ownerPods, to capacity.Type, replicas int) bool {
	n := pl.unscheduled(o, to)
	if n > 0 {
		pl.wait(Wait{Kind: WaitReplacement, Replicas: replicas}, "%s for a node with %s capacity, and no other replica is moved there", phrase.Count(n, "replica waits", "replicas wait"), to)
	}
	return n > 0
}

func (pl *planner) waitCooldown(until time.Time, replicas int) {
	pl.wait(Wait{Kind: WaitCooldown, Replicas: replicas, Until: until}, "the next batch may start at %s", until.UTC().Format(time.RFC3339))
	pl.recheck(until)
}

// startMoves plans a batch out of the victims. A pod without a slot gets one first: what holds none cannot give it to its
// replacement. A ready pod that a disruption budget holds back is left out for the next one.
//
// The floor stands. A spot replica may always go: its replacement is on-demand. On-demand replicas go only while there are
// more than wanted, which is never fewer than the floor, and one that serves only while enough others do.
func (pl *planner) startMoves(o *ownerPods, victims []*Pod, budget int) {
	started, to := 0, pl.from.Other()
	spread := pl.spreadOf(o)
	for _, pod := range victims {
		if started == budget {
			break
		}
		switch {
		case pod.DoNotDisrupt:
			pl.protect(pod)
		case pod.Slot == NoSlot:
			budget-- // its place in the batch
		case pl.heldBack(spread, pod, to):
		case pl.leave(o, pod, PurposeMove, pl.why(o)):
			started++
			spread.remove(pod)
		case !pod.Ready:
			budget = started
		}
	}
	todo := fmt.Sprintf("%s should move from %s to %s", phrase.Count(pl.excess, "replica"), pl.from, pl.from.Other())
	switch {
	case started > 0:
		pl.state(StateMoving, "moving %d of %s from %s to %s", started, phrase.Count(pl.excess, "replica"), pl.from, pl.from.Other())
		pl.recheck(pl.now.Add(pl.settings.Cooldown))
	case pl.waiting(WaitBudget):
		pl.state(StateWaiting, "%s; a disruption budget allows none now", todo)
	case pl.waiting(WaitReplacement), pl.waiting(WaitWindow), pl.waiting(WaitProtected), pl.waiting(WaitTemplate):
		pl.state(StateWaiting, "%s; %s", todo, cmp.Or(pl.reasonOf(WaitReplacement), pl.reasonOf(WaitWindow), pl.reasonOf(WaitProtected), pl.reasonOf(WaitTemplate)))
	default:
		pl.state(StateMoving, "%s to move from %s to %s, once they have a slot", phrase.Count(pl.excess, "replica"), pl.from, pl.from.Other())
	}
}

// protect leaves a pod where it is that asks not to be disrupted.
func (pl *planner) protect(pod *Pod) {
	pl.hold(pod, WaitProtected)
	pl.wait(Wait{Kind: WaitProtected, Replicas: 1}, "the pods' annotations forbid disruption")
}
