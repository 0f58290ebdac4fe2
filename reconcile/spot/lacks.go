package spot

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// lacks remembers what was said of workloads that ask for placement and do not get it, so that each is told once.
type lacks struct{ said sync.Map } // WorkloadKey → sentence

// isNew tells whether a sentence about a workload has not been said, and remembers it. An empty one forgets the workload.
func (l *lacks) isNew(key policy.WorkloadKey, sentence string) bool {
	if sentence == "" {
		l.said.Delete(key)
		return false
	}
	before, known := l.said.Swap(key, sentence)
	return !known || before != sentence
}

// tellLack records an Event about a workload that has the label, in a namespace that keeps it from being placed. A workload without
// the label asks for nothing, and so is told nothing.
func (d *directory) tellLack(s *subject) {
	lack := ""
	if s.meta.Labels[d.keys.Enabled()] == policy.EnabledValue && s.meta.DeletionTimestamp.IsZero() {
		lack = d.lackOfNamespace(s.key.Namespace)
	}
	if d.lacks.isNew(s.key, lack) {
		s.events.Warning("NotEnabled", "%s", phrase.Sentence(lack+"; replicas are neither placed nor moved"))
	}
}

// lackOfNamespace is why nothing in a namespace is placed; empty: nothing is against it, or the namespace is not known yet.
func (d *directory) lackOfNamespace(namespace string) string {
	d.mu.RLock()
	ns := d.namespaces[namespace]
	d.mu.RUnlock()
	label := d.keys.Enabled()
	switch {
	case ns == nil:
		return ""
	case ns.labels[label] != policy.EnabledValue:
		return lackOfLabel("namespace "+namespace, label, ns.labels[label], true)
	case !d.allowed.Matches(labels.Set(ns.labels)):
		return fmt.Sprintf("the hub's namespaceSelector does not select namespace %s", namespace)
	}
	return ""
}
