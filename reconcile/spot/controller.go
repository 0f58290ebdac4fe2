package spot

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Names of the controllers, as the ledger, the metrics and the API show them.
const (
	DeploymentController  = "deployment-spot"
	StatefulSetController = "statefulset-spot"
)

// warmingRetry is when a workload is looked at again whose member's first lists are still coming in.
const warmingRetry = 100 * time.Millisecond

// Schedule is how often, and by how many workers, workloads are looked at.
type Schedule struct {
	// Resync is the time after which a workload is looked at without a change; 0: never.
	Resync time.Duration
	// Workers per controller and member; 0: the framework's default.
	Workers int
}

// Controllers makes the controllers of Deployments and StatefulSets. The engine itself must be added to the manager before
// them, so that it knows a member's pods when they are reconciled.
func (e *Engine) Controllers(rt *reconcile.Runtime, schedule Schedule) ([]*reconcile.Controller, error) {
	deployments, err := configure(reconcile.For(rt, DeploymentController, deploymentReconciler{e}), schedule).
		Kind(DeploymentKind(e.Keys)).
		Watches(replicaSetKind(), e.workloadOfReplicaSet).
		Watches(podKind(e.Keys, e.Capacity), e.workloadsOfPod(KindDeployment)).
		Watches(namespaceKind(e.Keys), e.workloadsOfNamespace(KindDeployment)).
		Uses(nodeKind(e.Capacity)).
		Register()
	if err != nil {
		return nil, err
	}
	sets, err := configure(reconcile.For(rt, StatefulSetController, statefulSetReconciler{e}), schedule).
		Kind(StatefulSetKind(e.Keys)).
		Watches(podKind(e.Keys, e.Capacity), e.workloadsOfPod(KindStatefulSet)).
		Watches(namespaceKind(e.Keys), e.workloadsOfNamespace(KindStatefulSet)).
		Uses(nodeKind(e.Capacity)).
		Register()
	if err != nil {
		return nil, err
	}
	return []*reconcile.Controller{deployments, sets}, nil
}

func configure[T client.Object](b *reconcile.Builder[T], schedule Schedule) *reconcile.Builder[T] {
	if schedule.Workers > 0 {
		b = b.Workers(schedule.Workers)
	}
	return b.Resync(schedule.Resync)
}

func (e *Engine) workloadOfReplicaSet(_ context.Context, _ *reconcile.Member, obj client.Object) []types.NamespacedName {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil && ref.Kind == KindDeployment && isApps(ref.APIVersion) {
		return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: ref.Name}}
	}
	return nil
}

// workloadsOfPod maps a pod to the workload behind its controller. A pod whose ReplicaSet is not known yet maps to
// nothing: the event of the ReplicaSet follows.
func (e *Engine) workloadsOfPod(kind string) reconcile.Mapper {
	return func(_ context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		ref := metav1.GetControllerOfNoCopy(obj)
		if ref == nil || !isApps(ref.APIVersion) {
			return nil
		}
		if ref.Kind == KindStatefulSet && kind == KindStatefulSet {
			return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: ref.Name}}
		}
		if ref.Kind != kindReplicaSet || kind != KindDeployment {
			return nil
		}
		var set appsv1.ReplicaSet
		key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}
		if err := m.Reader.Get(context.Background(), key, &set, &client.GetOptions{UnsafeDisableDeepCopy: new(true)}); err != nil || set.UID != ref.UID {
			return nil
		}
		if owner := metav1.GetControllerOfNoCopy(&set); owner != nil {
			return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: owner.Name}}
		}
		return nil
	}
}

// workloadsOfNamespace wakes the workloads of a namespace, whose policies may come from it.
func (e *Engine) workloadsOfNamespace(kind string) reconcile.Mapper {
	return func(ctx context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		var list client.ObjectList = &appsv1.DeploymentList{}
		if kind == KindStatefulSet {
			list = &appsv1.StatefulSetList{}
		}
		if err := m.Reader.List(ctx, list, client.InNamespace(obj.GetName()), readOnlyList); err != nil {
			return nil // the kind is not cached: there is nothing to wake
		}
		var keys []types.NamespacedName
		_ = meta.EachListItem(list, func(item runtime.Object) error { // our function never fails
			if o, ok := item.(client.Object); ok {
				keys = append(keys, client.ObjectKeyFromObject(o))
			}
			return nil
		})
		return keys
	}
}

type deploymentReconciler struct{ *Engine }

// Reconcile places the pods of one Deployment.
func (r deploymentReconciler) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	sources, err := deploymentSources(ctx, req.Client, req.Object)
	if err != nil {
		return reconcile.Done(), err
	}
	d := req.Object
	return r.reconcile(ctx, subject{
		member: req.Member, key: keyOf(KindDeployment, d), meta: &d.ObjectMeta, replicas: replicasOf(d.Spec.Replicas), sources: sources,
		rolling: d.Status.ObservedGeneration < d.Generation || len(sources) > 1, client: req.Client, live: req.Live, events: req.Events,
	})
}

// Forget drops what is published of a Deployment that is gone.
func (r deploymentReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, WorkloadKey{Kind: KindDeployment, NamespacedName: key})
}

type statefulSetReconciler struct{ *Engine }

