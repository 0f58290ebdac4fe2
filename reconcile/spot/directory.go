package spot

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of workloads, as their owner references and the API name them.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	KindReplicaSet  = "ReplicaSet" // one without a controller

	kindReplicaSet = KindReplicaSet // as the owner of pods, whoever owns it
)

// directory is what the engine knows of one member's namespaces, workloads and direct owners, kept current by informer
// events, so that an admission needs neither a list nor a copy of a cached object. It is safe for concurrent use.
//
// Lock order: mu before owner.mu.
type directory struct {
	keys     Keys
	defaults Defaults
	allowed  labels.Selector // the configuration's namespaceSelector
	capacity CapacityLabels
	kinds    kindTable
	only     []string // the namespaces that the member is registered for; nil: all

	mu         sync.RWMutex
	namespaces map[string]*namespaceFacts
	workloads  map[WorkloadKey]*workload
	owners     map[types.UID]*owner
	journal    journal
	since      time.Time                    // when it was made
	replaces   time.Time                    // until when another directory of the member may have been in use; zero: none was
	plans      map[WorkloadKey]WorkloadView // what the last plans said; a plan may be made before its workload is seen here
	pruned     time.Time
	nodes      *nodeTable
	droughts   *droughts
	signs      *nodeSigns // of nodes that are on their way; nil: nobody can be asked
	waits      *budgetWaits
	selectors  *hashSelectors
	denials    denials
	lacks      lacks
}

type namespaceFacts struct {
	labels, annotations map[string]string
	live                bool // read live, not from the cache
}

// workload is one Deployment, StatefulSet or other workload. Its fields are guarded by directory.mu; policy is replaced, never changed.
type workload struct {
	key         WorkloadKey
	uid         types.UID
	generation  int64
	labels      map[string]string
	annotations map[string]string
	replicas    int
	policy      *Policy   // nil: not enabled
	enabledAt   time.Time // since when pods of it get a decision, as far as is known; see undecided
	readAt      time.Time // when it was read live; zero once the cache has shown it
}

// owner is the direct controller of pods: a ReplicaSet, or a workload that makes its pods itself. The facts are guarded by
// directory.mu, the accounting by mu.
type owner struct {
	uid types.UID
	ownerFacts

	mu         sync.Mutex
	slots      *Accounting
	news       chan struct{} // closed when something about the owner was seen; nil while nobody waits
	listed     liveListMark  // when its unlabelled pods were last looked for
	unprovable time.Time     // until when no live list is tried; see proofs
	shape      *Shape        // of its newest pod that was seen before it was bound; nil: none was
}

// ownerFacts are guarded by directory.mu.
type ownerFacts struct {
	kind     string // empty: only pods were seen
	name     string
	workload WorkloadKey // without a kind: it belongs to something whose pods are not placed
	// controller is the UID of what a ReplicaSet belongs to; empty: of nothing.
	controller types.UID
	replicas   int    // of its spec
	desired    int    // the Deployment's replicas when its controller last wrote the ReplicaSet; negative: unknown
	revision   string // of a ReplicaSet
	start      int    // first ordinal of a StatefulSet
	selector   *metav1.LabelSelector
	template   *template // nil: unknown, or it wants no replicas
	readAt     time.Time // when it was read live; zero once the cache has shown it
}

func newDirectory(keys Keys, defaults Defaults, allowed labels.Selector) *directory {
	return &directory{
		keys: keys, defaults: defaults, allowed: allowed, namespaces: map[string]*namespaceFacts{},
		workloads: map[WorkloadKey]*workload{}, owners: map[types.UID]*owner{}, plans: map[WorkloadKey]WorkloadView{}, nodes: newNodeTable(),
		since:    time.Now(),
		droughts: newDroughts(DefaultDroughtSettings()), waits: newBudgetWaits(), selectors: newHashSelectors(),
	}
}

// setNamespace stores a namespace, and the policies that follow from it.
func (d *directory) setNamespace(ns *corev1.Namespace, live bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.namespaces[ns.Name]
	if known != nil && live && !known.live {
		return // the cache knows it: its next event is newer than our read, or the same
	}
	facts := &namespaceFacts{labels: ns.Labels, annotations: pickPrefix(ns.Annotations, d.keys.Prefix), live: live}
	d.namespaces[ns.Name] = facts
	if known != nil && maps.Equal(known.labels, facts.labels) && maps.Equal(known.annotations, facts.annotations) {
		return
	}
	for key, w := range d.workloads {
		if key.Namespace == ns.Name {
			d.setPolicyLocked(w)
		}
	}
}

