package spot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// readOnlyList reads from the cache without copying: nothing here changes what it reads.
var readOnlyList = client.UnsafeDisableDeepCopy

// source is a direct owner of pods as the cache shows it.
type source struct {
	plan.Owner
	kind     string
	selector *metav1.LabelSelector
	status   int            // replicas that its controller has counted
	memo     *nodes.PodMemo // of its pods, while a plan is made; nil: none yet, or they are few
}

// replicaSetSources returns the ReplicaSets of a workload that want replicas or still have some, those that were released
// included, which holds has.
func replicaSetSources(ctx context.Context, c client.Reader, workload client.Object, holds func(ownerKey) bool) ([]source, error) {
	var sets appsv1.ReplicaSetList
	err := c.List(ctx, &sets, client.InNamespace(workload.GetNamespace()), client.MatchingFields{object.ControllerIndex: string(workload.GetUID())}, readOnlyList)
	if err != nil {
		return nil, fmt.Errorf("list the ReplicaSets of %s/%s: %w", workload.GetNamespace(), workload.GetName(), err)
	}
	var sources []source
	for i := range sets.Items {
		set := &sets.Items[i]
		if replicasOf(set.Spec.Replicas) == 0 && set.Status.Replicas == 0 && !holds(ownerKey{set.Namespace, set.UID}) {
			continue
		}
		sources = append(sources, replicaSetSource(set))
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.Name, b.Name) })
	return sources, nil
}

// working counts the sources that have replicas, or are to get some.
func working(sources []source) int {
	n := 0
	for i := range sources {
		if sources[i].Replicas > 0 || sources[i].status > 0 {
			n++
		}
	}
	return n
}

