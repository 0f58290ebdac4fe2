package nodes

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// goneFor is how long a node that has gone is remembered: longer than its pods stay, which Kubernetes deletes after a minute.
const goneFor = 10 * time.Minute

// maxGone is how many bytes nodes take, about, that have gone; beyond it the first are forgotten. No budget of a cache counts them, and a
// member can have nodes come and go without end.
const maxGone = 8 << 20

// smallestLeft is how long the list of nodes that have gone may be, with those that are there again, whatever there is.
const smallestLeft = 1024

// noticeGone is the notice of a node that is there no more.
const noticeGone = "the node was deleted"

// Table is what is known about a member's nodes: what they cost, whether they have started, and whether they are about to go. It is safe for
// concurrent use.
type Table struct {
	mu    sync.RWMutex
	known map[string]*nodeFacts
	gone  map[string]*nodeFacts // that vanished lately: pods may still name them
	left  []goneNode            // the same, and some that are there again, in the order in which they vanished
	bytes int                   // that those in gone take, about

	// Census counts the capacity labels that the nodes carry.
	Census Census
	// Announced is notified of each node that is seen, with its interruption before and now, while the table is locked. Nil: nobody is.
	// It is set before the first node comes.
	Announced func(before, now *plan.Interruption)

	generation atomic.Uint64 // changes with the labels of nodes, and the nodes
	scaled     atomic.Bool   // an autoscaler was seen at work: nothing is known about the nodes that may come
}

// nodeFacts are replaced, never changed.
type nodeFacts struct {
	labels       map[string]string
	interruption *plan.Interruption // nil: it stays
	start        nodeStart
}

// NewTable returns a table without nodes.
func NewTable() *Table {
	return &Table{known: map[string]*nodeFacts{}, gone: map[string]*nodeFacts{}}
}

// labelled returns the nodes that there are with their labels. The caller holds mu.
func (t *Table) labelled() iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for name, facts := range t.known {
			if !yield(name, facts.labels) {
				return
			}
		}
	}
}

// Set takes in a node, and returns the labels that it had before; nil: it is new. An interruption that stands keeps the time at which it
// was first heard of.
func (t *Table) Set(node *corev1.Node, in *Interruptions, now time.Time) (before map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	interruption := in.Of(node, now)
	known := t.known[node.Name]
	if known != nil && interruption != nil && known.interruption != nil && known.interruption.Notice == interruption.Notice {
		interruption = known.interruption
	}
	var interrupted *plan.Interruption
	if known != nil {
		before, interrupted = known.labels, known.interruption
	}
	if t.Announced != nil {
		t.Announced(interrupted, interruption)
	}
	if known == nil || !maps.Equal(before, node.Labels) {
		t.generation.Add(1)
		t.Census.Replace(before, node.Labels)
	}
	t.known[node.Name] = &nodeFacts{labels: node.Labels, interruption: interruption, start: startOf(node)}
	t.forget(node.Name)
	return before
}

// Remove takes in that a node has gone, and so have its pods, whatever they say.
func (t *Table) Remove(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[name]
	if known == nil {
		return
	}
	delete(t.known, name)
	t.generation.Add(1)
	t.Census.Replace(known.labels, nil)
	t.remember(name, known.labels, now)
}

// goneNode is a node that has gone.
type goneNode struct {
	name string
	at   time.Time
}

// remember keeps what is known of a node that has gone, and forgets those that went too long ago, or are too many. The caller holds mu.
func (t *Table) remember(name string, labels map[string]string, now time.Time) {
	t.forget(name)
	facts := &nodeFacts{labels: labels, interruption: &plan.Interruption{Node: name, Notice: noticeGone, Since: now, Gone: true}}
	t.gone[name] = facts
	t.bytes += facts.bytes()
	if t.left = append(t.left, goneNode{name, now}); len(t.left) > 2*len(t.gone)+smallestLeft {
		t.left = slices.DeleteFunc(t.left, t.isBack)
	}
	for len(t.left) > 0 && (t.bytes > maxGone || now.Sub(t.left[0].at) > goneFor || t.isBack(t.left[0])) {
		if !t.isBack(t.left[0]) {
			t.forget(t.left[0].name)
		}
		t.left = t.left[1:]
	}
}

// isBack reports whether a node was there again since it went. The caller holds mu.
func (t *Table) isBack(n goneNode) bool {
	facts := t.gone[n.name]
	return facts == nil || !facts.interruption.Since.Equal(n.at)
}

// forget removes a node from those that have gone. The caller holds mu.
func (t *Table) forget(name string) {
	if facts := t.gone[name]; facts != nil {
		t.bytes -= facts.bytes()
		delete(t.gone, name)
	}
}

// bytes is about what the facts take.
func (f *nodeFacts) bytes() int {
	const itself, entry = 512, 48
	bytes := itself
	for key, value := range f.labels {
		bytes += entry + len(key) + len(value)
	}
	return bytes
}

// LabelsOf returns the capacity labels of a node, also of one that went lately; false when it is not known.
func (t *Table) LabelsOf(name string) (map[string]string, bool) {
	f := t.find(name)
	if f == nil {
		return nil, false
	}
	return f.labels, true
}

// InterruptionOf returns the interruption of a node; nil when it stays, or is not known: its pods may be seen before it is.
func (t *Table) InterruptionOf(name string) *plan.Interruption {
	if f := t.find(name); f != nil {
		return f.interruption
	}
	return nil
}

func (t *Table) find(name string) *nodeFacts {
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