func (d *directory) removeNamespace(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.namespaces, name)
	d.selectors.forget(name)
}

// setWorkload stores what is read of a workload. live says that it was read from the API server and not by the cache:
// the cache's word, once there, is not overwritten by it.
func (d *directory) setWorkload(key WorkloadKey, meta *metav1.ObjectMeta, replicas int, live bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workloads[key]
	if w == nil || w.uid != meta.UID {
		d.pruneLocked(now)
		w = &workload{key: key, uid: meta.UID, enabledAt: enabledFrom(meta.CreationTimestamp.Time, now)}
		d.workloads[key] = w
	} else if live && w.readAt.IsZero() {
		return
	}
	w.generation, w.replicas = meta.Generation, replicas
	w.labels, w.annotations = pick(meta.Labels, d.keys.Enabled()), pickPrefix(meta.Annotations, d.keys.Prefix)
	w.readAt = time.Time{}
	if live {
		w.readAt = now
	}
	d.setPolicyLocked(w)
}

// pruneLocked forgets what was read live long ago and never shown by the cache, at most once in liveReadTTL.
func (d *directory) pruneLocked(now time.Time) {
	if now.Sub(d.pruned) < liveReadTTL {
		return
	}
	d.pruned = now
	maps.DeleteFunc(d.workloads, func(_ WorkloadKey, w *workload) bool { return stale(w.readAt, now) })
	maps.DeleteFunc(d.owners, func(_ types.UID, o *owner) bool { return stale(o.readAt, now) })
}

func (d *directory) setPolicyLocked(w *workload) {
	w.policy = nil
	ns := d.namespaces[w.key.Namespace]
	if ns == nil || !Enabled(d.keys, w.labels, ns.labels) || !d.allowed.Matches(labels.Set(ns.labels)) {
		if ns != nil {
			w.enabledAt = time.Time{}
		}
		return
	}
	policy := ParsePolicy(d.keys, w.annotations, ns.annotations, d.defaults)
	if w.policy = &policy; w.enabledAt.IsZero() {
		w.enabledAt = time.Now()
	}
}

func (d *directory) removeWorkload(key WorkloadKey, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workloads[key]; w != nil && w.uid == uid {
		delete(d.workloads, key)
		delete(d.plans, key)
		d.journal.forget(key)
		d.lacks.isNew(key, "")
	}
}