// Reconcile places the pods of one StatefulSet.
func (r statefulSetReconciler) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.StatefulSet]) (reconcile.Result, error) {
	set := req.Object
	return r.reconcile(ctx, subject{
		member: req.Member, key: keyOf(KindStatefulSet, set), meta: &set.ObjectMeta, replicas: replicasOf(set.Spec.Replicas),
		sources: []source{statefulSetSource(set)}, ordinals: true,
		rolling: rollingSet(set), client: req.Client, live: req.Live, events: req.Events,
	})
}

// rollingSet tells whether the StatefulSet's controller is at work. With a partition, or updates on deletion only, two
// revisions side by side are a state of rest.
func rollingSet(set *appsv1.StatefulSet) bool {
	if set.Status.ObservedGeneration < set.Generation {
		return true
	}
	strategy := set.Spec.UpdateStrategy
	if strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false
	}
	if r := strategy.RollingUpdate; r != nil && r.Partition != nil && *r.Partition > 0 {
		return false
	}
	return set.Status.CurrentRevision != set.Status.UpdateRevision
}

// Forget drops what is published of a StatefulSet that is gone.
func (r statefulSetReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, WorkloadKey{Kind: KindStatefulSet, NamespacedName: key})
}

// subject is one workload that is reconciled, whatever its kind.
type subject struct {
	member            string
	key               WorkloadKey
	meta              *metav1.ObjectMeta
	replicas          int
	sources           []source
	ordinals, rolling bool
	client            client.Client
	live              client.Reader
	events            reconcile.Recorder
}

// reconcile plans one workload and does what the plan says: first stamps, then one batch of evictions.
func (e *Engine) reconcile(ctx context.Context, s subject) (reconcile.Result, error) {
	dir := e.directory(s.member)
	if dir == nil {
		return reconcile.RequeueAfter(warmingRetry, "the member's caches are not complete yet"), nil
	}
	policy, err := e.policy(ctx, &s)
	if err != nil {
		return reconcile.Done(), err
	}
	if policy == nil {
		e.forget(s.member, s.key)
		return reconcile.Done(), nil
	}
	observed, recheck, err := e.observeSubject(ctx, dir, &s)
	if err != nil {
		return reconcile.Done(), err
	}
	now := time.Now()
	plan := Plan(observed, *policy, e.Settings, now)
	plan.Recheck = earlier(plan.Recheck, recheck)
	result, err := e.act(ctx, dir, &s, observed, &plan, now)
	e.publish(dir, &s, policy, &plan, now) // after acting, for what was refused belongs to the answer
	return result, err
}

// policy returns the policy of a subject; nil when it is not enabled.
func (e *Engine) policy(ctx context.Context, s *subject) (*Policy, error) {
	var ns corev1.Namespace
	if err := s.client.Get(ctx, types.NamespacedName{Name: s.key.Namespace}, &ns); err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", s.key.Namespace, err)
	}
	if !Enabled(e.Keys, s.meta.Labels, ns.Labels) || !e.Namespaces.Matches(labels.Set(ns.Labels)) {
		return nil, nil
	}
	policy := ParsePolicy(e.Keys, s.meta.Annotations, ns.Annotations, e.Defaults)
	return &policy, nil
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// observeSubject reads the pods of a subject, those without a slot included, and tells when to look for such again.
func (e *Engine) observeSubject(ctx context.Context, dir *directory, s *subject) (o Observed, recheck time.Time, err error) {
	now := time.Now()
	if o, err = e.observe(ctx, s.client, dir, s.key.Namespace, s.sources, now); err != nil {
		return o, recheck, err
	}
	o.Ordinals, o.Replicas, o.Rolling = s.ordinals, s.replicas, s.rolling
	visible := map[types.UID]int{}
	for i := range o.Pods {
		if !o.Pods[i].Finished {
			visible[o.Pods[i].Owner]++
		}
	}
	for i, src := range s.sources {
		src.Accounting = o.Owners[i].Accounting
		more, again, err := e.unlabelled(ctx, s.live, dir, s.key.Namespace, src, visible[src.UID], now)
		if err != nil {
			return o, recheck, err
		}
		o.Pods, recheck = append(o.Pods, more...), earlier(recheck, again)
	}
	return o, recheck, nil
}

// act writes what the plan says, and tells when to look again.
func (e *Engine) act(ctx context.Context, dir *directory, s *subject, observed Observed, plan *PlanResult, now time.Time) (reconcile.Result, error) {
	if err := e.stamp(ctx, s.client, s.key.Namespace, plan.Stamps); err != nil {
		return reconcile.Done(), err
	}
	if len(plan.Evictions) > 0 {
		ownerOf := make(map[types.UID]types.UID, len(observed.Pods))
		for i := range observed.Pods {
			ownerOf[observed.Pods[i].UID] = observed.Pods[i].Owner
		}
		moved, err := e.evict(ctx, s.client, dir, s.key.Namespace, plan.Evictions, ownerOf)
		e.metrics.moved(s.member, moved)
		if moved > 0 {
			s.events.Normal("Moving", "Moved %d of %d replicas: %s", moved, observed.Replicas, plan.Reason)
		}
		if errors.Is(err, errBudget) {
			if moved == 0 {
				plan.State = StateWaiting
			}
			plan.Reason, plan.Recheck = err.Error(), now.Add(budgetRetry)
			return reconcile.RequeueAfter(budgetRetry, plan.Reason), nil
		}
		if err != nil {
			return reconcile.Done(), err
		}
	}
	if plan.Recheck.IsZero() {
		return reconcile.Done(), nil
	}
	return reconcile.RequeueAfter(plan.Recheck.Sub(now), plan.Reason), nil
}
