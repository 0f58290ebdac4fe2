package spot

import (
	"slices"
	"time"
)

// finishReleases evicts released pods whose replacements are ready, and those that stand in for nobody any more.
func (pl *planner) finishReleases() {
	for _, pod := range pl.strays {
		pl.finish(pod, false, "it was released, and the ReplicaSet that it came from is gone")
	}
	for i := range pl.owners {
		if o := &pl.owners[i]; len(o.released) > 0 {
			pl.finishOwner(o)
		}
	}
}

// finishOwner keeps as many released pods of an owner as replicas are not made good yet; of them those whose nodes stay, and
// the newest. What was released for the mix ends within the disruption window, for its end is an eviction as well.
func (pl *planner) finishOwner(o *ownerPods) {
	slices.SortFunc(o.released, func(a, b *Pod) int {
		stays := compareBool(a.Doom != nil, b.Doom != nil)
		if stays == 0 {
			stays = b.Released.At.Compare(a.Released.At)
		}
		if stays == 0 {
			stays = byAge(b, a)
		}
		return stays
	})
	keep := pl.outstanding(o)
	for _, pod := range o.released {
		standsIn := keep > 0 && pod.serves()
		if standsIn {
			keep--
		}
		pl.finish(pod, standsIn, "its replacement is ready")
	}
}

// finish evicts a released pod unless it stands in for a replica, or may not go now.
func (pl *planner) finish(pod *Pod, standsIn bool, why string) {
	switch {
	case pl.lastMinute(pod):
		pl.evict(pod, PurposeFinish, doomReason(pod))
	case standsIn:
	case pod.Released.For == PurposeMove && pod.Doom == nil && pl.shut():
		pl.waitWindow(1)
		pl.hold(pod, WaitWindow)
	default:
		pl.evict(pod, PurposeFinish, why)
	}
}

// outstanding returns how many replacements of released pods are not ready: replicas that are missing, and those that came
// since the first release and do not serve yet. Replicas that were broken before are none of them.
//
// A replacement that nobody makes is waited for only so long: where a quota counts the released pod, its end is what lets
// the replacement be made.
func (pl *planner) outstanding(o *ownerPods) int {
	first := pl.now
	for _, pod := range o.released {
		if at := pod.Released.At; at.Before(first) {
			first = at
		}
	}
	n := 0
	if missing := o.Replicas - len(o.alive) - len(o.doomed); missing > 0 {
		if until := later(first, pl.lastChange(o)).Add(StuckAfter); pl.now.Before(until) {
			n = missing
			pl.recheck(until)
		}
	}
	for _, pod := range o.alive {
		if !pod.Ready && !pod.Created.Before(first.Truncate(time.Second)) {
			n++
		}
	}
	return n
}
