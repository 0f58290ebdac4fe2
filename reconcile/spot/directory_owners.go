package spot

import (
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// setReplicaSet stores a ReplicaSet, which is a workload itself when it has no controller. It returns the workload; false
// when its pods are not placed.
func (d *directory) setReplicaSet(rs *appsv1.ReplicaSet, live bool, now time.Time) (policy.WorkloadKey, bool) {
	desired, err := strconv.Atoi(rs.Annotations[annotationDesiredReplicas])
	if err != nil {
		desired = -1
	}
	key, ok := d.kinds.workloadOfSet(rs)
	if !ok {
		key = policy.WorkloadKey{}
	}
	var controller types.UID
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		controller = ref.UID
	}
	d.setOwner(ownerKey{rs.Namespace, rs.UID}, ownerFacts{kind: kindReplicaSet, name: rs.Name, workload: key, controller: controller, replicas: replicasOf(rs.Spec.Replicas),
		desired: desired, revision: rs.Annotations[annotationRevision], selector: rs.Spec.Selector, template: templateOf(rs, rs.Spec.Template.Labels)}, live, now)
	if key.Kind == KindReplicaSet {
		d.setWorkload(key, &rs.ObjectMeta, replicasOf(rs.Spec.Replicas), live, now)
	} else {
		d.removeWorkload(keyOf(KindReplicaSet, rs), rs.UID) // it may have been adopted
	}
	return key, ok
}

// setConfigured stores a workload of a kind that the configuration names, and what it may be beside that: the direct owner
// of its pods.
func (d *directory) setConfigured(k WorkloadKind, obj *unstructured.Unstructured, live bool, now time.Time) {
	key := keyOf(k.Name(), obj)
	d.setWorkload(key, metaOf(obj), k.wanted(obj), live, now)
	d.setOwner(ownerKey{key.Namespace, obj.GetUID()}, ownerFacts{kind: k.Name(), name: obj.GetName(), workload: key, replicas: k.wanted(obj),
		desired: -1, selector: k.selector(obj), template: k.template(obj)}, live, now)
}

// setStatefulSet stores a StatefulSet as the direct owner of its pods.
func (d *directory) setStatefulSet(set *appsv1.StatefulSet, live bool, now time.Time) {
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	key := policy.WorkloadKey{Kind: KindStatefulSet, NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}
	d.setOwner(ownerKey{set.Namespace, set.UID}, ownerFacts{kind: KindStatefulSet, name: set.Name, workload: key, replicas: replicasOf(set.Spec.Replicas),
		desired: -1, start: start, selector: set.Spec.Selector, template: templateOf(set, set.Spec.Template.Labels)}, live, now)
}

func (d *directory) setOwner(key ownerKey, facts ownerFacts, live bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.ownerLocked(key)
	if live && o.kind != "" && o.readAt.IsZero() {
		return
	}
	if live {
		facts.readAt = now
	}
	o.isOfKind(facts.kind)
	grew := facts.replicas > o.replicas
	o.ownerFacts = facts
	if facts.template != nil {
		o.mu.Lock()
		d.keepPodShape(o, o.shape.Text, facts.template.shape)
		o.mu.Unlock()
	}
	if grew {
		o.signal()
	}
}

// ownerLocked returns the owner with that key, made when it is not known: pods may be seen before their ReplicaSet. Until its kind is
// learned, it remembers the ordinals of its pods, for it may be a StatefulSet: what the pods say of its kind may be wrong.
func (d *directory) ownerLocked(key ownerKey) *owner {
	o := d.owners[key]
	if o == nil {
		o = &owner{ownerKey: key, ownerFacts: ownerFacts{desired: -1}, slots: slots.NewAccounting(true)}
		d.owners[key] = o
	}
	return o
}

// owner returns the owner with that key; nil when it is not known.
func (d *directory) owner(key ownerKey) *owner {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.owners[key]
}

