package spot

import (
	"cmp"
	"slices"
	"time"
)

// move sets the state and picks the batch of moves for the mix that may start now.
//
// Only what is visibly too much moves: pods beyond the wanted number of their type. What is missing comes by itself, and
// admission sends it to the right type. So there are never more moves than the counts differ.
func (pl *planner) move() {
	o := pl.sole()
	if o == nil {
		pl.withoutOwner()
		return
	}
	pl.findExcess(o)
	if pl.excess > 0 && pl.stayFor(o) {
		return
	}
	if pl.excess == 0 {
		pl.atRest(o)
		return
	}
	if o.Contradiction.leavesOut(pl.from.Other()) {
		pl.stayWhereTheyFit(o)
		return
	}
	if !pl.mayMove(o) {
		return
	}
	budget := pl.budget(o)
	if budget <= 0 {
		pl.state(StateMoving, "%s still to move from %s to %s; replicas on the move have to be ready first", count(pl.excess, "replica"), pl.from, pl.from.Other())
		pl.wait(Wait{Kind: WaitReplacement, Replicas: pl.excess}, "replicas on the move have to be ready first")
		return
	}
	victims := pl.untried(pl.victims(o, pl.from))
	if pl.stayTried(o, len(victims)) {
		return
	}
	pl.startMoves(o, victims[:min(pl.excess, len(victims))], budget)
}

// withoutOwner is for workloads of several ReplicaSets, or of none.
func (pl *planner) withoutOwner() {
	switch {
	case pl.Replicas == 0:
		pl.state(StateConverged, "no replicas are wanted")
	case pl.result.SpotActual > pl.result.SpotWanted:
		pl.state(StateWaiting, "replicas move when the rollout is through; new ones are placed as they come")
		pl.wait(Wait{Kind: WaitRollout, Replicas: pl.result.SpotActual - pl.result.SpotWanted}, "the rollout is not through")
	default:
		pl.state(StateMoving, "a rollout is under way; replicas are placed as they come")
	}
}

// findExcess finds the capacity type of which there are more pods than wanted. There is at most one: with no more pods than
// replicas, both cannot be. With more pods than replicas the owner takes some away first.
func (pl *planner) findExcess(o *ownerPods) {
	if len(o.alive) > o.Replicas {
		return
	}
	var have tally
	for _, pod := range o.alive {
		if _, going := pl.moving[pod.UID]; !going {
			have.add(pod.Capacity, 1)
		}
	}
	for _, capacity := range []Capacity{Spot, OnDemand} {
		if excess := have.of(capacity) - pl.mix.Wanted(capacity, o.Replicas); excess > pl.excess {
			pl.excess, pl.from = excess, capacity
		}
	}
}

// stayWhereTheyFit leaves replicas where they are that belong on nodes that their template does not allow: their replacements
// could only wait.
func (pl *planner) stayWhereTheyFit(o *ownerPods) {
	pl.state(StateWaiting, "%s on %s: %s", count(pl.excess, "replica stays", "replicas stay"), pl.from, o.Contradiction.reason())
	pl.waitForNodes(o.Contradiction, pl.excess)
	pl.excess, pl.from = 0, Unknown
}

// atRest names the state of a workload without excess.
func (pl *planner) atRest(o *ownerPods) {
	missing := o.Replicas - len(o.alive)
	switch {
	case pl.Rolling || o.Replicas != pl.Replicas:
		pl.state(StateMoving, "the workload's controller is at work; replicas are placed as they come")
	case missing < 0:
		pl.state(StateMoving, "there are %s more than replicas wanted, and about to go", count(-missing, "pod"))
	case missing > 0:
		pl.state(StateMoving, "%s missing; admission places the replacement", count(missing, "replica is", "replicas are"))
	case pl.unexplained(o) > 0:
		pl.state(StateMoving, "%s admitted that the cache does not explain yet", count(pl.unexplained(o), "pod was", "pods were"))
		pl.recheck(pl.now.Add(time.Second))
	case pl.stranded(o) > 0:
		pl.state(StateWaiting, "%s for a node: %s", count(pl.stranded(o), "replica waits", "replicas wait"), o.Contradiction.reason())
		pl.waitForNodes(o.Contradiction, pl.stranded(o))
	case pl.result.UnknownActual > 0:
		pl.state(StateWaiting, "%s of unknown capacity type: no node has them yet, or none of the known node labels tells", count(pl.result.UnknownActual, "replica is", "replicas are"))
		pl.wait(Wait{Kind: WaitCapacity, Replicas: pl.result.UnknownActual}, "no node has the replicas yet, or none of the known node labels tells its capacity type")
	case pl.result.Pending > 0:
		pl.state(StateMoving, "every replica is where it belongs; %s not ready yet", count(pl.result.Pending, "replica is", "replicas are"))
	case pl.result.Released > 0:
		pl.state(StateMoving, "every replica is where it belongs; %s for its end", count(pl.result.Released, "released pod waits", "released pods wait"))
	default:
		pl.state(StateConverged, "every replica is where it belongs")
	}
}

