package spot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// notEnabledTimeout bounds the one live read that an explanation may wait for.
const notEnabledTimeout = 2 * time.Second

// NotEnabled is why a workload that exists is not placed.
type NotEnabled struct {
	// Label is the key of the label that the workload and its namespace need with the value "true".
	Label string
	// Workload and Namespace say which of the two does not have it; neither: something else is against it, or nothing.
	Workload, Namespace bool
	// Reason says it in a part of a sentence.
	Reason string
}

// ErrNotKnown says that it is not known now what keeps a workload from being placed.
var ErrNotKnown = errors.New("the member's caches are not synced, or the kind is not placed")

// WhyNotEnabled reports why a workload is not placed. Workloads without the label are in no cache, so it reads the workload live, once,
// within two seconds. The error is that of the API server, NotFound when there is no such workload, or [ErrNotKnown]. Safe for
// concurrent use.
func (e *Engine) WhyNotEnabled(ctx context.Context, memberName string, key policy.WorkloadKey) (NotEnabled, error) {
	m := e.member(memberName)
	if m == nil {
		return NotEnabled{}, ErrNotKnown
	}
	dir, obj := m.directory.Load(), e.kinds.empty(key.Kind)
	if dir == nil || obj == nil {
		return NotEnabled{}, ErrNotKnown
	}
	if dir.only != nil && !slices.Contains(dir.only, key.Namespace) {
		return NotEnabled{Label: e.options.Keys.Enabled(), Reason: fmt.Sprintf("the member is not registered for namespace %s", key.Namespace)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, notEnabledTimeout)
	defer cancel()
	if err := m.cluster.Live().Get(ctx, key.NamespacedName, obj); err != nil {
		return NotEnabled{}, err
	}
	return dir.whyNotEnabled(key, obj), nil
}

// empty returns an object of a kind of workloads to read into; nil: the kind is not placed.
func (t kindTable) empty(name string) client.Object {
	switch name {
	case KindDeployment:
		return &appsv1.Deployment{}
	case KindStatefulSet:
		return &appsv1.StatefulSet{}
	case KindReplicaSet:
		return &appsv1.ReplicaSet{}
	}
	if kind, ok := t.find(name); ok {
		return kind.object()
	}
	return nil
}

// whyNotEnabled looks at the labels of a workload and of its namespace.
func (d *directory) whyNotEnabled(key policy.WorkloadKey, obj client.Object) NotEnabled {
	why := NotEnabled{Label: d.keys.Enabled()}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && key.Kind == KindReplicaSet {
		why.Reason = fmt.Sprintf("ReplicaSet %s belongs to %s %s, which is placed in its place", key.NamespacedName, phrase.Value(owner.Kind), phrase.Value(owner.Name))
		return why
	}
	var reasons []string
	if value, has := obj.GetLabels()[why.Label]; value != policy.EnabledValue {
		why.Workload = true
		reasons = append(reasons, lackOfLabel(key.Kind+" "+key.String(), why.Label, value, has))
	}
	if lack := d.lackOfNamespace(key.Namespace); lack != "" {
		why.Namespace = d.namespaceLacks(key.Namespace)
		reasons = append(reasons, lack)
	}
	if len(reasons) == 0 {
		reasons = []string{fmt.Sprintf("%s %s is enabled and not planned yet", key.Kind, key.NamespacedName)}
	}
	why.Reason = strings.Join(reasons, ", and ")
	return why
}

// namespaceLacks reports whether a namespace does not have the label as it must be.
func (d *directory) namespaceLacks(namespace string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	ns := d.namespaces[namespace]
	return ns != nil && ns.labels[d.keys.Enabled()] != policy.EnabledValue
}

// lackOfLabel says of an object that it does not have the label, or that its value is another one.
func lackOfLabel(object, label, value string, has bool) string {
	if !has || value == "" {
		return fmt.Sprintf("%s does not have the label %s=%s", object, label, policy.EnabledValue)
	}
	return fmt.Sprintf("%s has the label %s=%s; the value must be %s", object, label, phrase.Value(value), policy.EnabledValue)
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

// NoWorkload reports whether an error of [Engine.WhyNotEnabled] says that there is no such workload.
func NoWorkload(err error) bool { return apierrors.IsNotFound(err) }

// notEnabledSaid remembers what was said of workloads that ask for placement and do not get it, so that each is reported once.
type notEnabledSaid struct{ said sync.Map } // WorkloadKey → sentence

// isNew reports whether a sentence about a workload has not been said, and remembers it. An empty one forgets the workload.
func (l *notEnabledSaid) isNew(key policy.WorkloadKey, sentence string) bool {
	if sentence == "" {
		l.said.Delete(key)
		return false
	}
	before, known := l.said.Swap(key, sentence)
	return !known || before != sentence
}

// eventNotEnabled is the reason of a Warning about a workload.
const eventNotEnabled = "NotEnabled" // The workload has the label `enabled`, and its namespace does not, or the hub's `namespaceSelector` excludes it.

// reportLack records an Event about a workload that has the label, in a namespace that keeps it from being placed. A workload without
// the label asks for nothing, and so gets no Event.
func (d *directory) reportLack(s *subject) {
	lack := ""
	if s.meta.Labels[d.keys.Enabled()] == policy.EnabledValue && s.meta.DeletionTimestamp.IsZero() {
		lack = d.lackOfNamespace(s.key.Namespace)
	}
	if d.notEnabled.isNew(s.key, lack) {
		s.events.Warning(eventNotEnabled, "%s", phrase.Sentence(lack+"; replicas are neither placed nor moved"))
	}
}
