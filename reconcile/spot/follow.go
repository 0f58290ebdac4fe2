package spot

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// member follows one member's cache. The directory is published when every kind that is cached has delivered its first
// list; when a kind is lost, what was known is dropped and built again from what is left, for a directory that silently
// stands still is worse than none.
type member struct {
	engine    *Engine
	name      string
	cluster   Cluster
	directory atomic.Pointer[directory]
	more      chan struct{} // a further kind may be cached
	reads     liveReads
}

// needed are the kinds without which nothing can be placed; workloadKinds those of which one is enough.
func needed() []client.Object {
	return []client.Object{&corev1.Namespace{}, &corev1.Node{}, &corev1.Pod{}}
}

func workloadKinds() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}}
}

func newMember(e *Engine, name string, c Cluster) *member {
	return &member{engine: e, name: name, cluster: c, more: make(chan struct{}, 1)}
}

func (m *member) kick() {
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// run attaches and attaches anew until ctx ends.
func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !m.attach(ctx) {
			select {
			case <-m.more:
			case <-ctx.Done():
			}
		}
	}
	m.directory.Store(nil)
}

// attach follows the kinds that are cached until one of them is lost, or a further one is there; false when those that
// are needed are not there yet.
func (m *member) attach(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{member: m, directory: newDirectory(m.engine.Keys, m.engine.Defaults, m.engine.Namespaces)}
	defer f.detach()
	for _, obj := range needed() {
		if !f.follow(ctx, cancel, obj) {
			return false
		}
	}
	workloads := 0
	for _, obj := range workloadKinds() {
		if f.follow(ctx, cancel, obj) {
			workloads++
		}
	}
	if workloads == 0 || !toolscache.WaitForCacheSync(ctx.Done(), f.synced...) {
		return workloads > 0
	}
	m.directory.Store(f.directory)
	select {
	case <-ctx.Done():
	case <-m.more:
		if workloads == len(workloadKinds()) {
			<-ctx.Done() // nothing further can come
		}
	}
	m.directory.Store(nil)
	return true
}

// follower feeds one directory from informers.
type follower struct {
	member    *member
	directory *directory
	synced    []toolscache.InformerSynced
	stop      []func()
}

func (f *follower) detach() {
	for _, stop := range f.stop {
		stop()
	}
}

// follow adds a handler to the informer of a kind; lost is called when the kind is disengaged.
func (f *follower) follow(ctx context.Context, lost func(), obj client.Object) bool {
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
	f.synced = append(f.synced, registration.HasSynced)
	f.stop = append(f.stop, func() { _ = informer.RemoveEventHandler(registration) }) // fails only on an informer that ended
	go func() {
		select {
		case <-done:
			lost()
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
		d.setNode(obj.Name, obj.Labels)
	case *appsv1.Deployment:
		d.setWorkload(keyOf(KindDeployment, obj), &obj.ObjectMeta, replicasOf(obj.Spec.Replicas), false, now)
	case *appsv1.StatefulSet:
		d.setWorkload(keyOf(KindStatefulSet, obj), &obj.ObjectMeta, replicasOf(obj.Spec.Replicas), false, now)
		d.setStatefulSet(obj, false, now)
	case *appsv1.ReplicaSet:
		d.setReplicaSet(obj, false, now)
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
		d.removeNode(obj.Name)
	case *appsv1.Deployment:
		d.removeWorkload(keyOf(KindDeployment, obj), obj.UID)
	case *appsv1.StatefulSet:
		d.removeWorkload(keyOf(KindStatefulSet, obj), obj.UID)
		d.removeOwner(obj.UID)
	case *appsv1.ReplicaSet:
		d.removeOwner(obj.UID)
	case *corev1.Pod:
		f.podGone(obj, time.Now())
	}
}

func (f *follower) podSeen(pod *corev1.Pod, now time.Time) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	facts := PodOf(f.member.engine.Keys, pod, f.member.engine.Capacity.OfPod(pod, f.directory.node))
	o := f.directory.owner(ref.UID)
	if o == nil {
		if !facts.Alive() {
			return // the end of a pod whose owner is gone already
		}
		o = f.directory.ensureOwner(ref.UID, ref.Kind)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.Observe(&facts, now)
	o.signalLocked()
}

func (f *follower) podGone(pod *corev1.Pod, now time.Time) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	o := f.directory.owner(ref.UID)
	if o == nil {
		return
	}
	version, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if o.forgetPod(pod.UID, version, now) {
		f.directory.dropUnknownOwner(ref.UID)
	}
}

// forgetPod takes a pod that is gone out of the accounting and tells whether none is left.
func (o *owner) forgetPod(uid types.UID, version uint64, now time.Time) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.Gone(uid, version, now)
	o.signalLocked()
	return len(o.slots.pods) == 0
}

func keyOf(kind string, obj client.Object) WorkloadKey {
	return WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}
