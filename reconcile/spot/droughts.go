package spot

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// droughts is what is known of one member's lack of capacity, of either type, and which workloads it is about. It is safe for
// concurrent use.
type droughts struct {
	mu             sync.Mutex
	spot, onDemand *Drought
	// affected are the workloads whose plan was made while a type was dry for them, or that have pods for which the scheduler
	// has found no node: they look again when a verdict comes or goes.
	affected map[policy.WorkloadKey]struct{}

	problem string // why the probes cannot be looked after; empty: they can

	dry     atomic.Bool   // a verdict stands
	waiting atomic.Bool   // a pod is unschedulable
	watch   atomic.Bool   // it matters which pods are bound
	tries   atomic.Bool   // replicas are known that found no room although a probe had
	news    chan struct{} // holds one token: the probes are to be looked at
}

func newDroughts(s DroughtSettings) *droughts {
	starts := &startTimes{} // nodes of either type start alike
	return &droughts{spot: newDrought(capacity.Spot, s, starts), onDemand: newDrought(capacity.OnDemand, s, starts),
		affected: map[policy.WorkloadKey]struct{}{}, news: make(chan struct{}, 1)}
}

// both are the droughts of the two capacity types.
func (d *droughts) both() [2]*Drought { return [2]*Drought{d.spot, d.onDemand} }

// of returns the drought of a capacity type; nil for [capacity.Unknown].
func (d *droughts) of(capacityType capacity.Type) *Drought {
	switch capacityType {
	case capacity.Spot:
		return d.spot
	case capacity.OnDemand:
		return d.onDemand
	}
	return nil
}

// change does something with the droughts, and wakes whoever looks after the probes if verdicts have come or gone by it.
func (d *droughts) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.spot.Generation() + d.onDemand.Generation()
	do()
	d.publish()
	if before != d.spot.Generation()+d.onDemand.Generation() {
		d.wake()
	}
}

// publish brings up to date what is read without the lock. The caller holds mu.
func (d *droughts) publish() {
	d.dry.Store(len(d.spot.verdicts)+len(d.onDemand.verdicts) > 0)
	d.waiting.Store(len(d.spot.pending)+len(d.onDemand.pending) > 0)
	d.watch.Store(d.spot.watchful() || d.onDemand.watchful())
	d.tries.Store(len(d.spot.tried)+len(d.onDemand.tried) > 0)
}

func (d *droughts) wake() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// observe takes in a pod that is steered to a capacity type, and forgets it for the other.
func (d *droughts) observe(capacityType capacity.Type, p SpotPod, now time.Time) {
	d.change(func() {
		d.of(capacityType).Observe(p, now)
		d.of(capacityType.Other()).Gone(p.UID)
	})
}

// busy tells whether anything has to be observed: as long as no pod waits, no verdict stands and none is on trial, it costs nothing.
func (d *droughts) busy(waiting bool) bool { return waiting || d.waiting.Load() || d.watch.Load() }

// gone takes in that a pod is gone, going, or no longer steered to a capacity type.
func (d *droughts) gone(uid types.UID) {
	if !d.waiting.Load() {
		return
	}
	d.change(func() {
		d.spot.Gone(uid)
		d.onDemand.Gone(uid)
	})
}

// overdue tells when a pod that waits will have waited for too long, as far as is known.
func (d *droughts) overdue(capacityType capacity.Type, p SpotPod, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	drought := d.of(capacityType)
	known := drought.pending[p.UID]
	known.SpotPod, known.coming = p, p.NodeComing
	return drought.overdue(&known, now)
}

// probeSeen takes in a probe as the cache shows it. joined tells when a node came; zero: that is not known.
func (d *droughts) probeSeen(keys policy.Keys, pod *corev1.Pod, joined func(node string) time.Time, now time.Time) {
	probe, exists := ProbeOf(keys, pod)
	if !exists {
		d.probeGone(pod.Name)
		return
	}
	if pod.Spec.NodeName != "" {
		probe.NodeJoined = joined(pod.Spec.NodeName)
	}
	d.change(func() { d.of(probe.Capacity).ObserveProbe(probe, now) })
	d.wake()
}

// probeGone takes in that a probe is gone.
func (d *droughts) probeGone(name string) {
	d.change(func() {
		d.spot.ProbeGone(name)
		d.onDemand.ProbeGone(name)
	})
	d.wake()
}

// nodeJoined takes in that there is a further node of a capacity type.
func (d *droughts) nodeJoined(capacityType capacity.Type, now time.Time) {
	if drought := d.of(capacityType); drought != nil {
		d.change(func() { drought.NodeJoined(now) })
		d.wake()
	}
}

