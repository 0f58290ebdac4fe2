package shortage

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

const (
	// BindTime is how long after the last sign of a node the pods may take to be bound to it.
	BindTime = 30 * time.Second
	// patienceHalves is the time after which a learned start time counts for half.
	patienceHalves = 24 * time.Hour
)

// sign is what is known about a node that comes for something.
type sign struct {
	coming bool
	last   time.Time // when there was last a sign; zero: there was none
}

func (s *sign) see(coming bool, now time.Time) {
	s.coming = coming
	if coming {
		s.last = now
	}
}

// until returns when the patience with something is over that has waited since a time: after its own time or, where there is or
// was a sign of a node, when that node must have come.
func (s *sign) until(since time.Time, own, node time.Duration) time.Time {
	over, latest := since.Add(own), since.Add(max(own, node))
	switch {
	case s.coming:
		return latest
	case !s.last.IsZero():
		if bound := when.Later(over, s.last.Add(BindTime)); bound.Before(latest) {
			return bound
		}
		return latest
	}
	return over
}

// waiting is a pod that waits for a node.
type waiting struct {
	Pod
	sign
}

// StartTimes remembers how long nodes of a member took from the first pod that waited for them until they took pods. It is for
// members whose autoscaler gives no sign that can be read. It follows from the pods and nodes that are there, so that a restart finds
// it again.
type StartTimes struct {
	longest time.Duration
	at      time.Time // when that node came
}

// of returns the longest start time that still counts: one that was not seen again for long counts forever less.
func (s *StartTimes) of(now time.Time) time.Duration {
	halvings := int(now.Sub(s.at) / patienceHalves)
	if s.longest == 0 || halvings > 16 {
		return 0
	}
	return s.longest >> max(halvings, 0)
}

// learn takes in that a node which came at some time had taken so long. The same may be reported again.
func (s *StartTimes) learn(took time.Duration, at, now time.Time) {
	seen := StartTimes{took, at}
	if of := seen.of(now); of > 0 && of >= s.of(now) {
		*s = seen
	}
}

// learn takes in that a node took a pod of those that had waited since a time. It returns how long nodes take if the node came
// after they began to wait, and soon enough to have been made for them.
func (d *Tracker) learn(waited, joined, now time.Time) {
	if waited.IsZero() || !joined.After(waited) {
		return
	}
	if took := joined.Sub(waited); took <= d.settings.NodeStart {
		d.starts.learn(took, joined, now)
	}
}

// Started takes in what a pod and its node show of the time that nodes take: the node was made after the pod, which therefore waited
// for it. It may be called for every pod again and again.
func (d *Tracker) Started(pod, nodeMade, nodeJoined, now time.Time) {
	if nodeMade.After(pod) {
		d.learn(pod, nodeJoined, now)
	}
}

// patience is how long a pod may wait of which there is no sign: at least twice as long as nodes were seen to take.
func (d *Tracker) patience(timeout time.Duration, now time.Time) time.Duration {
	return max(timeout, min(2*d.starts.of(now), d.settings.NodeStart))
}

// overdue returns when a pod will have waited for too long.
func (d *Tracker) overdue(p *waiting, now time.Time) time.Time {
	return p.until(d.pendingSince(&p.Pod), d.patience(p.Timeout, now), d.settings.NodeStart)
}

// NodeComing reports whether a node is on its way for a pod that waits, or was a moment ago, and it is not late.
func (d *Tracker) NodeComing(uid types.UID, now time.Time) bool {
	p, waits := d.pending[uid]
	recent := p.coming || (!p.last.IsZero() && now.Before(p.last.Add(BindTime)))
	return waits && recent && now.Before(d.overdue(&p, now))
}

// pendingSince returns from when on a pod's waiting counts: not before the end of a decision on it, for until then nobody
// expected that it would be placed.
func (d *Tracker) pendingSince(p *Pod) time.Time {
	since := p.UnschedulableSince
	for _, over := range d.past {
		if over.appliesTo(p.Namespace) && p.Requirements.AtLeast(over.Requirements) {
			since = when.Later(since, over.at)
		}
	}
	return since
}

// probeOver returns when an open probe will have waited for too long.
func (d *Tracker) probeOver(p *Probe) time.Time {
	s := d.signs[p.Name]
	return s.until(p.OpenedAt, d.settings.ProbeTime, d.settings.NodeStart)
}