// stillHolds makes the function that reports whether pods of an owner are known.
func (e *Engine) stillHolds(member string) func(ownerKey) bool {
	dir := e.directory(member)
	return func(key ownerKey) bool {
		if dir == nil {
			return false
		}
		o := dir.owner(key)
		if o == nil {
			return false
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.slots.Known() > 0
	}
}

func replicaSetSource(set *appsv1.ReplicaSet) source {
	return source{
		Owner: plan.Owner{UID: set.UID, Name: set.Name, Replicas: replicasOf(set.Spec.Replicas)},
		kind:  kindReplicaSet, selector: set.Spec.Selector, status: int(set.Status.Replicas),
	}
}

func statefulSetSource(set *appsv1.StatefulSet) source {
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	return source{
		Owner: plan.Owner{UID: set.UID, Name: set.Name, Replicas: replicasOf(set.Spec.Replicas), Start: start},
		kind:  KindStatefulSet, selector: set.Spec.Selector, status: int(set.Status.Replicas),
	}
}

// podsOf returns the pods of an owner, *corev1.Pod, as the cache holds them: they are shared, and must not be changed.
type podsOf func(ctx context.Context, namespace string, owner types.UID) ([]any, error)

// podsIn makes the podsOf of a member. A plan of a large workload reads all of its pods, so that they are not copied as a list is.
func (e *Engine) podsIn(member string) podsOf {
	return func(ctx context.Context, namespace string, owner types.UID) ([]any, error) {
		m := e.member(member)
		if m == nil {
			return nil, fmt.Errorf("member %s is not engaged", member)
		}
		return m.cluster.ByIndex(ctx, &corev1.Pod{}, podOwnerIndex, namespace, string(owner))
	}
}

// observe reads the pods of the sources from the cache and adds what the accounting knows beyond it. Pods of large sources are
// read with their memos.
func (e *Engine) observe(ctx context.Context, podsOf podsOf, dir *directory, namespace string, sources []source, taken, now time.Time) (plan.Observed, error) {
	observed := plan.Observed{Owners: make([]plan.Owner, 0, len(sources))}
	cached, all := make([][]any, len(sources)), 0
	for i := range sources {
		s := &sources[i]
		pods, err := podsOf(ctx, namespace, s.UID)
		if err != nil {
			return observed, fmt.Errorf("list the pods of %s %s/%s: %w", s.kind, namespace, s.Name, err)
		}
		cached[i], all = pods, all+len(pods)
	}
	observed.Pods = make([]plan.Pod, 0, all)
	reader := e.podReader(dir)
	for i := range sources {
		s, from := &sources[i], len(observed.Pods)
		o := dir.ensureOwner(ownerKey{namespace, s.UID}, s.kind)
		o.mu.Lock()
		if s.memo = memoFor(s.memo, len(cached[i])); s.memo != nil {
			observed.Pods = s.memo.Read(reader, observed.Pods, cached[i])
		} else {
			for _, pod := range cached[i] {
				observed.Pods = append(observed.Pods, reader.Facts(pod.(*corev1.Pod)))
			}
		}
		shown := observed.Pods[from:]
		for j := range shown {
			o.slots.Show(&shown[j], now) // the cache may be ahead of the events that we were given
		}
		o.retain(shown, now)
		o.slots.TakeOver(taken)
		owner := s.Owner
		owner.Accounting = o.slots.Summary(s.Replicas, now)
		observed.LastMove = when.Later(observed.LastMove, o.slots.LastMove())
		o.mu.Unlock()
		observed.Owners = append(observed.Owners, owner)
	}
	return observed, nil
}

// retain has the accounting forget pods that the cache, which was just observed, does not have. The caller holds mu.
func (o *owner) retain(cached []plan.Pod, now time.Time) {
	if o.slots.Known() <= len(cached) { // it knows of no others, for it has observed these
		o.slots.ForgetOld(now)
		return
	}
	known := make(map[types.UID]struct{}, len(cached))
	for i := range cached {
		known[cached[i].UID] = struct{}{}
	}
	o.slots.Retain(func(uid types.UID) bool { _, ok := known[uid]; return ok }, now)
}

// podViews describes the pods of a workload for people, ordered by name; nil when they cannot be read.
func (e *Engine) podViews(podsOf podsOf, dir *directory, key policy.WorkloadKey, mix policy.Mix) []report.Pod {
	var views []report.Pod
	reader := e.podReader(dir)
	for _, uid := range dir.ownersOf(key) {
		pods, err := podsOf(context.Background(), key.Namespace, uid)
		if err != nil {
			return nil
		}
		views = slices.Grow(views, len(pods))
		for _, item := range pods {
			shown := item.(*corev1.Pod)
			pod := reader.Facts(shown)
			views = append(views, report.Pod{
				Name: pod.Name, Slot: pod.Slot, Wanted: mix.Of(pod.Slot), Actual: pod.Capacity, Node: pod.Node,
				Phase: string(shown.Status.Phase), Ready: pod.Ready, Reason: podReason(&pod, mix),
			})
		}
	}
	slices.SortFunc(views, func(a, b report.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return views
}

// podReason says what is special about a pod; empty: nothing.
func podReason(pod *plan.Pod, mix policy.Mix) string {
	switch {
	case !pod.GoneBy.IsZero():
		return "is being deleted"
	case pod.Finished:
		return "has finished"
	case pod.Capacity == capacity.Unknown:
		return "its capacity type is not known"
	case mix.Of(pod.Slot) != pod.Capacity && mix.Managed && pod.Slot != plan.NoSlot:
		return "runs on " + string(pod.Capacity) + ", its slot is for " + string(mix.Of(pod.Slot))
	case !pod.Bound:
		return "waits for a node"
	}
	return ""
}

// ownersOf returns the direct owners of a workload's pods that are known.
func (d *directory) ownersOf(key policy.WorkloadKey) []types.UID {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var uids []types.UID
	for _, o := range d.owners {
		if o.kind != "" && o.workload == key {
			uids = append(uids, o.uid)
		}
	}
	return uids
}
