package reconcile

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// primary is what the framework knows of a reconciled kind: what it keeps on its objects, and which of their changes
// matter.
type primary struct {
	finalizer string // of the controller; empty: its reconciler is no Finalizer
	status    bool   // the kind is a StatusObject
	pauses    bool   // the reconciler is called for paused objects too
	keep      func(old, obj client.Object) bool
}

// weigh reports whether an event of a reconciled object wakes its key, and in which priority. old is nil for an object that is new
// in the cache. What people order by annotation, and what decides about cleaning up, is nothing that a predicate may drop.
func (p *primary) weigh(old, obj client.Object, initial bool) (Priority, bool) {
	switch {
	case p.finalizer != "" && obj.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(obj, p.finalizer):
		return 0, false // it goes without us
	case p.requested(old, obj):
		return PriorityOrdered, true
	case old == nil:
		return priorityOfAdd(initial), p.keep(nil, obj)
	case p.steered(old, obj):
		return PriorityChanged, true
	case p.status && onlyStatusChanged(old, obj):
		return 0, false
	}
	return PriorityChanged, p.keep(old, obj)
}

// requested reports whether a person asks for a reconcile that has not been yet. An object that is new in the cache, as after
// a restart, shows it only when its status says what was handled last.
func (p *primary) requested(old, obj client.Object) bool {
	request := obj.GetAnnotations()[AnnotationRequestedAt]
	if request == "" {
		return false
	}
	if old != nil {
		return old.GetAnnotations()[AnnotationRequestedAt] != request
	}
	s, ok := obj.(StatusObject)
	return ok && s.CommonStatus().LastHandledRequest != request
}

// steered reports whether deletion, cleaning up or a pause changed.
func (p *primary) steered(old, obj client.Object) bool {
	deleting := obj.GetDeletionTimestamp() != nil
	if deleting != (old.GetDeletionTimestamp() != nil) || pauseOf(old) != pauseOf(obj) {
		return true
	}
	if p.finalizer == "" {
		return false
	}
	if deleting {
		return !slices.Equal(old.GetFinalizers(), obj.GetFinalizers())
	}
	return controllerutil.ContainsFinalizer(old, p.finalizer) && !controllerutil.ContainsFinalizer(obj, p.finalizer)
}

// onlyStatusChanged reports whether nothing changed that a reconcile of a kind with a status subresource could depend on but
// its own status. The API server counts changes of everything but metadata and status in the generation.
func onlyStatusChanged(old, obj client.Object) bool {
	return old.GetUID() == obj.GetUID() && old.GetGeneration() == obj.GetGeneration() &&
		maps.Equal(old.GetLabels(), obj.GetLabels()) && maps.Equal(old.GetAnnotations(), obj.GetAnnotations()) &&
		equality.Semantic.DeepEqual(old.GetOwnerReferences(), obj.GetOwnerReferences())
}

// pause is what an object's annotation says about reconciling it.
type pause uint8

const (
	pauseNone pause = iota
	pauseOn
	pauseInvalid
)

func pauseOf(obj client.Object) pause {
	switch value, set := obj.GetAnnotations()[AnnotationPaused]; {
	case !set, value == "false":
		return pauseNone
	case value == "true":
		return pauseOn
	}
	return pauseInvalid
}

// steering are the annotations that are cached of every reconciled object, whatever its controllers keep of it.
var steering = []string{AnnotationPaused, AnnotationRequestedAt}

// keepSteering copies into a trimmed object what the framework itself reads.
func keepSteering(from, into client.Object) {
	if finalizers := from.GetFinalizers(); len(finalizers) > 0 {
		into.SetFinalizers(finalizers)
	}
	for _, key := range steering {
		value, set := from.GetAnnotations()[key]
		if !set {
			continue
		}
		kept := maps.Clone(into.GetAnnotations())
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
		into.SetAnnotations(kept)
	}
}

// Annotations by which a person steers the reconciles of one object, of any kind that a controller reconciles.
const (
	// AnnotationRequestedAt asks for a reconcile now, before everything that nobody ordered, whenever its value changes. Any
	// value will do; the time is customary. When the reconcile has ended, however it ended, the ledger shows the value, and a
	// [StatusObject] in status.lastHandledRequest as well.
	AnnotationRequestedAt = "plimsoll.dev/requested-at"
	// AnnotationPaused with the value "true" keeps the object from being reconciled and cleaned up, until it is removed: then
	// it is looked at at once. The ledger says Paused, and a StatusObject has the condition Paused. Values other than "true"
	// and "false" are reported in a Warning event, and pause nothing. Controllers that were built with ReconcilePaused are called
	// all the same, and know themselves what a pause stops.
	AnnotationPaused = "plimsoll.dev/paused"
)
