package plan

import (
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

const (
	// StandInTime is how long a released pod may stand in for its replacement.
	StandInTime = 6 * time.Hour
	// MostStandInTime is how long it may where it has to wait for a disruption window to end. A weekly window comes twice.
	MostStandInTime = 15 * 24 * time.Hour
	// StandInMargin is how long before a released pod ends by itself it is evicted: then it has time to end in order.
	StandInMargin = 5 * time.Minute
)

// finishReleases evicts released pods whose replacements are ready, and those that stand in for nobody any more.
func (pl *planner) finishReleases() {
	for _, pod := range pl.orphans {
		pl.evict(pod, PurposeFinish, "it was released, and its ReplicaSet no longer exists")
	}
	for i := range pl.owners {
		if o := &pl.owners[i]; len(o.released) > 0 {
			pl.finishOwner(o)
		}
	}
}

// finishOwner keeps as many released pods of an owner as replicas are not replaced yet; of them those that the floor needs, for a
// spot replica that is ready replaces none of the floor, then those whose nodes stay, and the newest. What was released for the mix
// ends within the disruption window, for its end is an eviction as well. Where the owner wants no replicas any more, its released
// pods are of a revision that nobody wants: they end at once.
func (pl *planner) finishOwner(o *ownerPods) {
	slices.SortFunc(o.released, func(a, b *Pod) int {
		stays := compareBool(a.Leaving(), b.Leaving())
		if stays == 0 {
			stays = b.Released.At.Compare(a.Released.At)
		}
		if stays == 0 {
			stays = ByAge(b, a)
		}
		return stays
	})
	superseded := o.Replicas == 0
	keep, ofFloor := 0, 0
	if !superseded {
		all, onDemand := pl.outstanding(o)
		ofFloor = min(pl.floor.lacking(onDemand), pl.onDemandStandIns(o.released))
		keep = max(all-ofFloor, 0)
	}
	for _, pod := range o.released {
		standsIn := false
		switch {
		case !pl.canStandIn(pod):
		case ofFloor > 0 && pod.Capacity == capacity.OnDemand:
			standsIn = true
			ofFloor--
		case keep > 0:
			standsIn = true
			keep--
		}
		pl.finish(o, pod, standsIn, superseded)
	}
}

func (pl *planner) onDemandStandIns(pods []*Pod) int {
	n := 0
	for _, pod := range pods {
		if pod.Capacity == capacity.OnDemand && pl.canStandIn(pod) {
			n++
		}
	}
	return n
}

// canStandIn reports whether a released pod serves and does not end now in any case: another stays in place of one that does.
func (pl *planner) canStandIn(pod *Pod) bool {
	return pod.Serves() && !pl.lastMinute(pod) && !pl.overdue(pod)
}

// finish evicts a released pod unless it stands in for a replica, or may not go now.
func (pl *planner) finish(o *ownerPods, pod *Pod, standsIn, superseded bool) {
	switch {
	case pl.lastMinute(pod):
		pl.evict(pod, PurposeFinish, interruptionReason(pod))
	case pl.overdue(pod):
		pl.evict(pod, PurposeFinish, "it was released at "+pod.Released.At.UTC().Format(time.RFC3339)+", and is evicted at "+pod.Released.Until.UTC().Format(time.RFC3339))
	case standsIn:
		if until, ended := pl.standsInUntil(pod); ended {
			o.stuck++
		} else {
			pl.recheck(until)
		}
	case superseded:
		pl.evict(pod, PurposeFinish, "it was released, and its ReplicaSet is scaled to zero")
	case pod.Released.For.Paced() && !pod.Leaving() && pl.policy.Window != nil && pl.shut():
		o.parked++
		pl.waitWindow(1)
		pl.hold(pod, WaitWindow)
	default:
		pl.evict(pod, PurposeFinish, "its replacement is ready")
	}
}

// standsInUntil returns until when a released pod that stands in for a replica is on the move, and whether that is over: then its
// replacement is stuck. A time far in the future was written by no hub, and says nothing.
func (pl *planner) standsInUntil(pod *Pod) (until time.Time, ended bool) {
	at := pod.Released.At
	until = at.Add(StuckAfter + time.Second)
	return until, !pl.now.Before(until) || at.After(pl.now.Add(StuckAfter))
}

// overdue reports whether a released pod has stood in for almost as long as it may; else it asks for another plan when it has.
func (pl *planner) overdue(pod *Pod) bool {
	if pod.Released.Until.IsZero() {
		return false
	}
	at := pod.Released.Until.Add(-StandInMargin)
	pl.recheck(at)
	return !pl.now.Before(at)
}

// standInUntil returns when a pod that is released now ends at the latest, with a hub or without: it has plenty of time for its
// replacement, and if it misses the disruption window that is open, for the next one.
func (pl *planner) standInUntil(purpose Purpose) time.Time {
	until := pl.now.Add(StandInTime)
	if w := pl.policy.Window; w != nil && purpose.Paced() {
		shuts := pl.now.Add(w.Duration)
		if opens := w.Next(shuts); !opens.IsZero() {
			shuts = opens.Add(w.Duration)
		}
		until = when.Earlier(when.Later(until, shuts.Add(time.Hour)), pl.now.Add(MostStandInTime))
	}
	return until.Truncate(time.Second)
}

// outstanding returns how many replacements of released pods are not ready: replicas that are missing, and those that came since the
// first release and do not serve yet. Replicas that were broken before are none of them. onDemand is how many replicas, of whatever
// pod they are the replacement, may soon serve on-demand: an autoscaler that drains nodes has others made, before a release and after
// it. Replicas whose nodes are gone are replaced soon.
//
// A replacement that nobody makes is waited for only so long: where a quota counts the released pod, its end is what lets
// the replacement be made.
func (pl *planner) outstanding(o *ownerPods) (all, onDemand int) {
	first := pl.now
	for _, pod := range o.released {
		if at := pod.Released.At; at.Before(first) {
			first = at
		}
	}
	if missing := o.Replicas - len(o.alive) - len(o.interrupted); missing > 0 {
		if until := when.Later(first, pl.lastChange(o)).Add(StuckAfter); pl.now.Before(until) {
			all, onDemand = missing, missing
			pl.recheck(until)
		}
	}
	for _, pod := range o.alive {
		if pl.available(pod) {
			continue
		}
		since := !pod.Created.Before(first.Truncate(time.Second))
		if since {
			all++
		}
		if pod.Capacity == capacity.OnDemand && (since || pl.startsUp(pod)) {
			onDemand++
		}
	}
	for _, pod := range o.interrupted {
		if pod.Capacity == capacity.OnDemand && !pl.available(pod) {
			onDemand++
		}
	}
	return all, onDemand
}

// startsUp reports whether a pod that does not serve may do so soon; else it is stuck. It asks for another plan when it will be.
func (pl *planner) startsUp(pod *Pod) bool {
	until := pod.UnreadySince.Add(StuckAfter)
	if !pl.now.Before(until) {
		return false
	}
	pl.recheck(until)
	return true
}
