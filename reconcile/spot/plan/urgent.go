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
type tallyOfUrgent struct{ interrupted, interruptedWait, pending int }

// replaceUrgent replaces the pods of nodes that go for certain, and pods that wait for capacity that has no room. Disruption
// windows and cool-downs do not count for them; disruption budgets do.
func (pl *planner) replaceUrgent() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if len(o.interrupted) > 0 {
			pl.replaceInterrupted(o)
		}
		pl.replaceWaiting(o)
	}
}

// replaceInterrupted replaces the pods of nodes that go for certain: at once, all of them, where that is soon, and else in batches, the
// next when the replicas of the last one are ready. Released ones serve on until their replacements are ready; where pods cannot
// be released, the eviction is what makes a replacement start. A StatefulSet loses one ordinal at a time as long as there is time.
func (pl *planner) replaceInterrupted(o *ownerPods) {
	slices.SortFunc(o.interrupted, func(a, b *Pod) int {
		return cmp.Or(compareBool(a.Serves(), b.Serves()), compareBool(pl.pressing(b), pl.pressing(a)), byDeadline(a, b),
			cmp.Compare(pl.slotOf(o, b), pl.slotOf(o, a)), ByAge(a, b))
	})
	b := batch{room: pl.paceOfInterrupted(o), oneByOne: pl.Ordinals && pl.incomplete(o)}
	for _, pod := range o.interrupted {
		switch {
		case pod.Slot == NoSlot:
			// Only what has a slot is in the cache and in the accounting. Which one is all the same: it holds none.
			pl.result.Assignments = append(pl.result.Assignments, Assignment{Pod: pod.UID, Name: pod.Name, Slot: max(pl.slotOf(o, pod), 0)})
		case pl.urgent.interrupted >= maxUrgent:
			pl.recheck(pl.now.Add(time.Second))
		case pl.staysInterrupted(o, pod, &b):
		case pl.leave(o, pod, PurposeInterruption, interruptionReason(pod)):
			pl.urgent.interrupted++
			b.oneByOne = pl.Ordinals
			if pod.Serves() {
				b.room--
			}
			continue
		}
		pl.urgent.interruptedWait++
	}
}

// batch is what may start now of replacements that wait for one another.
type batch struct {
	room     int  // of those that have time
	oneByOne bool // no ordinal may go before another one serves
}

// staysInterrupted reports whether a pod serves on for now on a node that goes, and notes what it waits for.
func (pl *planner) staysInterrupted(o *ownerPods, pod *Pod, b *batch) bool {
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

// incomplete reports whether an ordinal of a StatefulSet is missing, or does not serve, beside the interrupted ones.
func (pl *planner) incomplete(o *ownerPods) bool {
	return len(o.alive)+len(o.interrupted) < o.Replicas || slices.ContainsFunc(o.alive, func(p *Pod) bool { return !p.Ready })
}

// noteUrgent names the state of a workload in which something is urgent.
func (pl *planner) noteUrgent() {
	pl.noteSupply()
	u := &pl.urgent
	switch {
	case u.interrupted > 0:
		pl.state(StateMoving, "replacing %s on nodes being terminated", phrase.Count(u.interrupted, "replica"))
	case u.pending > 0:
		pl.state(StateMoving, "replacing %s for capacity that has no room", phrase.Count(u.pending, "replica that waits", "replicas that wait"))
	case u.interruptedWait > 0:
		pl.state(StateWaiting, "%s on nodes being terminated; %s", phrase.Count(u.interruptedWait, "replica is", "replicas are"), cmp.Or(pl.reasonOf(WaitBudget), pl.reasonOf(WaitReplacement), pl.reasonOf(WaitProtected), "they are assigned a slot first"))
	}
}

// interruptionReason says in a sentence why a pod is interrupted.
func interruptionReason(pod *Pod) string {
	switch {
	case pod.Interruption.Gone:
		return "its node " + pod.Interruption.Node + " was deleted"
	case pod.Advised():
		return "its node " + pod.Interruption.Node + " is at risk of interruption: " + pod.Interruption.Notice
	}
	return "its node " + pod.Interruption.Node + " is being terminated: " + pod.Interruption.Notice
}

// byDeadline orders interrupted pods by the time at which their nodes go; those of which nobody knows it last.
func byDeadline(a, b *Pod) int {
	switch x, y := a.Interruption.By, b.Interruption.By; {
	case x.Equal(y):
		return 0
	case y.IsZero() || (!x.IsZero() && x.Before(y)):
		return -1
	}
	return 1
}
