package spot

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// observeSupply adds to what was observed of a workload what is known about the capacity for its pods: what the nodes leave out,
// which nodes are coming, and what is dry. It returns when to look again although nothing has changed.
func (d *directory) observeSupply(ctx context.Context, key policy.WorkloadKey, o *plan.Observed, settings plan.Settings, now time.Time) (recheck time.Time) {
	d.observeContradictions(key.Namespace, o)
	d.askSigns(ctx, key.Namespace, o, settings, now)
	return d.observeDrought(key, o, settings, now)
}

// droughtPod is what a drought has to know of a pod; false: what it asks for is not known, and it shows nothing.
func (d *directory) droughtPod(namespace string, pod *plan.Pod, o *plan.Observed, settings plan.Settings) (shortage.Pod, bool) {
	p := shortage.Pod{UID: pod.UID, Namespace: namespace, Timeout: settings.PendingTimeout, UnschedulableSince: pod.UnschedulableSince, NodeComing: pod.NodeComing}
	owner := d.owner(ownerKey{namespace, pod.Owner})
	if owner == nil {
		return p, false
	}
	var known bool
	if pod.Bound {
		p.UnschedulableSince, p.BoundAt, p.NodeJoined = time.Time{}, pod.Created, pod.NodeJoined // bound at the earliest
		p.Requirements, known = d.shownBy(owner, pod.UID)
	} else {
		p.Requirements, known = d.shape(owner)
	}
	if o.Ordinals {
		p.Replica = replicaOf(pod)
	}
	return p, known
}

// replicaOf names an ordinal of a StatefulSet.
func replicaOf(pod *plan.Pod) string { return replicaName(pod.Owner, pod.Name) }

func replicaName(owner types.UID, pod string) string { return string(owner) + "/" + pod }

// askSigns finds out, for the pods that will otherwise have waited for too long, whether a node is coming.
func (d *directory) askSigns(ctx context.Context, namespace string, o *plan.Observed, settings plan.Settings, now time.Time) {
	if settings.PendingTimeout <= 0 || settings.ReadOnly {
		return
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if !pod.Waiting() || pod.NodeComing {
			continue
		}
		p, known := d.droughtPod(namespace, pod, o, settings)
		if !known || !d.droughts.Since(pod.Capacity, p.Requirements, namespace).IsZero() || now.Before(d.droughts.Overdue(pod.Capacity, p, now)) {
			continue
		}
		pod.NodeComing = d.nodeComing(ctx, &nodes.Awaited{Namespace: namespace, UID: pod.UID, Capacity: pod.Capacity, Requirements: p.Requirements}, now)
	}
}

// observeDrought takes in the pods of a workload, and sets since when capacity has been dry for its owners. It returns when a
// pod will have waited for too long, or when to look again whether a node is coming.
func (d *directory) observeDrought(key policy.WorkloadKey, o *plan.Observed, settings plan.Settings, now time.Time) (recheck time.Time) {
	if settings.PendingTimeout <= 0 || settings.ReadOnly {
		return time.Time{}
	}
	d.observeExclusions(key, o, now)
	d.learnStarts(o, now)
	waiting := false
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Capacity == capacity.Unknown || !pod.Alive() {
			d.droughts.Gone(pod.UID)
			continue
		}
		waiting = waiting || pod.Waiting()
		if d.droughts.Busy(waiting) && d.droughts.Concerns(pod.UID, pod.Capacity, pod.Created, pod.Waiting()) {
			recheck = when.Earlier(recheck, d.observeDroughtOf(key.Namespace, pod, o, settings, now))
		}
	}
	if waiting {
		d.droughts.Judge(now)
	}
	d.droughts.Note(key, d.observeDry(key.Namespace, o, now) || waiting)
	return recheck
}

// learnStarts finds out from the pods and their nodes how long nodes take.
func (d *directory) learnStarts(o *plan.Observed, now time.Time) {
	for i := range o.Pods {
		pod := &o.Pods[i]
		if !pod.Bound || !pod.NodeJoined.After(pod.Created) {
			continue
		}
		if made := d.nodes.MadeOf(pod.Node); made.After(pod.Created) {
			d.droughts.Started(pod.Created, made, pod.NodeJoined, now)
		}
	}
}