// setReplicaSet stores a ReplicaSet, which is a workload itself when it has no controller. It returns the workload; false
// when its pods are not placed.
func (d *directory) setReplicaSet(rs *appsv1.ReplicaSet, live bool, now time.Time) (WorkloadKey, bool) {
	desired, err := strconv.Atoi(rs.Annotations[annotationDesiredReplicas])
	if err != nil {
		desired = -1
	}
	key, ok := d.kinds.workloadOfSet(rs)
	if !ok {
		key = WorkloadKey{}
	}
	var controller types.UID
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		controller = ref.UID
	}
	d.setOwner(rs.UID, ownerFacts{kind: kindReplicaSet, name: rs.Name, workload: key, controller: controller, replicas: replicasOf(rs.Spec.Replicas),
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
	d.setOwner(obj.GetUID(), ownerFacts{kind: k.Name(), name: obj.GetName(), workload: key, replicas: k.wanted(obj),
		desired: -1, selector: k.selector(obj), template: k.template(obj)}, live, now)
}

// setStatefulSet stores a StatefulSet as the direct owner of its pods.
func (d *directory) setStatefulSet(set *appsv1.StatefulSet, live bool, now time.Time) {
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	key := WorkloadKey{Kind: KindStatefulSet, NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}
	d.setOwner(set.UID, ownerFacts{kind: KindStatefulSet, name: set.Name, workload: key, replicas: replicasOf(set.Spec.Replicas),
		desired: -1, start: start, selector: set.Spec.Selector, template: templateOf(set, set.Spec.Template.Labels)}, live, now)
}

func (d *directory) setOwner(uid types.UID, facts ownerFacts, live bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.ownerLocked(uid, facts.kind)
	if live && o.kind != "" && o.readAt.IsZero() {
		return
	}
	if live {
		facts.readAt = now
	}
	grew := facts.replicas > o.replicas
	o.ownerFacts = facts
	if grew {
		o.signal()
	}
}

// ownerLocked returns the owner with that UID, made when it is not known: pods may be seen before their ReplicaSet.
func (d *directory) ownerLocked(uid types.UID, kind string) *owner {
	o := d.owners[uid]
	if o == nil {
		o = &owner{uid: uid, ownerFacts: ownerFacts{desired: -1}, slots: NewAccounting(kind == KindStatefulSet)}
		d.owners[uid] = o
	}
	return o
}

// owner returns the owner with that UID; nil when it is not known.
func (d *directory) owner(uid types.UID) *owner {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.owners[uid]
}

// ensureOwner returns the owner of a living pod, which may be seen before its ReplicaSet is.
func (d *directory) ensureOwner(uid types.UID, kind string) *owner {
	if o := d.owner(uid); o != nil {
		return o
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ownerLocked(uid, kind)
}

// dropUnknownOwner forgets an owner of which only pods were ever seen.
func (d *directory) dropUnknownOwner(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.owners[uid]; o != nil && o.kind == "" {
		delete(d.owners, uid)
	}
}

func (d *directory) removeOwner(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owners, uid)
}

// standing is what an admission needs to know of a pod's owner.
type standing struct {
	owner  *owner
	policy *Policy // nil: the workload is not enabled
	isSet  bool
	start  int
	wanted int  // replicas that the owner is known to want
	others bool // the owner belongs to something whose pods are not placed
	// Capacity of the type has no room for its pods now.
	dry, onDemandDry bool
	selector         *metav1.LabelSelector // of its pods; nil: unknown
}

// lookup tells what is known of an owner. ok is false when the owner, or its workload, is not known, or is known only from
// a live read that is too old to be believed.
func (d *directory) lookup(uid types.UID, now time.Time) (s standing, ok bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	o := d.owners[uid]
	if o == nil || o.kind == "" {
		return standing{}, false
	}
	if o.workload.Kind == "" && !stale(o.readAt, now) {
		return standing{owner: o, others: true}, true
	}
	w := d.workloads[o.workload]
	if w == nil || stale(w.readAt, now) || stale(o.readAt, now) {
		return standing{}, false
	}
	spot, onDemand := d.drySinceLocked(o)
	return standing{owner: o, policy: w.policy, isSet: o.kind == KindStatefulSet, start: o.start, wanted: wanted(o, w), selector: o.selector,
		dry: !spot.IsZero(), onDemandDry: !onDemand.IsZero()}, true
}

// stale tells whether a live read is too old; a zero time is that of a fact from the cache.
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

// setView stores what the last plan said of a workload. It is shown once the workload itself is known here.
func (d *directory) setView(view WorkloadView) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans[view.WorkloadKey] = view
}

// dropView forgets what was planned for a workload that is gone, or not enabled any more.
func (d *directory) dropView(key WorkloadKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.plans, key)
}

// view returns what the last plan said of an enabled workload.
func (d *directory) view(key WorkloadKey) (WorkloadView, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	view, planned := d.plans[key]
	return view, planned && d.enabledLocked(key)
}

// views returns what the last plans said of the enabled workloads of a namespace; empty: of all.
func (d *directory) views(namespace string) []WorkloadView {
	d.mu.RLock()
	defer d.mu.RUnlock()
	views := make([]WorkloadView, 0, len(d.plans))
	for key, view := range d.plans {
		if (namespace == "" || key.Namespace == namespace) && d.enabledLocked(key) {
			views = append(views, view)
		}
	}
	return views
}

func (d *directory) enabledLocked(key WorkloadKey) bool {
	w := d.workloads[key]
	return w != nil && w.policy != nil
}

// reserved counts the live reservations of all owners, also of those that nobody plans for any more.
func (d *directory) reserved(now time.Time) int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for _, o := range d.owners {
		o.mu.Lock()
		o.slots.expire(now)
		n += o.slots.Reservations()
		o.mu.Unlock()
	}
	return n
}