// stranded counts the pods that wait for nodes that their template does not allow.
func (pl *planner) stranded(o *ownerPods) int {
	n := 0
	for _, pod := range o.alive {
		if !pod.Bound && pod.Capacity != Unknown && o.Contradiction.leavesOut(pod.Capacity) {
			n++
		}
	}
	return n
}

// mayMove checks everything that forbids moves whatever their number, and names the state if something does.
func (pl *planner) mayMove(o *ownerPods) bool {
	todo := count(pl.excess, "replica")
	switch {
	case pl.Rolling || o.Replicas != pl.Replicas:
		pl.state(StateWaiting, "%s should move to %s when the workload's controller is at rest", todo, pl.from.Other())
		pl.wait(Wait{Kind: WaitRollout, Replicas: pl.excess}, "the workload's controller is at work")
	case pl.unexplained(o) > 0:
		pl.state(StateWaiting, "%s admitted that the cache does not explain yet; moves wait for it", count(pl.unexplained(o), "pod was", "pods were"))
		pl.wait(Wait{Kind: WaitUnexplained, Replicas: pl.excess, Until: pl.now.Add(time.Second)}, "%s admitted that the cache does not explain yet",
			count(pl.unexplained(o), "pod was", "pods were"))
		pl.recheck(pl.now.Add(time.Second))
	case pl.from == OnDemand && o.Accounting.UnprovenUntil.After(pl.now): // moves to on-demand cost no floor, whatever is there
		until := o.Accounting.UnprovenUntil
		pl.state(StateWaiting, "%s should move to spot; the hub has just taken over, and moves wait until its cache shows what was done before", todo)
		pl.wait(Wait{Kind: WaitUnexplained, Replicas: pl.excess, Until: until}, "the hub has just taken over")
		pl.recheck(until)
	case pl.shut():
		opens := pl.policy.Window.Next(pl.now)
		pl.state(StateWaiting, "%s should move to %s; the disruption window opens at %s", todo, pl.from.Other(), opens.UTC().Format(time.RFC3339))
		pl.waitWindow(pl.excess)
	case pl.now.Before(pl.lastMove().Add(pl.settings.Cooldown)):
		until := pl.lastMove().Add(pl.settings.Cooldown)
		pl.state(StateMoving, "%s still to move from %s to %s; the next batch waits for the cool-down", todo, pl.from, pl.from.Other())
		pl.wait(Wait{Kind: WaitCooldown, Replicas: pl.excess, Until: until}, "the next batch may start at %s", until.UTC().Format(time.RFC3339))
		pl.recheck(until)
	default:
		return true
	}
	return false
}

// shut tells whether the workload has a disruption window, and it is not open.
func (pl *planner) shut() bool { return pl.policy.Window != nil && !pl.policy.Window.Contains(pl.now) }

func (pl *planner) waitWindow(replicas int) {
	opens := pl.policy.Window.Next(pl.now)
	pl.wait(Wait{Kind: WaitWindow, Replicas: replicas, Until: opens}, "the disruption window opens at %s", opens.UTC().Format(time.RFC3339))
	pl.recheck(opens)
}

// unexplained returns how many pods too many were admitted lately, as the accounting or the pods here tell: pods without a
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

// lastMove returns when the last batch was: what this process remembers, and what the cluster shows of a process before
// it, which is the newest pod that was released for the mix, or the newest replacement of a pod that we took away. A
// replacement that came soon after a batch that we remember is of that batch. Times in the cluster are whole seconds, hence
// the second; one in the future is by another clock and tells nothing.
func (pl *planner) lastMove() time.Time {
	last := pl.LastMove
	for i := range pl.Pods {
		pod := &pl.Pods[i]
		var shown time.Time
		switch {
		case pod.Released != nil && pod.Released.For == PurposeMove:
			shown = pod.Released.At
		case pod.Moved:
			shown = pod.Created
		}
		if shown.IsZero() || shown.After(pl.now) || shown.Before(pl.LastMove.Add(SettleTime)) {
			continue
		}
		last = later(last, shown.Add(time.Second))
	}
	return last
}

