package spot

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/shapes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
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
	keys     policy.Keys
	defaults policy.Defaults
	allowed  labels.Selector // the configuration's namespaceSelector
	capacity capacity.Labels
	kinds    kindTable
	splitOf  func(policy.WorkloadKey) *policy.FleetSplit // what fleet placements want; nil: nothing
	only     []string                                    // the namespaces that the member is registered for; nil: all
	probes   string                                      // the namespace of probes

	mu         sync.RWMutex
	namespaces map[string]*namespaceFacts
	workloads  map[policy.WorkloadKey]*workload
	owners     map[ownerKey]*owner
	journal    report.Journal
	memos      podMemos
	onMove     func(policy.WorkloadKey, report.Move)  // nil: nobody is notified
	dry        map[dryShape]time.Time                 // the shortages that were reported; only tend looks at it
	since      time.Time                              // when it was made
	replaces   time.Time                              // until when another directory of the member may have been in use; zero: none was
	plans      map[policy.WorkloadKey]report.Workload // what the last plans said; a plan may be made before its workload is seen here
	pruned     time.Time
	needs      shapes.Search // for owners that need a decision on a shortage; only tend looks at it
	podShapes  shapes.Keeper // of owners
	nodes      *nodes.Table
	droughts   *shortage.Trackers
	signs      *nodes.Autoscalers // of nodes that are on their way; nil: nobody can be asked
	waits      *budgetWaits
	selectors  *hashSelectors
	denials    denials
	notEnabled notEnabledSaid
}

type namespaceFacts struct {
	labels, annotations map[string]string
	live                bool // read live, not from the cache
}

// workload is one Deployment, StatefulSet or other workload. Its fields are guarded by directory.mu; policy is replaced, never changed.
type workload struct {
	key         policy.WorkloadKey
	uid         types.UID
	generation  int64
	labels      map[string]string
	annotations map[string]string
	replicas    int
	policy      *policy.Policy // nil: not enabled
	enabledAt   time.Time      // since when pods of it get a decision, as far as is known; see undecided
	readAt      time.Time      // when it was read live; zero once the cache has shown it
}

// ownerKey tells owners apart. The UID alone does not: it is what controller references name, and whoever creates pods may write the
// UID of another tenant's ReplicaSet into theirs. A controller and its pods are in one namespace, so that such pods have an owner of
// their own, which is nobody's.
type ownerKey struct {
	namespace string
	uid       types.UID
}

// String returns a text that no other key has: no namespace has a slash in its name.
func (k ownerKey) String() string { return k.namespace + "/" + string(k.uid) }

// owner is the direct controller of pods: a ReplicaSet, or a workload that makes its pods itself. The facts are guarded by
// directory.mu, the accounting by mu.
type owner struct {
	ownerKey
	ownerFacts

	mu         sync.Mutex
	slots      *slots.Accounting
	news       chan struct{}            // closed when something about the owner was seen; nil while nobody waits
	search     plan.Search              // for its pods without a slot
	unprovable time.Time                // until when no live list is tried; see proofs
	shape      shapes.Kept              // of its newest pod that was seen before it was bound; empty: none was, or it is the template's
	shown      map[types.UID]shapes.Sum // of the shapes of its pods that no node had when they were last seen, or when it last mattered
}

// ownerFacts are guarded by directory.mu.
type ownerFacts struct {
	kind     string // empty: only pods were seen
	name     string
	workload policy.WorkloadKey // without a kind: it belongs to something whose pods are not placed
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

func newDirectory(keys policy.Keys, defaults policy.Defaults, allowed labels.Selector) *directory {
	return &directory{
		keys: keys, defaults: defaults, allowed: allowed, namespaces: map[string]*namespaceFacts{},
		workloads: map[policy.WorkloadKey]*workload{}, owners: map[ownerKey]*owner{}, plans: map[policy.WorkloadKey]report.Workload{}, nodes: nodes.NewTable(),
		since:    time.Now(),
		droughts: shortage.NewTrackers(shortage.DefaultSettings()), waits: newBudgetWaits(), selectors: newHashSelectors(),
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
func (d *directory) setWorkload(key policy.WorkloadKey, meta *metav1.ObjectMeta, replicas int, live bool, now time.Time) {
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
	maps.DeleteFunc(d.workloads, func(_ policy.WorkloadKey, w *workload) bool { return stale(w.readAt, now) })
	for _, o := range d.owners {
		if stale(o.readAt, now) {
			d.dropOwnerLocked(o)
		}
	}
}

func (d *directory) setPolicyLocked(w *workload) {
	w.policy = nil
	ns := d.namespaces[w.key.Namespace]
	if ns == nil || !policy.Enabled(d.keys, w.labels, ns.labels) || !d.allowed.Matches(labels.Set(ns.labels)) {
		if ns != nil {
			w.enabledAt = time.Time{}
		}
		return
	}
	pol := policy.Parse(d.keys, w.annotations, ns.annotations, d.defaults)
	if d.splitOf != nil {
		pol = pol.Under(d.splitOf(w.key), d.keys)
	}
	if w.policy = &pol; w.enabledAt.IsZero() {
		w.enabledAt = time.Now()
	}
}

func (d *directory) removeWorkload(key policy.WorkloadKey, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workloads[key]; w != nil && w.uid == uid {
		delete(d.workloads, key)
		delete(d.plans, key)
		d.journal.Forget(key)
		d.notEnabled.isNew(key, "")
	}
}

// setView stores what the last plan said of a workload. It is shown once the workload itself is known here.
func (d *directory) setView(view report.Workload) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans[view.WorkloadKey] = view
}

// dropView forgets what was planned for a workload that is gone, or not enabled any more.
func (d *directory) dropView(key policy.WorkloadKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.plans, key)
}

// view returns what the last plan said of an enabled workload.
func (d *directory) view(key policy.WorkloadKey) (report.Workload, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	view, planned := d.plans[key]
	return view, planned && d.enabledLocked(key)
}

// views returns what the last plans said of the enabled workloads of a namespace; empty: of all.
func (d *directory) views(namespace string) []report.Workload {
	d.mu.RLock()
	defer d.mu.RUnlock()
	views := make([]report.Workload, 0, len(d.plans))
	for key, view := range d.plans {
		if (namespace == "" || key.Namespace == namespace) && d.enabledLocked(key) {
			views = append(views, view)
		}
	}
	return views
}

func (d *directory) enabledLocked(key policy.WorkloadKey) bool {
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
		o.slots.Expire(now)
		n += o.slots.Reservations()
		o.mu.Unlock()
	}
	return n
}
