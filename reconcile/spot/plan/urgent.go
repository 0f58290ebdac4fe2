package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// maxUrgent bounds how many pods of a workload one plan replaces for a drought or an interruption; the next plan goes on.
const maxUrgent = 100

// tallyOfUrgent counts what is urgent in a workload: pods that leave by this plan, and pods that should and wait.
type tallyOfUrgent struct{ doomed, doomedWait, pending int }

// replaceUrgent replaces the pods of nodes that go for certain, and pods that wait for capacity that has no room. Disruption
// windows and cool-downs do not count for them; disruption budgets do.
func (pl *planner) replaceUrgent() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if len(o.doomed) > 0 {
			pl.replaceDoomed(o)
		}
		pl.replaceWaiting(o)
	}
}

// replaceDoomed replaces the pods of nodes that go for certain: at once, all of them, where that is soon, and else in batches, the
// next when the replicas of the last one are ready. Released ones serve on until their replacements are ready; where pods cannot
// be released, the eviction is what makes a replacement start. A StatefulSet loses one ordinal at a time as long as there is time.
func (pl *planner) replaceDoomed(o *ownerPods) {
	slices.SortFunc(o.doomed, func(a, b *Pod) int {
		return cmp.Or(compareBool(a.Serves(), b.Serves()), compareBool(pl.pressing(b), pl.pressing(a)), byDeadline(a, b),
			cmp.Compare(pl.slotOf(o, b), pl.slotOf(o, a)), ByAge(a, b))
	})
	b := batch{room: pl.paceOfDoomed(o), oneByOne: pl.Ordinals && pl.incomplete(o)}
	for _, pod := range o.doomed {
		switch {
		case pod.Slot == NoSlot:
			// Only what has a slot is in the cache and in the accounting. Which one is all the same: it holds none.
			pl.result.Stamps = append(pl.result.Stamps, Stamp{Pod: pod.UID, Name: pod.Name, Slot: max(pl.slotOf(o, pod), 0)})
		case pl.urgent.doomed >= maxUrgent:
			pl.recheck(pl.now.Add(time.Second))
		case pl.staysDoomed(o, pod, &b):
		case pl.leave(o, pod, PurposeInterruption, doomReason(pod)):
			pl.urgent.doomed++
			b.oneByOne = pl.Ordinals
			if pod.Serves() {
				b.room--
			}
			continue
		}
		pl.urgent.doomedWait++
	}
}

// batch is what may start now of replacements that wait for one another.
type batch struct {
	room     int  // of those that have time
	oneByOne bool // no ordinal may go before another one serves
}

// staysDoomed reports whether a pod serves on for now on a node that goes, and notes what it waits for.
func (pl *planner) staysDoomed(o *ownerPods, pod *Pod, b *batch) bool {
	pressing := pl.pressing(pod)
	switch {
	case !pressing && pod.DoNotDisrupt:
		pl.protect(pod)
	case !pod.Serves():
		return false
	case b.oneByOne && !pl.lastMinute(pod):
		pl.hold(pod, WaitReplacement)
		pl.wait(Wait{Kind: WaitReplacement, Replicas: 1}, "one ordinal is replaced at a time")
	case pressing:
		return false
	case pl.waitsForNodes(o, pod.Capacity, 1):
		pl.hold(pod, WaitReplacement)
	case b.room <= 0:
		pl.hold(pod, WaitReplacement)
		pl.wait(Wait{Kind: WaitReplacement, Replicas: 1}, "moved replicas must become ready first")
	default:
		return false
	}
	return true
}

// incomplete reports whether an ordinal of a StatefulSet is missing, or does not serve, beside the doomed ones.
func (pl *planner) incomplete(o *ownerPods) bool {
	return len(o.alive)+len(o.doomed) < o.Replicas || slices.ContainsFunc(o.alive, func(p *Pod) bool { return !p.Ready })
}

// tellUrgent names the state of a workload in which something is urgent.
func (pl *planner) tellUrgent() {
	pl.tellSupply()
	u := &pl.urgent
	switch {
	case u.doomed > 0:
		pl.state(StateMoving, "replacing %s on nodes being terminated", phrase.Count(u.doomed, "replica"))
	case u.pending > 0:
		pl.state(StateMoving, "replacing %s for capacity that has no room", phrase.Count(u.pending, "replica that waits", "replicas that wait"))
	case u.doomedWait > 0:
		pl.state(StateWaiting, "%s on nodes being terminated; %s", phrase.Count(u.doomedWait, "replica is", "replicas are"), cmp.Or(pl.reasonOf(WaitBudget), pl.reasonOf(WaitReplacement), pl.reasonOf(WaitProtected), "they are assigned a slot first"))
	}
}

// doomReason says in a sentence why a pod is doomed.
func doomReason(pod *Pod) string {
	switch {
	case pod.Doom.Gone:
		return "its node " + pod.Doom.Node + " is gone"
	case pod.Advised():
		return "its node " + pod.Doom.Node + " is at risk of interruption: " + pod.Doom.Notice
	}
	return "its node " + pod.Doom.Node + " is being terminated: " + pod.Doom.Notice
}

// byDeadline orders doomed pods by the time at which their nodes go; those of which nobody knows it last.
func byDeadline(a, b *Pod) int {
	switch x, y := a.Doom.By, b.Doom.By; {
	case x.Equal(y):
		return 0
	case y.IsZero() || (!x.IsZero() && x.Before(y)):
		return -1
	}
	return 1
}