// observeDroughtOf takes in one pod. It returns when to look at it again; zero: on change.
func (d *directory) observeDroughtOf(namespace string, pod *plan.Pod, o *plan.Observed, settings plan.Settings, now time.Time) (recheck time.Time) {
	p, known := d.droughtPod(namespace, pod, o, settings)
	if !known {
		d.droughts.Gone(pod.UID)
		return time.Time{}
	}
	if !pod.Waiting() {
		d.droughts.Observe(pod.Capacity, p, now)
		return time.Time{}
	}
	overdue := d.droughts.Overdue(pod.Capacity, p, now)
	p.Unasked = now.Before(overdue) // nobody looks before it matters
	d.droughts.Observe(pod.Capacity, p, now)
	if pod.NodeComing {
		overdue = when.Earlier(overdue, now.Add(shortage.BindTime))
	}
	pod.NodeComing = d.droughts.NodeComing(pod.Capacity, pod.UID, now)
	if overdue.After(now) {
		return overdue
	}
	return time.Time{}
}

// observeExclusions takes in whether the nodes leave out pods of owners that have replicas which belong on spot.
func (d *directory) observeExclusions(key policy.WorkloadKey, o *plan.Observed, now time.Time) {
	mix, enabled := d.mixOf(key)
	if !enabled {
		return
	}
	for i := range o.Owners {
		owner := &o.Owners[i]
		known := d.owner(ownerKey{key.Namespace, owner.UID})
		if known == nil {
			continue
		}
		excluded := owner.Contradiction.Of(mix, owner.Replicas) == plan.ContradictionSpot
		if !excluded && (!d.droughts.AnyDry.Load() || !d.spotFits(known)) {
			continue
		}
		if shape, ok := d.templateShape(known); ok {
			d.droughts.Exclude(shape, key.Namespace, excluded, now)
		}
	}
}

// mixOf returns the arithmetic of an enabled workload.
func (d *directory) mixOf(key policy.WorkloadKey) (policy.Mix, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	w := d.workloads[key]
	if w == nil || w.policy == nil {
		return policy.Mix{}, false
	}
	return w.policy.Mix(), true
}

// observeDry sets since when capacity has been dry for a workload's owners, and what follows from earlier tries. It reports
// whether any is.
func (d *directory) observeDry(namespace string, o *plan.Observed, now time.Time) (dry bool) {
	for i := range o.Owners {
		owner := &o.Owners[i]
		known := d.owner(ownerKey{namespace, owner.UID})
		if known == nil {
			continue
		}
		owner.DrySince, owner.OnDemandDrySince = d.drySince(known)
		if shape, ok := d.shape(known); ok {
			owner.SpotProbing, owner.OnDemandProbing = d.droughts.Probing(shape, namespace)
		}
		dry = dry || !owner.DrySince.IsZero() || !owner.OnDemandDrySince.IsZero()
	}
	if o.Ordinals {
		for i := range o.Pods {
			pod := &o.Pods[i]
			pod.TriedUntil = d.droughts.Tried(pod.Capacity, replicaOf(pod), pod.TriedUntil, now)
		}
	}
	return dry
}

// noteProblems says of a workload that waits for capacity, or for which it is dry, what cannot be found out about it.
func (d *directory) noteProblems(o *plan.Observed, decided *plan.Result) {
	dry := func(owner plan.Owner) bool { return !owner.DrySince.IsZero() || !owner.OnDemandDrySince.IsZero() }
	if problem := d.droughts.Problem(); problem != "" && slices.ContainsFunc(o.Owners, dry) {
		decided.Notes = append(decided.Notes, "cannot test whether there is room again: "+problem)
	}
	if d.signs == nil || !slices.ContainsFunc(o.Pods, func(p plan.Pod) bool { return p.Waiting() }) {
		return
	}
	if problem := d.signs.Problems(); problem != "" {
		decided.Notes = append(decided.Notes, "cannot read whether nodes are being created: "+problem)
	}
}
