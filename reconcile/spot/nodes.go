package spot

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// goneFor is how long a node that has gone is remembered: longer than its pods stay, which Kubernetes deletes after a minute.
const goneFor = 10 * time.Minute

// noticeGone is the notice of a node that is there no more.
const noticeGone = "the node is gone"

// nodeTable is what is known of a member's nodes: what they cost, whether they have started, and whether they are about to go. It is safe for
// concurrent use.
type nodeTable struct {
	mu    sync.RWMutex
	known map[string]*nodeFacts
	gone  map[string]*nodeFacts // that vanished lately: pods may still name them

	census census // of the capacity labels that they carry

	// announced is told of each node that is seen, with its doom before and now, while the table is locked. Nil: nobody is.
	announced func(before, now *plan.Doom)

	generation atomic.Uint64 // changes with the labels of nodes, and the nodes
	scaled     atomic.Bool   // an autoscaler was seen at work: nothing is known of the nodes that may come
}

// nodeFacts are replaced, never changed.
type nodeFacts struct {
	labels map[string]string
	doom   *plan.Doom // nil: it stays
	start  nodeStart
}

func newNodeTable() *nodeTable {
	return &nodeTable{known: map[string]*nodeFacts{}, gone: map[string]*nodeFacts{}}
}

// labelled returns the nodes that there are with their labels. The caller holds mu.
func (t *nodeTable) labelled() iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for name, facts := range t.known {
			if !yield(name, facts.labels) {
				return
			}
		}
	}
}

// set takes in a node, and returns the labels that it had before; nil: it is new. A doom that stands keeps the time at which it
// was first heard of.
func (t *nodeTable) set(node *corev1.Node, in *Interruptions, now time.Time) (before map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	doom := in.Of(node, now)
	known := t.known[node.Name]
	if known != nil && doom != nil && known.doom != nil && known.doom.Notice == doom.Notice {
		doom = known.doom
	}
	var doomed *plan.Doom
	if known != nil {
		before, doomed = known.labels, known.doom
	}
	if t.announced != nil {
		t.announced(doomed, doom)
	}
	if known == nil || !maps.Equal(before, node.Labels) {
		t.generation.Add(1)
		t.census.replace(before, node.Labels)
	}
	t.known[node.Name] = &nodeFacts{labels: node.Labels, doom: doom, start: startOf(node)}
	delete(t.gone, node.Name)
	return before
}

// remove takes in that a node has gone, and so have its pods, whatever they say.
func (t *nodeTable) remove(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[name]
	if known == nil {
		return
	}
	delete(t.known, name)
	t.generation.Add(1)
	t.census.replace(known.labels, nil)
	maps.DeleteFunc(t.gone, func(_ string, f *nodeFacts) bool { return now.Sub(f.doom.Since) > goneFor })
	t.gone[name] = &nodeFacts{labels: known.labels, doom: &plan.Doom{Node: name, Notice: noticeGone, Since: now, Gone: true}}
}

// labelsOf returns the capacity labels of a node, also of one that went lately; false when it is not known.
func (t *nodeTable) labelsOf(name string) (map[string]string, bool) {
	f := t.find(name)
	if f == nil {
		return nil, false
	}
	return f.labels, true
}

// doomOf returns the doom of a node; nil when it stays, or is not known: its pods may be seen before it is.
func (t *nodeTable) doomOf(name string) *plan.Doom {
	if f := t.find(name); f != nil {
		return f.doom
	}
	return nil
}

func (t *nodeTable) find(name string) *nodeFacts {
	if name == "" {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if f := t.known[name]; f != nil {
		return f
	}
	return t.gone[name]
}

// podFacts reads a pod, with what its node tells.
func (e *Engine) podFacts(dir *directory, pod *corev1.Pod) plan.Pod {
	facts := plan.PodOf(e.Keys, pod, e.Capacity.OfPod(pod, dir.nodes.labelsOf))
	facts.Doom, facts.NodeJoined = dir.nodes.doomOf(pod.Spec.NodeName), dir.nodes.joinedOf(pod.Spec.NodeName)
	return facts
}

// nodeSeen takes in a node as the cache shows it. Whoever hears of a further node first, its capacity has grown.
func (e *Engine) nodeSeen(dir *directory, node *corev1.Node, now time.Time) {
	before := dir.nodes.set(node, &e.Interruptions, now)
	capacity := e.Capacity.OfNode(node.Labels)
	if before == nil || e.Capacity.OfNode(before) != capacity {
		dir.droughts.NodeJoined(capacity, now)
	}
}

// workloadsOfNode wakes the workloads of a node's pods when the node is about to go or has gone, and when it stays after all.
func (e *Engine) workloadsOfNode(kind string) reconcile.Mapper {
	ofPod := e.workloadsOfPod(kind)
	return func(ctx context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		dir := e.directory(m.Name)
		if dir == nil || !e.nodeChanged(ctx, dir, m.Reader, obj) {
			return nil
		}
		var pods corev1.PodList
		if err := m.Reader.List(ctx, &pods, client.MatchingFields{nodeNameIndex: obj.GetName()}, readOnlyList); err != nil {
			return nil // pods are not cached: there is nothing to wake
		}
		woken := map[types.NamespacedName]struct{}{}
		for i := range pods.Items {
			for _, key := range ofPod(ctx, m, &pods.Items[i]) {
				woken[key] = struct{}{}
			}
		}
		return slices.Collect(maps.Keys(woken))
	}
}

// nodeChanged brings the table up to date with the cache, for the directory may hear of the change later than who is woken
// here, and tells whether the node goes, or was to go before the change.
func (e *Engine) nodeChanged(ctx context.Context, dir *directory, cache client.Reader, event client.Object) bool {
	now := time.Now()
	var node corev1.Node
	err := cache.Get(ctx, client.ObjectKeyFromObject(event), &node, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case apierrors.IsNotFound(err):
		dir.nodes.remove(event.GetName(), now)
		return true
	case err != nil:
		return false
	}
	e.nodeSeen(dir, &node, now)
	before, ok := event.(*corev1.Node)
	return dir.nodes.doomOf(node.Name) != nil || (ok && e.Interruptions.Of(before, now) != nil)
}
