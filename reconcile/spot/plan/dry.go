package plan

import (
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// dry reports whether spot has no room for the owner's pods, and onDemandDry the same of on-demand.
func (o *ownerPods) dry() bool         { return !o.DrySince.IsZero() }
func (o *ownerPods) onDemandDry() bool { return !o.OnDemandDrySince.IsZero() }

// dryOf reports whether capacity of a type has no room for the owner's pods, and since when.
func (o *ownerPods) dryOf(capacityType capacity.Type) (since time.Time, dry bool) {
	since = o.DrySince
	if capacityType == capacity.OnDemand {
		since = o.OnDemandDrySince
	}
	return since, !since.IsZero()
}

// on counts the owner's pods on a capacity type that count as its replicas.
func (pl *planner) on(o *ownerPods, capacityType capacity.Type) int {
	n := 0
	for _, pod := range o.alive {
		if pod.Capacity == capacityType && !pl.going(pod) {
			n++
		}
	}
	return n
}

// replaceWaiting replaces pods that wait for capacity that has no room, by pods of the type that has. Where neither has, what
// waits stays: to go to and fro would only cost its place in the queue. The on-demand floor waits for on-demand capacity.
func (pl *planner) replaceWaiting(o *ownerPods) {
	switch {
	case o.dry() && o.onDemandDry():
	case o.dry():
		pl.replacePending(o, capacity.Spot, len(o.alive))
	case o.onDemandDry() && pl.mix.TakesSpot(pl.on(o, capacity.Spot)):
		pl.replacePending(o, capacity.OnDemand, pl.on(o, capacity.OnDemand)-pl.mix.Floor)
	}
}

// replacePending replaces pods of an owner that no node of a type has room for, at most so many, from the highest slot down;
// admission sends the replacements to the other type. They serve nobody, so it costs nothing. Where the owner is about to take
// pods away, it takes these first.
func (pl *planner) replacePending(o *ownerPods, capacityType capacity.Type, most int) {
	since, _ := o.dryOf(capacityType)
	why := "it waits for " + string(capacityType) + " capacity, which has had no room for such pods since " + since.UTC().Format(time.RFC3339)
	surplus := max(len(o.alive)-o.Replicas, 0)
	for _, pod := range slices.Backward(o.alive) {
		switch {
		case pod.Capacity != capacityType || !pod.Waiting() || pod.NodeComing || pod.Slot == NoSlot || pl.going(pod):
		case surplus > 0:
			surplus--
		case most <= 0:
			return
		case pl.urgent.pending >= maxUrgent:
			pl.recheck(pl.now.Add(time.Second))
			return
		case pl.evict(pod, PurposeInsufficientCapacity, why):
			pl.urgent.pending++
			most--
		}
	}
}

// floorLacks reports whether the floor has fewer replicas than it wants, and none waits for a node already.
func (pl *planner) floorLacks(o *ownerPods) bool {
	waits := func(p *Pod) bool { return p.Capacity == capacity.OnDemand && !p.Bound }
	return pl.on(o, capacity.OnDemand) < min(pl.mix.Floor, o.Replicas) && !slices.ContainsFunc(o.alive, waits)
}

// stayFor leaves replicas where they are that belong on a type that has no room for them. What the floor lacks moves all the
// same, one replica at a time: an on-demand replica that waits is one that an autoscaler can bring a node for.
func (pl *planner) stayFor(o *ownerPods) (stays bool) {
	to := pl.from.Other()
	since, dry := o.dryOf(to)
	if !dry || (to == capacity.OnDemand && pl.floorLacks(o)) {
		return false
	}
	why := string(to) + " has had no room for such pods since " + since.UTC().Format(time.RFC3339)
	if to == capacity.Spot && o.Contradiction == ContradictionSpot {
		why = o.Contradiction.Message()
	}
	where := "on " + string(pl.from)
	if pl.from == capacity.OnDemand {
		where = "on-demand"
	}
	pl.state(StateWaiting, "%s %s: %s", phrase.Count(pl.excess, "replica stays", "replicas stay"), where, why)
	pl.wait(Wait{Kind: WaitDry, Replicas: pl.excess, Since: since}, "%s", why)
	pl.excess, pl.from = 0, capacity.Unknown
	return true
}

// probing reports whether nobody knows yet that a capacity type has room for the owner's pods.
func (o *ownerPods) probing(capacityType capacity.Type) bool {
	_, dry := o.dryOf(capacityType)
	return dry || (capacityType == capacity.Spot && o.SpotProbing) || (capacityType == capacity.OnDemand && o.OnDemandProbing)
}

// untried leaves out the replicas that were moved before and found no node: ordinals, for other replacements have names of their own.
func (pl *planner) untried(pods []*Pod) []*Pod {
	if !pl.Ordinals {
		return pods
	}
	return slices.DeleteFunc(pods, func(p *Pod) bool { return pl.now.Before(p.TriedUntil) })
}

// stayTried leaves replicas where they are that were moved before and found no node. It reports whether that is all that is left
// to move.
func (pl *planner) stayTried(o *ownerPods, untried int) bool {
	if untried > 0 {
		return false
	}
	var until time.Time
	for _, pod := range o.alive {
		if pl.now.Before(pod.TriedUntil) {
			until = when.Earlier(until, pod.TriedUntil)
		}
	}
	why := "no " + string(pl.from.Other()) + " node had room for them when they were moved"
	pl.state(StateWaiting, "%s: %s", phrase.Count(pl.excess, "replica stays", "replicas stay"), why)
	pl.wait(Wait{Kind: WaitDry, Replicas: pl.excess, Until: until}, "%s", why)
	pl.recheck(until)
	pl.excess, pl.from = 0, capacity.Unknown
	return true
}

// noteSupply reports how far the ladder of fall-backs goes for each owner: a node that is coming, the other type, nothing.
func (pl *planner) noteSupply() {
	for i := range pl.owners {
		o := &pl.owners[i]
		pl.noteComing(o)
		switch spot, onDemand := o.DrySince, o.OnDemandDrySince; {
		case o.Contradiction == ContradictionSpot && o.dry():
			pl.note("%s: new replicas go on-demand, and a probe pod requests such a node from time to time", o.Contradiction.Message())
		case o.dry():
			pl.note("spot has had no room for pods of %s since %s: new replicas go on-demand", o.Name, spot.UTC().Format(time.RFC3339))
		case o.onDemandDry() && pl.mix.TakesSpot(pl.on(o, capacity.Spot)):
			pl.note("on-demand has had no room for pods of %s since %s: new replicas above the floor of %d go to spot", o.Name, onDemand.UTC().Format(time.RFC3339), pl.mix.Floor)
		case o.onDemandDry():
			pl.note("on-demand has had no room for pods of %s since %s: replicas wait for it, because none belongs on spot", o.Name, onDemand.UTC().Format(time.RFC3339))
		}
		if o.dry() && o.onDemandDry() {
			pl.note("on-demand has had no room for them either since %s: replicas wait", o.OnDemandDrySince.UTC().Format(time.RFC3339))
		}
	}
}

// noteComing reports replicas that wait for nodes that are on their way.
func (pl *planner) noteComing(o *ownerPods) {
	var coming capacity.Tally
	for _, pod := range o.alive {
		if pod.NodeComing {
			coming.Add(pod.Capacity, 1)
		}
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if n := coming.Of(capacityType); n > 0 {
			pl.note("%s for %s capacity, and a node is being created", phrase.Count(n, "replica of "+o.Name+" waits", "replicas of "+o.Name+" wait"), capacityType)
		}
	}
}