// budget returns how many replicas may start to move now: the limit less those on the move. On the move are pods that are
// going away, doomed and released ones included, and, mostly the same ones seen from the other end, replicas that are missing
// or not ready where they went. Pods that are not ready where they should leave are no obstacle: they are the first to go.
func (pl *planner) budget(o *ownerPods) int {
	limit := pl.settings.MaxMoves.Of(o.Replicas)
	if pl.Ordinals || pl.oneByOne(o) {
		limit = 1
	}
	going := len(o.doomed) + len(o.released) + len(pl.strays)
	for _, pod := range o.dying {
		if pod.GoneBy.IsZero() || pl.now.Before(pod.GoneBy) {
			going++
			pl.recheck(pod.GoneBy)
		}
	}
	coming, stuck := o.Replicas-len(o.alive), 0
	if coming > 0 && going == 0 {
		// A replica that nobody makes, for want of quota perhaps, is stuck as well.
		if quiet := pl.lastChange(o).Add(StuckAfter); pl.now.Before(quiet) {
			pl.recheck(quiet)
		} else {
			coming, stuck = 0, coming
		}
	}
	for _, pod := range o.alive {
		if _, urgent := pl.moving[pod.UID]; urgent {
			coming++
			continue
		}
		if pod.Ready || pod.Capacity == pl.from {
			continue
		}
		if until := pod.UnreadySince.Add(StuckAfter); pl.now.Before(until) {
			coming++
			pl.recheck(until)
		} else {
			stuck++
		}
	}
	return limit - max(going, coming) - max(stuck-limit, 0)
}

// lastChange returns when something last happened to the owner's pods that their creation or our moves tell.
func (pl *planner) lastChange(o *ownerPods) time.Time {
	last := pl.lastMove()
	for _, pod := range o.alive {
		if pod.Created.After(last) {
			last = pod.Created
		}
	}
	return last
}

// victims returns the alive pods of a type in the order in which they are moved: those that do not serve anyway, then
// those whose slot is of the other type, then from the highest slot down, the youngest first. Of a StatefulSet the highest
// ordinal goes first.
func (pl *planner) victims(o *ownerPods, capacity Capacity) []*Pod {
	var pods []*Pod
	for _, pod := range o.alive {
		if _, going := pl.moving[pod.UID]; pod.Capacity == capacity && !going {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int {
		order := cmp.Or(compareBool(a.Ready, b.Ready), compareBool(a.Bound, b.Bound))
		if order == 0 && !pl.Ordinals {
			order = compareBool(pl.mix.Of(a.Slot) == capacity, pl.mix.Of(b.Slot) == capacity)
		}
		return cmp.Or(order, cmp.Compare(pl.slotOf(o, b), pl.slotOf(o, a)), byAge(b, a))
	})
	return pods
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

// startMoves plans a batch out of the victims. A pod without a slot gets one first: what holds none cannot give it to its
// replacement. A ready pod that a disruption budget holds back is left out for the next one.
//
// The floor stands. A spot replica may always go: its replacement is on-demand. On-demand replicas go only while there are
// more than wanted, which is never fewer than the floor; those that are not ready go first, so when a ready one goes, no
// other kind is left, and OnDemand(n) ≥ min(floor, n) ready ones stay behind.
func (pl *planner) startMoves(o *ownerPods, victims []*Pod, budget int) {
	started := 0
	for _, pod := range victims {
		if started == budget {
			break
		}
		switch {
		case pod.Slot == NoSlot:
			budget-- // its place in the batch
		case pl.leave(o, pod, PurposeMove, pl.why(o)):
			started++
		case !pod.Ready:
			budget = started
		}
	}
	switch {
	case started > 0:
		pl.state(StateMoving, "moving %d of %s from %s to %s", started, count(pl.excess, "replica"), pl.from, pl.from.Other())
		pl.recheck(pl.now.Add(pl.settings.Cooldown))
	case pl.waiting(WaitBudget):
		pl.state(StateWaiting, "%s should move from %s to %s; a disruption budget allows none now", count(pl.excess, "replica"), pl.from, pl.from.Other())
	default:
		pl.state(StateMoving, "%s to move from %s to %s, once they have a slot", count(pl.excess, "replica"), pl.from, pl.from.Other())
	}
}
