package spot

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// droughts is what is known of one member's lack of spot capacity, and which workloads it is about. It is safe for
// concurrent use.
type droughts struct {
	mu      sync.Mutex
	drought *Drought
	// affected are the workloads whose plan was made while spot was dry for them, or that have pods for which the scheduler
	// has found no node: they look again when a verdict comes or goes.
	affected map[WorkloadKey]struct{}

	problem string // why the probes cannot be looked after; empty: they can

	dry     atomic.Bool   // a verdict stands
	waiting atomic.Bool   // a pod is unschedulable
	news    chan struct{} // holds one token: the probes are to be looked at
}

func newDroughts(s DroughtSettings) *droughts {
	return &droughts{drought: NewDrought(s), affected: map[WorkloadKey]struct{}{}, news: make(chan struct{}, 1)}
}

// observe takes in a pod that is steered to spot.
func (d *droughts) observe(p SpotPod, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.drought.Generation()
	d.drought.Observe(p, now)
	d.waiting.Store(len(d.drought.pending) > 0)
	if before != d.drought.Generation() {
		d.changed()
	}
}

// busy tells whether anything has to be observed: as long as no pod waits and no verdict stands, it costs nothing.
func (d *droughts) busy(waiting bool) bool { return waiting || d.waiting.Load() || d.dry.Load() }

// gone takes in that a pod is gone, going, or no longer steered to spot.
func (d *droughts) gone(uid types.UID) {
	if !d.waiting.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drought.Gone(uid)
	d.waiting.Store(len(d.drought.pending) > 0)
}

// probeSeen takes in a probe as the cache shows it.
func (d *droughts) probeSeen(keys Keys, pod *corev1.Pod, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if probe, ok := ProbeOf(keys, pod); ok {
		d.drought.ObserveProbe(probe, now)
	} else {
		d.drought.ProbeGone(pod.Name)
	}
	d.changed()
}

// probeGone takes in that a probe is gone.
func (d *droughts) probeGone(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drought.ProbeGone(name)
	d.changed()
}

// nodeJoined takes in that there is a further node with spot capacity.
func (d *droughts) nodeJoined(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drought.NodeJoined(now)
	d.changed()
}

// step judges what was observed, and says what has to be done about the probes.
func (d *droughts) step(now time.Time) DroughtPlan {
	d.mu.Lock()
	defer d.mu.Unlock()
	plan := d.drought.Step(now)
	d.dry.Store(len(d.drought.Verdicts()) > 0)
	return plan
}

// judge makes the verdicts that are due, and has the probes looked at if there are some.
func (d *droughts) judge(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.drought.Generation()
	d.drought.Step(now)
	if d.drought.Generation() != before {
		d.changed()
	}
}

// changed brings up to date what is read without the lock, and wakes whoever looks after the probes. The caller holds mu.
func (d *droughts) changed() {
	d.dry.Store(len(d.drought.Verdicts()) > 0)
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// since tells since when spot has been dry for a shape; zero: it is not.
func (d *droughts) since(shape Shape) time.Time {
	if !d.dry.Load() {
		return time.Time{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	since, _ := d.drought.Dry(shape)
	return since
}

// note remembers whether a workload has to look again when a verdict comes or goes.
func (d *droughts) note(key WorkloadKey, affected bool) {
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

// verdicts returns how many shapes spot has no room for.
func (d *droughts) verdicts() int {
	if !d.dry.Load() {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.drought.Verdicts())
}

// setProblem notes why the probes cannot be looked after, and tells whether that is news.
func (d *droughts) setProblem(problem string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.problem != problem
	d.problem = problem
	return news
}

// noteProblem says of a workload for which spot is dry why nobody can find out whether it has room again.
func (d *droughts) noteProblem(o *Observed, plan *PlanResult) {
	if !slices.ContainsFunc(o.Owners, func(owner Owner) bool { return !owner.DrySince.IsZero() }) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.problem != "" {
		plan.Notes = append(plan.Notes, "it cannot be found out whether spot has room again: "+d.problem)
	}
}

// forget drops the verdicts about shapes that no owner's pods have any more.
func (d *droughts) forget(dir *directory, now time.Time) {
	if !d.dry.Load() {
		return
	}
	shapes := dir.shapes()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drought.Forget(func(verdict Shape) bool {
		return slices.ContainsFunc(shapes, func(s Shape) bool { return s.AtLeast(verdict) })
	}, now)
}

// observeDrought takes in the spot pods of a workload, and sets since when spot has been dry for its owners. It tells when a
// pod will have waited for too long.
func (d *directory) observeDrought(key WorkloadKey, o *Observed, settings Settings, now time.Time) (overdue time.Time) {
	if settings.PendingTimeout <= 0 || settings.ReadOnly {
		return time.Time{}
	}
	waiting := false
	for i := range o.Pods {
		pod := &o.Pods[i]
		seen := SpotPod{UID: pod.UID, Timeout: settings.PendingTimeout}
		switch {
		case pod.Capacity != Spot || !pod.Alive():
			d.droughts.gone(pod.UID)
			continue
		case !pod.UnschedulableSince.IsZero():
			waiting = true
			seen.UnschedulableSince = pod.UnschedulableSince
			overdue = earlier(overdue, pod.UnschedulableSince.Add(settings.PendingTimeout))
		case pod.Bound:
			seen.BoundAt = pod.Created // at the earliest
		}
		if known := d.owner(pod.Owner); known != nil && d.droughts.busy(waiting) {
			seen.Shape = d.shape(known)
			d.droughts.observe(seen, now)
		}
	}
	if waiting {
		d.droughts.judge(now)
	}
	affected := waiting
	for i := range o.Owners {
		if known := d.owner(o.Owners[i].UID); known != nil {
			o.Owners[i].DrySince = d.drySince(known)
			affected = affected || !o.Owners[i].DrySince.IsZero()
		}
	}
	d.droughts.note(key, affected)
	if overdue.After(now) {
		return overdue
	}
	return time.Time{}
}
