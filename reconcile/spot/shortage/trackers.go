package shortage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Trackers is what is known about one member's lack of capacity, of either type, and which workloads it is about. It is safe for
// concurrent use.
type Trackers struct {
	mu             sync.Mutex
	spot, onDemand *Tracker
	// affected are the workloads whose plan was made while a type was dry for them, or that have pods for which the scheduler
	// has found no node: they look again when a decision comes or goes.
	affected map[policy.WorkloadKey]struct{}

	problem string // why the probes cannot be looked after; empty: they can

	// standing are the decisions of both types, as long as published is the sum of their generations. Calls about new pods read them
	// without the lock, which a judgement of very many shapes holds for tens of milliseconds.
	standing  [2]atomic.Pointer[[]Standing]
	published uint64

	AnyDry   atomic.Bool // a decision stands
	waiting  atomic.Bool // a pod is unschedulable
	watch    atomic.Bool // it matters which pods are bound
	AnyTried atomic.Bool // replicas are known that found no room although a probe had
	News     notify.Wake // the probes are to be looked at
}

// NewTrackers returns what is known about a member of which nothing is known yet.
func NewTrackers(s Settings) *Trackers {
	starts := &StartTimes{} // nodes of either type start alike
	return &Trackers{spot: NewTracker(capacity.Spot, s, starts), onDemand: NewTracker(capacity.OnDemand, s, starts),
		affected: map[policy.WorkloadKey]struct{}{}, News: notify.New()}
}

// NodeStart is how long a node that is on its way may take; see [Settings.NodeStart].
func (d *Trackers) NodeStart() time.Duration { return d.spot.settings.NodeStart }

// both are the shortages of the two capacity types.
func (d *Trackers) both() [2]*Tracker { return [2]*Tracker{d.spot, d.onDemand} }

// Of returns the tracker of a capacity type; nil for [capacity.Unknown]. It is not safe for concurrent use.
func (d *Trackers) Of(capacityType capacity.Type) *Tracker {
	switch capacityType {
	case capacity.Spot:
		return d.spot
	case capacity.OnDemand:
		return d.onDemand
	}
	return nil
}

// change does something with the shortages, and wakes whoever manages the probes if decisions have come or gone by it.
func (d *Trackers) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.generation()
	do()
	d.publish()
	if before != d.generation() {
		d.News.Signal()
	}
}

// generation changes whenever a decision of either type comes or goes. The caller holds mu.
func (d *Trackers) generation() uint64 { return d.spot.Generation() + d.onDemand.Generation() }

// publish brings up to date what is read without the lock. The caller holds mu.
func (d *Trackers) publish() {
	if now := d.generation(); now != d.published {
		for i, tracker := range d.both() {
			all := tracker.standing()
			d.standing[i].Store(&all)
		}
		d.published = now
	}
	d.AnyDry.Store(len(d.spot.decisions)+len(d.onDemand.decisions) > 0)
	d.waiting.Store(len(d.spot.pending)+len(d.onDemand.pending) > 0)
	d.watch.Store(d.spot.watchful() || d.onDemand.watchful())
	d.AnyTried.Store(d.spot.tried.len()+d.onDemand.tried.len() > 0)
}

// Observe takes in a pod that is steered to a capacity type, and forgets it for the other.
func (d *Trackers) Observe(capacityType capacity.Type, p Pod, now time.Time) {
	d.change(func() {
		d.Of(capacityType).Observe(p, now)
		d.Of(capacityType.Other()).Gone(p.UID)
	})
}

// Busy reports whether anything has to be observed: as long as no pod waits, no decision stands and none is probed by replicas, it costs nothing.
func (d *Trackers) Busy(waiting bool) bool { return waiting || d.waiting.Load() || d.watch.Load() }

// Gone takes in that a pod is gone, going, or no longer steered to a capacity type.
func (d *Trackers) Gone(uid types.UID) {
	if !d.waiting.Load() {
		return
	}
	d.change(func() {
		d.spot.Gone(uid)
		d.onDemand.Gone(uid)
	})
}

