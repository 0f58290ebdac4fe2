package spot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// workloadOfReplicaSet maps a ReplicaSet to the workload of a kind behind it.
func (e *Engine) workloadOfReplicaSet(kind string) reconcile.Mapper {
	return func(_ context.Context, _ *reconcile.Member, obj client.Object) []types.NamespacedName {
		if key, ok := e.kinds.workloadOfSet(obj); ok && key.Kind == kind {
			return []types.NamespacedName{key.NamespacedName}
		}
		return nil
	}
}

// workloadsOfPod maps a pod to the workload of a kind behind its controller. A pod whose ReplicaSet is not known yet maps to
// nothing: the event of the ReplicaSet follows.
func (e *Engine) workloadsOfPod(kind string) reconcile.Mapper {
	return func(ctx context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		if dir := e.directory(m.Name); dir != nil && dir.isProbe(obj) {
			return e.workloadsOfProbe(ctx, dir, m.Reader, obj, kind)
		}
		if pod, ok := obj.(*corev1.Pod); ok && kind == KindDeployment {
			if r := releasedOf(e.options.Keys, pod); r != nil {
				return e.workloadOfReleased(m.Reader, obj.GetNamespace(), r)
			}
		}
		if key, ok := e.workloadOfPod(m.Reader, obj); ok && key.Kind == kind {
			return []types.NamespacedName{key.NamespacedName}
		}
		return nil
	}
}

// workloadOfReleased names the Deployment that a pod was released from: that of its ReplicaSet or, when that is gone, the one
// that the pod names.
func (e *Engine) workloadOfReleased(cache client.Reader, namespace string, r *plan.Released) []types.NamespacedName {
	key := types.NamespacedName{Namespace: namespace, Name: r.OwnerName}
	var set appsv1.ReplicaSet
	err := cache.Get(context.Background(), key, &set, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if workload, ok := e.kinds.workloadOfSet(&set); err == nil && set.UID == r.Owner && ok && workload.Kind == KindDeployment {
		return []types.NamespacedName{workload.NamespacedName}
	}
	if r.Workload == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: r.Workload}}
}

// workloadOfPod names the workload that a pod belongs to, as the cache shows it.
func (e *Engine) workloadOfPod(cache client.Reader, pod client.Object) (policy.WorkloadKey, bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return policy.WorkloadKey{}, false
	}
	key := types.NamespacedName{Namespace: pod.GetNamespace(), Name: ref.Name}
	switch kind := e.kinds.owner(ref.APIVersion, ref.Kind); kind {
	case "":
		return policy.WorkloadKey{}, false
	case kindReplicaSet:
		var set appsv1.ReplicaSet
		err := cache.Get(context.Background(), key, &set, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
		if err != nil || set.UID != ref.UID {
			return policy.WorkloadKey{}, false
		}
		return e.kinds.workloadOfSet(&set)
	default:
		return policy.WorkloadKey{Kind: kind, NamespacedName: key}, true
	}
}

// workloadsOfNamespace wakes the workloads of a namespace, whose policies may come from it.
func (e *Engine) workloadsOfNamespace(kind string) reconcile.Mapper {
	return func(ctx context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		list := e.listOf(kind)
		if err := m.Reader.List(ctx, list, client.InNamespace(obj.GetName()), readOnlyList); err != nil {
			return nil // the kind is not cached: there is nothing to wake
		}
		var keys []types.NamespacedName
		_ = meta.EachListItem(list, func(item runtime.Object) error { // our function never fails
			if o, ok := item.(client.Object); ok && (kind != KindReplicaSet || e.placesItself(o)) {
				keys = append(keys, client.ObjectKeyFromObject(o))
			}
			return nil
		})
		return keys
	}
}

// listOf makes an empty list of a kind of workloads.
func (e *Engine) listOf(kind string) client.ObjectList {
	switch kind {
	case KindDeployment:
		return &appsv1.DeploymentList{}
	case KindStatefulSet:
		return &appsv1.StatefulSetList{}
	case KindReplicaSet:
		return &appsv1.ReplicaSetList{}
	}
	configured, _ := e.kinds.find(kind)
	return configured.list()
}

// placesItself reports whether a ReplicaSet is a workload: all are cached, and most belong to a Deployment.
func (e *Engine) placesItself(set client.Object) bool {
	return metav1.GetControllerOfNoCopy(set) == nil && set.GetLabels()[e.options.Keys.Enabled()] == policy.EnabledValue
}
