package shortage

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const (
	// relapseTime is how long after its end a decision is remembered: one that comes back goes on with its back-off.
	relapseTime = time.Hour
	// mostAfterRelapses is the longest that a decision stands between two probes that may cost a replica its node, and how long
	// it is remembered that a probe found room and no replica has tried yet.
	mostAfterRelapses = 24 * time.Hour
	// plainRelapses is how often in a row that has to happen to some requirements which a probe has in full, until it is believed that
	// something else keeps its replicas away, and not that others were faster.
	plainRelapses = 3
)

// ended is what is remembered of a decision that is over.
type ended struct {
	Decision
	at     time.Time
	probed bool // a probe found room
	proven bool // and so did a replica since
}

// probing reports whether a probe found room, and it is still to be seen whether a replica does.
func (e *ended) probing() bool { return e.probed && !e.proven }

// resume goes on with a decision that has come back.
func (e *ended) resume(v *decision) {
	v.Tries = e.Tries + 1
	if !e.proven {
		v.Relapses = e.Relapses
	}
	if e.probing() {
		v.Relapses++
	}
}

// doubtful reports whether a probe's word is not enough: it found room before and replicas did not, and the requirements have what no
// probe can have, or it happened time and again.
func (v *Decision) doubtful() bool {
	return v.Relapses > 0 && (v.Requirements.BeyondProbes() || v.Relapses >= plainRelapses)
}

// maxPast is how many bytes decisions take together, at most, that are over: endedBytes each, about, and their texts. Whoever may change a
// workload's template chooses both how long they are and how many.
const maxPast, endedBytes = 8 << 20, 512

// boundPast forgets the decisions that have been over for the longest, until the others fit.
func (d *Tracker) boundPast() {
	bytes := 0
	for text := range d.past {
		bytes += endedBytes + len(text)
	}
	for bytes > maxPast {
		first := ""
		for text, over := range d.past {
			if first == "" || over.at.Before(d.past[first].at) {
				first = text
			}
		}
		bytes -= endedBytes + len(first)
		delete(d.past, first)
	}
}

func (d *Tracker) forgetPast(now time.Time) {
	for text, over := range d.past {
		keep := relapseTime
		if over.probing() {
			keep = mostAfterRelapses
		}
		if now.Sub(over.at) > keep {
			delete(d.past, text)
		}
	}
	d.tried.forget(now.Add(-policy.TriedTime))
}

// prove takes in that a pod was bound: where a probe had found room for such pods, there is.
func (d *Tracker) prove(p *Pod) {
	for _, over := range d.past {
		if over.probing() && p.BoundAt.After(over.at) && p.Requirements.AtLeast(over.Requirements) {
			over.proven = true
		}
	}
}

// Probing reports whether a probe found room for pods of some requirements in a namespace and no replica has yet: they are moved there one at a time.
func (d *Tracker) Probing(shape capacity.Requirements, namespace string) bool {
	for _, over := range d.past {
		if over.probing() && over.appliesTo(namespace) && shape.AtLeast(over.Requirements) {
			return true
		}
	}
	return false
}

// Tried returns until when a replica is left where it is, for when it was moved here it found no node; zero: it was not. See
// [Pod.Replica].
func (d *Tracker) Tried(replica string) time.Time {
	at := d.tried.of(replica)
	if at.IsZero() {
		return at
	}
	return at.Add(policy.TriedTime)
}

// Recall takes in what a pod says that a process before this one found: at a time its replica was moved here and found no node. A
// time in the future is by another clock, and says nothing.
func (d *Tracker) Recall(replica string, at, now time.Time) {
	if at.After(now) || now.Sub(at) > policy.TriedTime {
		return
	}
	d.tried.add(replica, at)
}

// bindingShows reports whether a pod that was bound at a time may end a decision, or prove that it ended rightly.
func (d *Tracker) bindingShows(at time.Time) bool {
	for _, v := range d.decisions {
		if at.After(v.made) {
			return true
		}
	}
	for _, over := range d.past {
		if over.probing() && at.After(over.at) {
			return true
		}
	}
	return false
}

// watchful reports whether it matters which pods are bound: a decision stands, or something is still to be proven.
func (d *Tracker) watchful() bool {
	if len(d.decisions) > 0 {
		return true
	}
	for _, over := range d.past {
		if over.probing() {
			return true
		}
	}
	return false
}
