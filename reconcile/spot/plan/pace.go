package plan

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

const (
	// ProvenFor is how long a replica that was moved, and is ready, proves that its capacity type has room.
	ProvenFor = 10 * time.Minute
	// stalledAfter is how long nothing must have come of a rollout for it to be stalled.
	stalledAfter = 10 * time.Minute
)

// limit returns how many replicas of an owner may be on the move at a time.
func (pl *planner) limit(o *ownerPods) int {
	if pl.Ordinals {
		return 1
	}
	return pl.settings.MaxMoves.Of(o.Replicas)
}

// limitTo is the limit of moves to a capacity type: one at a time where nobody knows yet whether there is room.
func (pl *planner) limitTo(o *ownerPods, to capacity.Type) int {
	if o.probing(to) {
		return 1
	}
	return pl.limit(o)
}

// budget returns how many replicas may start to move to a capacity type now: the limit less those on the move. Where moves there
// have only begun, the limit is one more than the replicas that have arrived lately and are ready: 1, 2, 4 and so on, so that it
// costs little to find out that there is no room.
func (pl *planner) budget(o *ownerPods, to capacity.Type) int {
	limit := pl.limitTo(o, to)
	t := pl.traffic(o, to.Other())
	n := min(limit, pl.proven(o, to)+1) - len(o.interrupted) - t.moving() - max(t.stuck-limit, 0)
	if pl.now.Before(pl.last.Add(pl.settings.Cooldown)) {
		n = min(n, limit-pl.recent(o))
	}
	return n
}

// paceOfInterrupted returns how many replicas of nodes that go at no known time may be replaced now.
func (pl *planner) paceOfInterrupted(o *ownerPods) int {
	limit := pl.limit(o)
	t := pl.traffic(o, capacity.Unknown)
	return limit - t.moving() - max(t.stuck-limit, 0)
}

// cooling returns when the next batch may start, and whether that is later. A batch goes with the one before as long as the limit
// was not reached yet, and moves there have only begun.
func (pl *planner) cooling(o *ownerPods, to capacity.Type) (until time.Time, cooling bool) {
	until = pl.last.Add(pl.settings.Cooldown)
	if !pl.now.Before(until) {
		return until, false
	}
	limit := pl.limitTo(o, to)
	return until, pl.proven(o, to) >= limit-1 || pl.recent(o) >= limit
}

// proven counts the replicas that were moved to a capacity type, and have been ready there for not too long.
func (pl *planner) proven(o *ownerPods, to capacity.Type) int {
	n := 0
	for _, pod := range o.alive {
		if pod.Moved && pod.Capacity == to && pl.now.Sub(pod.UnreadySince) < ProvenFor && pl.available(pod) {
			n++
		}
	}
	return n
}

// recent counts the replicas that may be of a batch within the cool-down: those that came since, were released since, are missing,
// or leave by this plan. Creation times are whole seconds.
func (pl *planner) recent(o *ownerPods) int {
	since := pl.now.Add(-pl.settings.Cooldown).Truncate(time.Second)
	came, released := max(o.Replicas-len(o.alive)-len(o.interrupted), 0), 0
	for _, pods := range [...][]*Pod{o.alive, o.interrupted} {
		for _, pod := range pods {
			if pl.going(pod) || !pod.Created.Before(since) {
				came++
			}
		}
	}
	for _, pod := range o.released {
		if !pod.Released.At.Before(since) {
			released++
		}
	}
	return max(came, released)
}

// traffic is what is on the move of an owner, interrupted pods aside: pods that are going away, released ones included, and, mostly the
// same ones seen from the other end, replicas that are missing or not available yet. Beside them are those that leave by this
// plan. Stuck ones do not come up.
type traffic struct{ going, coming, leaving, stuck int }

func (t *traffic) moving() int { return max(t.going, t.coming) + t.leaving }

// traffic counts what is on the move. Pods that are not available where they should leave, if that is anywhere, are no obstacle:
// they are the first to go.
func (pl *planner) traffic(o *ownerPods, from capacity.Type) traffic {
	t := traffic{going: o.standIns() + len(pl.orphans), coming: max(o.Replicas-len(o.alive)-len(o.interrupted), 0)}
	for _, pod := range o.dying {
		if pod.GoneBy.IsZero() || pl.now.Before(pod.GoneBy) {
			t.going++
			pl.recheck(pod.GoneBy)
		}
	}
	if t.coming > 0 && t.going == 0 {
		// A replica that nobody makes, for lack of quota perhaps, is stuck as well.
		if quiet := pl.lastChange(o).Add(StuckAfter); pl.now.Before(quiet) {
			pl.recheck(quiet)
		} else {
			t.coming, t.stuck = 0, t.coming
		}
	}
	for _, pod := range o.alive {
		switch {
		case pl.going(pod):
			t.leaving++
		case pl.available(pod) || (pod.Capacity == from && from != capacity.Unknown):
		case pod.Ready || pl.now.Before(pod.UnreadySince.Add(StuckAfter)):
			t.coming++
			pl.recheck(pod.UnreadySince.Add(StuckAfter))
		default:
			t.stuck++
		}
	}
	return t
}

// standIns counts the released pods that are on the move: not those that only wait for a window, nor those whose replacements do
// not come up.
func (o *ownerPods) standIns() int { return len(o.released) - o.parked - o.stuck }

// unscheduled counts the replicas for which the scheduler has found no node of a capacity type.
func (pl *planner) unscheduled(o *ownerPods, capacityType capacity.Type) int {
	n := 0
	for _, pod := range o.alive {
		if pod.Capacity == capacityType && !pod.Bound && !pod.UnschedulableSince.IsZero() && !pl.going(pod) {
			n++
		}
	}
	return n
}

// lastMove returns when the last batch was: what this process remembers, and what the cluster shows of a process before
// it, which is the newest pod that was released for the mix, or the newest replacement of a pod that we took away. A
// replacement that came soon after a batch that we remember is of that batch. Times in the cluster are whole seconds, hence
// the second; one in the future is by another clock and says nothing.
func (pl *planner) lastMove() time.Time {
	last := pl.LastMove
	for i := range pl.Pods {
		pod := &pl.Pods[i]
		var shown time.Time
		switch {
		case pod.Released != nil && pod.Released.For.Paced():
			shown = pod.Released.At
		case pod.Moved:
			shown = pod.Created
		}
		if shown.IsZero() || shown.After(pl.now) || shown.Before(pl.LastMove.Add(SettleTime)) {
			continue
		}
		last = when.Later(last, shown.Add(time.Second))
	}
	return last
}

// lastChange returns when something last happened to the owner's pods that their creation or our moves show.
func (pl *planner) lastChange(o *ownerPods) time.Time {
	last := pl.last
	for _, pod := range o.alive {
		if pod.Created.After(last) {
			last = pod.Created
		}
	}
	return last
}