// Overdue reports when a pod that waits will have waited for too long, as far as is known.
func (d *Trackers) Overdue(capacityType capacity.Type, p Pod, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	drought := d.Of(capacityType)
	known := drought.pending[p.UID]
	known.Pod, known.coming = p, p.NodeComing
	return drought.overdue(&known, now)
}

// ProbeSeen takes in a probe as the cache shows it. joined returns when a node came; zero: that is not known.
func (d *Trackers) ProbeSeen(keys policy.Keys, pod *corev1.Pod, joined func(node string) time.Time, now time.Time) {
	probe, exists := ProbeOf(keys, pod)
	if !exists {
		d.ProbeGone(pod.Name)
		return
	}
	if pod.Spec.NodeName != "" {
		probe.NodeJoined = joined(pod.Spec.NodeName)
	}
	d.change(func() { d.Of(probe.Capacity).ObserveProbe(probe, now) })
	d.News.Signal()
}

// ProbeGone takes in that a probe is gone.
func (d *Trackers) ProbeGone(name string) {
	d.change(func() {
		d.spot.ProbeGone(name)
		d.onDemand.ProbeGone(name)
	})
	d.News.Signal()
}

// NodeJoined takes in that there is a further node of a capacity type.
func (d *Trackers) NodeJoined(capacityType capacity.Type, now time.Time) {
	if drought := d.Of(capacityType); drought != nil {
		d.change(func() { drought.NodeJoined(now) })
		d.News.Signal()
	}
}

// Started takes in a pod and its node; see [Tracker.Started]. Nodes of both types start alike.
func (d *Trackers) Started(pod, nodeMade, nodeJoined, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spot.Started(pod, nodeMade, nodeJoined, now)
}

// StartTime is how long nodes were seen to take; zero: none was seen.
func (d *Trackers) StartTime(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spot.starts.of(now)
}

// Exclude takes in whether the spot nodes that there are leave out pods of some requirements, which pods of a namespace have.
func (d *Trackers) Exclude(shape capacity.Requirements, namespace string, excluded bool, now time.Time) {
	d.change(func() { d.spot.Exclude(shape, namespace, excluded, now) })
}

// AskOf returns the probes for which it is to be found out whether a node is coming; see [Tracker.AskOf].
func (d *Trackers) AskOf(within time.Duration, now time.Time) []Probe {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(d.spot.AskOf(within, now), d.onDemand.AskOf(within, now)...)
}

// ProbeSign takes in whether a node is coming for a probe.
func (d *Trackers) ProbeSign(p *Probe, coming bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Of(p.Capacity).ProbeSign(p.Name, coming, now)
}

// Step judges what was observed, and says what has to be done about the probes.
func (d *Trackers) Step(now time.Time) (plan Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, drought := range d.both() {
		plan.add(drought.Step(now))
	}
	d.publish()
	return plan
}

// Judge makes the decisions that are due, and has the probes looked at if there are some.
func (d *Trackers) Judge(now time.Time) {
	d.change(func() {
		for _, drought := range d.both() {
			drought.Judge(now)
		}
	})
}

// Since returns since when capacity of a type has been dry for some requirements in a namespace; zero: it is not. It waits for nothing.
func (d *Trackers) Since(capacityType capacity.Type, shape capacity.Requirements, namespace string) (since time.Time) {
	if !d.AnyDry.Load() {
		return time.Time{}
	}
	for i, tracker := range d.both() {
		all := d.standing[i].Load()
		if all == nil || tracker.capacity != capacityType {
			continue
		}
		for i := range *all {
			if v := &(*all)[i]; v.appliesTo(namespace) && shape.AtLeast(v.Requirements) {
				since = when.Earlier(since, v.Since)
			}
		}
	}
	return since
}