// started takes in a pod and its node; see [Drought.Started]. Nodes of both types start alike.
func (d *droughts) started(pod, nodeMade, nodeJoined, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spot.Started(pod, nodeMade, nodeJoined, now)
}

// exclude takes in whether the spot nodes that there are leave out pods of a shape.
func (d *droughts) exclude(shape capacity.Requirements, excluded bool, now time.Time) {
	d.change(func() { d.spot.Exclude(shape, excluded, now) })
}

// askOf returns the probes for which it is to be found out whether a node is coming; see [Drought.AskOf].
func (d *droughts) askOf(within time.Duration, now time.Time) []Probe {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(d.spot.AskOf(within, now), d.onDemand.AskOf(within, now)...)
}

// probeSign takes in whether a node is coming for a probe.
func (d *droughts) probeSign(p *Probe, coming bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(p.Capacity).ProbeSign(p.Name, coming, now)
}

// step judges what was observed, and says what has to be done about the probes.
func (d *droughts) step(now time.Time) (plan DroughtPlan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, drought := range d.both() {
		plan.add(drought.Step(now))
	}
	d.publish()
	return plan
}

// judge makes the verdicts that are due, and has the probes looked at if there are some.
func (d *droughts) judge(now time.Time) {
	d.change(func() {
		for _, drought := range d.both() {
			drought.Judge(now)
		}
	})
}

// since tells since when capacity of a type has been dry for a shape; zero: it is not.
func (d *droughts) since(capacityType capacity.Type, shape capacity.Requirements) time.Time {
	if !d.dry.Load() {
		return time.Time{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	since, _ := d.of(capacityType).Dry(shape)
	return since
}

// onTrial tells for which capacity types a probe found room for a shape and no replica has yet.
func (d *droughts) onTrial(shape capacity.Requirements) (spot, onDemand bool) {
	if !d.watch.Load() {
		return false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spot.OnTrial(shape), d.onDemand.OnTrial(shape)
}

// tried tells until when a replica is left on the capacity type that it has, with what its pod says of that taken in; see
// [Drought.Tried] and [Drought.Recall].
func (d *droughts) tried(has capacity.Type, replica string, told, now time.Time) time.Time {
	drought := d.of(has.Other())
	if drought == nil || (told.IsZero() && !d.tries.Load()) {
		return time.Time{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !told.IsZero() {
		drought.Recall(replica, told.Add(-policy.TriedTime), now)
		d.publish()
	}
	return drought.Tried(replica)
}

// triedAt tells when a replica was moved to each capacity type and found no node; zero: it was not.
func (d *droughts) triedAt(replica string) (spot, onDemand time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spot.tried[replica], d.onDemand.tried[replica]
}

// note remembers whether a workload has to look again when a verdict comes or goes.
func (d *droughts) note(key policy.WorkloadKey, affected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if affected {
		d.affected[key] = struct{}{}
	} else {
		delete(d.affected, key)
	}
}

// affectedOf returns the workloads of a kind that look again when a verdict comes or goes.
func (d *droughts) affectedOf(kind string) []types.NamespacedName {
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

// verdicts returns how many shapes capacity of a type has no room for.
func (d *droughts) verdicts(capacityType capacity.Type) int {
	if !d.dry.Load() {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.of(capacityType).verdicts)
}

// setProblem notes why the probes cannot be looked after, and tells whether that is news.
func (d *droughts) setProblem(problem string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.problem != problem
	d.problem = problem
	return news
}

// forget drops the verdicts about shapes that no owner's pods have any more; shapes returns those that they have.
func (d *droughts) forget(shapes func() []capacity.Requirements, now time.Time) {
	if !d.dry.Load() {
		return
	}
	have := shapes()
	needed := func(verdict capacity.Requirements) bool {
		return slices.ContainsFunc(have, func(s capacity.Requirements) bool { return s.AtLeast(verdict) })
	}
	d.change(func() {
		for _, drought := range d.both() {
			drought.Forget(needed, now)
		}
	})
}

// concerns tells whether a pod that is steered to a capacity type may change what is known: it waits or did, or it may have been
// bound since what is to be proven.
func (d *droughts) concerns(uid types.UID, capacityType capacity.Type, created time.Time, waits bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, spot := d.spot.pending[uid]
	_, onDemand := d.onDemand.pending[uid]
	return spot || onDemand || waits || d.of(capacityType).bindingTells(created)
}

// nodeComing tells whether what waits for a node is given time for it; see [Drought.NodeComing].
func (d *droughts) nodeComing(capacityType capacity.Type, uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(capacityType).NodeComing(uid, now)
}

// unasked says why nobody can find out whether a type that is dry has room again; empty: probes ask.
func (d *droughts) unasked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}
