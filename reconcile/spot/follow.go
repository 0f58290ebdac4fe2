package spot

import (
	"context"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// follower feeds one directory from informers.
type follower struct {
	member    *member
	directory *directory
	lost      func()                   // called when a kind that is followed is disengaged
	synced    []toolscache.DoneChecker // of the kinds that are followed
	stop      []func()
}

func (f *follower) detach() {
	for _, stop := range f.stop {
		stop()
	}
}

// followAll follows each of the kinds that is cached, and returns the others.
func (f *follower) followAll(ctx context.Context, kinds []client.Object) (others []client.Object) {
	for _, obj := range kinds {
		if !f.follow(ctx, obj) {
			others = append(others, obj)
		}
	}
	return others
}

// follow adds a handler to the informer of a kind, if it is cached.
func (f *follower) follow(ctx context.Context, obj client.Object) bool {
	done, ok := f.member.cluster.Watch(obj)
	if !ok {
		return false
	}
	informer, err := f.member.cluster.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return false
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.seen(obj) },
		UpdateFunc: func(_, obj any) { f.seen(obj) },
		DeleteFunc: func(obj any) { f.gone(obj) },
	})
	if err != nil {
		return false
	}
	f.synced = append(f.synced, registration.HasSyncedChecker())
	f.stop = append(f.stop, func() { _ = informer.RemoveEventHandler(registration) }) // fails only on an informer that ended
	go func() {
		select {
		case <-done:
			f.lost()
		case <-ctx.Done():
		}
	}()
	return true
}

func (f *follower) seen(obj any) {
	d, now := f.directory, time.Now()
	switch obj := obj.(type) {
	case *corev1.Namespace:
		d.setNamespace(obj, false)
	case *corev1.Node:
		f.member.engine.nodeSeen(d, obj, now)
	case *appsv1.Deployment:
		d.setWorkload(keyOf(KindDeployment, obj), &obj.ObjectMeta, replicasOf(obj.Spec.Replicas), false, now)
	case *appsv1.StatefulSet:
		d.setWorkload(keyOf(KindStatefulSet, obj), &obj.ObjectMeta, replicasOf(obj.Spec.Replicas), false, now)
		d.setStatefulSet(obj, false, now)
	case *appsv1.ReplicaSet:
		d.setReplicaSet(obj, false, now)
	case *unstructured.Unstructured:
		if kind, ok := d.kinds.of(obj); ok {
			d.setConfigured(kind, obj, false, now)
		}
	case *corev1.Pod:
		f.podSeen(obj, now)
	}
}

func (f *follower) gone(obj any) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	d := f.directory
	switch obj := obj.(type) {
	case *corev1.Namespace:
		d.removeNamespace(obj.Name)
	case *corev1.Node:
		d.nodes.Remove(obj.Name, time.Now())
	case *appsv1.Deployment:
		d.removeWorkload(keyOf(KindDeployment, obj), obj.UID)
	case *appsv1.StatefulSet:
		d.removeWorkload(keyOf(KindStatefulSet, obj), obj.UID)
		d.removeOwner(ownerKey{obj.Namespace, obj.UID})
	case *appsv1.ReplicaSet:
		d.removeWorkload(keyOf(KindReplicaSet, obj), obj.UID)
		d.removeOwner(ownerKey{obj.Namespace, obj.UID})
	case *unstructured.Unstructured:
		if kind, ok := d.kinds.of(obj); ok {
			d.removeWorkload(keyOf(kind.Name(), obj), obj.GetUID())
			d.removeOwner(ownerKey{obj.GetNamespace(), obj.GetUID()})
		}
	case *corev1.Pod:
		f.podGone(obj, time.Now())
	}
}

func (f *follower) podSeen(pod *corev1.Pod, now time.Time) {
	if f.directory.isProbe(pod) {
		f.directory.droughts.ProbeSeen(f.member.engine.options.Keys, pod, f.directory.nodes.JoinedOf, now)
		return
	}
	key := ownerKey{pod.Namespace, ownerOf(f.member.engine.options.Keys, pod)}
	if key.uid == "" {
		return
	}
	facts := f.member.engine.podFacts(f.directory, pod)
	o := f.directory.owner(key)
	if o == nil {
		if !facts.Alive() {
			return // the end of a pod whose owner is gone already
		}
		o = f.directory.ensureOwner(key, "")
	}
	template := f.directory.shapeText(key)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.Observe(&facts, now)
	f.directory.learnShape(o, pod, template, facts.Alive(), f.directory.droughts.Busy(false))
	o.signalLocked()
}

func (f *follower) podGone(pod *corev1.Pod, now time.Time) {
	f.directory.droughts.Gone(pod.UID)
	if f.directory.isProbe(pod) {
		f.directory.droughts.ProbeGone(pod.Name)
		return
	}
	key := ownerKey{pod.Namespace, ownerOf(f.member.engine.options.Keys, pod)}
	o := f.directory.owner(key)
	if o == nil {
		return
	}
	version, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if o.forgetPod(pod.UID, version, now) {
		f.directory.dropUnknownOwner(key)
	}
}

// forgetPod takes a pod that is gone out of the accounting and reports whether none is left.
func (o *owner) forgetPod(uid types.UID, version uint64, now time.Time) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.Gone(uid, version, now)
	delete(o.shown, uid)
	o.signalLocked()
	return o.slots.Known() == 0
}

func keyOf(kind string, obj client.Object) policy.WorkloadKey {
	return policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}