// Probing returns for which capacity types a probe found room for some requirements in a namespace and no replica has yet.
func (d *Trackers) Probing(shape capacity.Requirements, namespace string) (spot, onDemand bool) {
	if !d.watch.Load() {
		return false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spot.Probing(shape, namespace), d.onDemand.Probing(shape, namespace)
}

// Tried returns until when a replica is left on the capacity type that it has, with what its pod says of that taken in; see
// [Tracker.Tried] and [Tracker.Recall].
func (d *Trackers) Tried(has capacity.Type, replica string, noted, now time.Time) time.Time {
	drought := d.Of(has.Other())
	if drought == nil || (noted.IsZero() && !d.AnyTried.Load()) {
		return time.Time{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !noted.IsZero() {
		drought.Recall(replica, noted.Add(-policy.TriedTime), now)
		d.publish()
	}
	return drought.Tried(replica)
}

// TriedAt reports when a replica was moved to each capacity type and found no node; zero: it was not. It does not wait for a judgement.
func (d *Trackers) TriedAt(replica string) (spot, onDemand time.Time) {
	return d.spot.tried.of(replica), d.onDemand.tried.of(replica)
}

// Note remembers whether a workload has to look again when a decision comes or goes.
func (d *Trackers) Note(key policy.WorkloadKey, affected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if affected {
		d.affected[key] = struct{}{}
	} else {
		delete(d.affected, key)
	}
}

// AffectedOf returns the workloads of a kind that look again when a decision comes or goes.
func (d *Trackers) AffectedOf(kind string) []types.NamespacedName {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []types.NamespacedName
	for key := range d.affected {
		if key.Kind == kind {
			keys = append(keys, key.NamespacedName)
		}
	}
	return keys
}

// Decisions returns for how many scheduling requirements capacity of a type has no room.
func (d *Trackers) Decisions(capacityType capacity.Type) int {
	if !d.AnyDry.Load() {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.Of(capacityType).decisions)
}

// All returns the decisions that apply to both capacity types, in a fixed order.
func (d *Trackers) All() (all []Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tracker := range d.both() {
		all = append(all, tracker.Decisions()...)
	}
	return all
}

// SetProblem notes why the probes cannot be looked after, and reports whether that is news.
func (d *Trackers) SetProblem(problem string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.problem != problem
	d.problem = problem
	return news
}

// Forget ends the decisions that nobody needs, because no owner is left whose pods they are about: needed returns which of those that
// stand are needed. It is called without a lock.
func (d *Trackers) Forget(needed func(stand []Standing) []bool, now time.Time) {
	if !d.AnyDry.Load() {
		return
	}
	var stand []Standing
	var of []*Tracker
	for i, tracker := range d.both() {
		if all := d.standing[i].Load(); all != nil {
			stand = append(stand, *all...)
			of = append(of, slices.Repeat([]*Tracker{tracker}, len(*all))...)
		}
	}
	keep := needed(stand)
	if !slices.Contains(keep, false) {
		return
	}
	d.change(func() {
		for i := range stand {
			if !keep[i] {
				of[i].Forget(stand[i].Text, stand[i].Since, now)
			}
		}
	})
}

// Concerns reports whether a pod that is steered to a capacity type may change what is known: it waits or did, or it may have been
// bound since what is to be proven.
func (d *Trackers) Concerns(uid types.UID, capacityType capacity.Type, created time.Time, waits bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, spot := d.spot.pending[uid]
	_, onDemand := d.onDemand.pending[uid]
	return spot || onDemand || waits || d.Of(capacityType).bindingShows(created)
}

// NodeComing reports whether what waits for a node is given time for it; see [Tracker.NodeComing].
func (d *Trackers) NodeComing(capacityType capacity.Type, uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Of(capacityType).NodeComing(uid, now)
}

// Problem says why nobody can find out whether a type that is dry has room again; empty: probes ask.
func (d *Trackers) Problem() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}