// ensureOwner returns the owner of a living pod, which may be seen before its ReplicaSet is. kind is that of the object itself; empty:
// only pods were seen.
func (d *directory) ensureOwner(key ownerKey, kind string) *owner {
	o := d.owner(key)
	if o == nil {
		d.mu.Lock()
		o = d.ownerLocked(key)
		d.mu.Unlock()
	}
	o.isOfKind(kind)
	return o
}

// isOfKind learns the kind of the owner, from the object itself; empty: it was not seen.
func (o *owner) isOfKind(kind string) {
	if kind == "" || kind == KindStatefulSet {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.ForgetOrdinals()
}

// dropUnknownOwner forgets an owner of which only pods were ever seen.
func (d *directory) dropUnknownOwner(key ownerKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.owners[key]; o != nil && o.kind == "" {
		d.dropOwnerLocked(o)
	}
}

func (d *directory) removeOwner(key ownerKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.owners[key]; o != nil {
		d.dropOwnerLocked(o)
	}
}

// dropOwnerLocked forgets an owner. The caller holds mu.
func (d *directory) dropOwnerLocked(o *owner) {
	delete(d.owners, o.ownerKey)
	o.mu.Lock()
	defer o.mu.Unlock()
	d.podShapes.Drop(&o.shape, o.namespace)
}

// standing is what an admission needs to know of a pod's owner.
type standing struct {
	owner  *owner
	policy *policy.Policy // nil: the workload is not enabled
	isSet  bool
	start  int
	wanted int  // replicas that the owner is known to want
	others bool // the owner belongs to something whose pods are not placed
	// Capacity of the type has no room for its pods now.
	dry, onDemandDry bool
	selector         *metav1.LabelSelector // of its pods; nil: unknown
}

// lookup reports what is known about an owner. ok is false when the owner, its workload or its namespace is not known, or is known
// only from a live read that is too old to be believed. The watches of a member are independent: one kind may be known before another.
func (d *directory) lookup(key ownerKey, now time.Time) (s standing, ok bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	o := d.owners[key]
	if o == nil || o.kind == "" {
		return standing{}, false
	}
	if o.workload.Kind == "" && !stale(o.readAt, now) {
		return standing{owner: o, others: true}, true
	}
	w := d.workloads[o.workload]
	if w == nil || stale(w.readAt, now) || stale(o.readAt, now) || d.namespaces[w.key.Namespace] == nil {
		return standing{}, false
	}
	spot, onDemand := d.drySinceLocked(o)
	return standing{owner: o, policy: w.policy, isSet: o.kind == KindStatefulSet, start: o.start, wanted: wanted(o, w), selector: o.selector,
		dry: !spot.IsZero(), onDemandDry: !onDemand.IsZero()}, true
}

// stale reports whether a live read is too old; a zero time is that of a fact from the cache.
func stale(readAt, now time.Time) bool { return !readAt.IsZero() && now.Sub(readAt) > liveReadTTL }

// wanted is how many replicas the owner is known to want. When a Deployment was scaled and its controller has not written
// the ReplicaSet yet, the Deployment knows first: the annotation that the controller keeps on the ReplicaSet still carries
// the old number. That holds only for a ReplicaSet that has all the replicas: during a rollout the shares are the
// deployment controller's to decide.
func wanted(o *owner, w *workload) int {
	if o.kind == kindReplicaSet && o.desired >= 0 && o.replicas == o.desired && w.replicas > o.replicas {
		return w.replicas
	}
	return o.replicas
}

// heard returns a channel that is closed at the next news of the owner. The caller holds mu.
func (o *owner) heard() <-chan struct{} {
	if o.news == nil {
		o.news = make(chan struct{})
	}
	return o.news
}

// signal wakes the admissions that wait for news of the owner.
func (o *owner) signal() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.signalLocked()
}

func (o *owner) signalLocked() {
	if o.news != nil {
		close(o.news)
		o.news = nil
	}
}

func replicasOf(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}

// isApps matches every version of the apps group, and no group whose name only begins like it.
func isApps(apiVersion string) bool {
	group, _, ok := strings.Cut(apiVersion, "/")
	return ok && group == appsv1.GroupName
}
