package spot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Controllers makes the controllers of all kinds of workloads. The engine itself must be added to the manager before them,
// so that it knows a member's pods when they are reconciled.
func (e *Engine) Controllers(rt *reconcile.Runtime, schedule Schedule) ([]*reconcile.Controller, error) {
	held := rt.Held
	e.held.Store(&held)
	e.splits.wakes(rt)
	makers := []func() (*reconcile.Controller, error){
		func() (*reconcile.Controller, error) {
			b := reconcile.For(rt, DeploymentController, deploymentReconciler{e}).Kind(DeploymentKind(e.options.Keys))
			b.Watches(replicaSetKind(e.options.Keys, e.options.Capacity), e.workloadOfReplicaSet(KindDeployment))
			return around(e, b, KindDeployment, schedule).Register()
		},
		func() (*reconcile.Controller, error) {
			b := reconcile.For(rt, StatefulSetController, statefulSetReconciler{e}).Kind(StatefulSetKind(e.options.Keys, e.options.Capacity))
			return around(e, b, KindStatefulSet, schedule).Register()
		},
		func() (*reconcile.Controller, error) {
			b := reconcile.For(rt, ReplicaSetController, replicaSetReconciler{e}).Kind(replicaSetKind(e.options.Keys, e.options.Capacity))
			b.Predicate(func(old, set *appsv1.ReplicaSet) bool {
				return e.placesItself(set) || old != nil && e.placesItself(old)
			})
			return around(e, b, KindReplicaSet, schedule).Register()
		},
	}
	for _, kind := range e.kinds {
		makers = append(makers, func() (*reconcile.Controller, error) {
			b := reconcile.For(rt, kind.Controller(), configuredReconciler{e, kind}).Kind(kind.cached(e.options.Keys, e.options.Capacity))
			b.Watches(replicaSetKind(e.options.Keys, e.options.Capacity), e.workloadOfReplicaSet(kind.Name()))
			return around(e, b, kind.Name(), schedule).Register()
		})
	}
	controllers := make([]*reconcile.Controller, 0, len(makers))
	for _, make := range makers {
		controller, err := make()
		if err != nil {
			return nil, err
		}
		controllers = append(controllers, controller)
	}
	return controllers, nil
}

// around adds what every kind of workload watches.
func around[T client.Object](e *Engine, b *reconcile.Builder[T], kind string, schedule Schedule) *reconcile.Builder[T] {
	if schedule.Workers > 0 {
		b = b.Workers(schedule.Workers)
	}
	return b.Resync(schedule.Resync).
		ReconcilePaused(). // a pause stops moves; plans are made and shown
		Watches(podKind(e.options.Keys, e.options.Capacity), e.workloadsOfPod(kind)).
		Watches(namespaceKind(e.options.Keys), e.workloadsOfNamespace(kind)).
		Watches(nodeKind(e.options.Capacity, e.options.Interruptions), e.workloadsOfNode(kind)).
		Watches(budgetKind(), e.workloadsOfBudget(kind))
}

// Cached are the kinds to be cached in members for a controller of [Engine.Controllers]. Those that the configuration names
// are optional: a member without their CRD lacks nothing. Their definitions are followed, so that a kind joins soon after its CRD.
func (e *Engine) Cached(controller *reconcile.Controller) []clusters.Kind {
	kinds := controller.Kinds()
	for _, configured := range e.kinds {
		if configured.Controller() == controller.Name() {
			kinds[0].Optional = true
			kinds = append(kinds, configured.definition())
		}
	}
	return e.narrowed(kinds)
}

// narrowed leaves ReplicaSets out whose namespaces the configuration excludes by name. They carry none of our labels, so a member's
// would be cached all. The other kinds are cached by labels, belong to no namespace, or are read by other controllers too.
func (e *Engine) narrowed(kinds []clusters.Kind) []clusters.Kind {
	for i := range kinds {
		if _, is := kinds[i].Object.(*appsv1.ReplicaSet); is {
			kinds[i].Needed = withoutExcluded(e.options.Namespaces)
		}
	}
	return kinds
}

type replicaSetReconciler struct{ *Engine }

// Reconcile places the pods of one ReplicaSet that has no controller.
func (r replicaSetReconciler) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.ReplicaSet]) (reconcile.Result, error) {
	set := req.Object
	key := keyOf(KindReplicaSet, set)
	if !r.placesItself(set) {
		r.forget(req.Member, key) // it was adopted, or is not enabled any more
		return reconcile.Done(), nil
	}
	return r.reconcile(ctx, subject{
		member: req.Member, key: key, meta: &set.ObjectMeta, replicas: replicasOf(set.Spec.Replicas), sources: []source{replicaSetSource(set)},
		rolling: set.Status.ObservedGeneration < set.Generation, noRelease: notOfDeployment, minReady: seconds(set.Spec.MinReadySeconds),
		client: req.Client, pods: r.podsIn(req.Member), live: req.Live, events: req.Events,
	})
}

// Forget drops what is published of a ReplicaSet that is gone.
func (r replicaSetReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, policy.WorkloadKey{Kind: KindReplicaSet, NamespacedName: key})
}

// notOfDeployment is why pods of other kinds are not released: what takes them out of their owner takes them out of their
// Services as well, or nobody knows what selects it.
const notOfDeployment = "only a pod of a Deployment can leave its ReplicaSet and stay in its Services"

type configuredReconciler struct {
	*Engine
	kind WorkloadKind
}

// Reconcile places the pods of one workload of a kind that the configuration names: those of its ReplicaSets or, when it has
// none, its own.
func (r configuredReconciler) Reconcile(ctx context.Context, req reconcile.Request[*unstructured.Unstructured]) (reconcile.Result, error) {
	obj := req.Object
	sources, err := replicaSetSources(ctx, req.Client, obj, r.stillHolds(req.Member))
	if err != nil {
		return reconcile.Done(), err
	}
	if len(sources) == 0 {
		sources = []source{{
			Owner: plan.Owner{UID: obj.GetUID(), Name: obj.GetName(), Replicas: r.kind.wanted(obj)},
			kind:  r.kind.Name(), selector: r.kind.selector(obj), status: r.kind.counted(obj),
		}}
	}
	return r.reconcile(ctx, subject{
		member: req.Member, key: keyOf(r.kind.Name(), obj), meta: metaOf(obj), replicas: r.kind.wanted(obj), sources: sources,
		rolling: r.kind.rolling(obj) || working(sources) > 1, stalled: r.kind.stalled(obj), noRelease: notOfDeployment,
		minReady: r.kind.minReady(obj), client: req.Client, pods: r.podsIn(req.Member), live: req.Live, events: req.Events,
	})
}

// Forget drops what is published of a workload that is gone.
func (r configuredReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, policy.WorkloadKey{Kind: r.kind.Name(), NamespacedName: key})
}
