package reconcile

import (
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// role is what a kind is to a controller.
type role uint8

const (
	rolePrimary role = iota // reconciled
	roleOwned               // wakes its controller owner
	roleMapped              // wakes what the mapper says
	roleUsed                // is only read
)

// String is the word of the builder.
func (r role) String() string { return [...]string{"Kind", "Owns", "Watches", "Uses"}[r] }

// A watch is one kind that a controller needs, and what its events do.
type watch struct {
	kind     clusters.Kind
	gvk      schema.GroupVersionKind
	role     role
	owner    schema.GroupKind // the reconciled kind
	anyOwner bool             // of roleOwned: owner references count that are not the controller's
	mapper   Mapper
	when     []func(old, now client.Object) bool                         // of others than the primary: what wakes
	weigh    func(old, obj client.Object, initial bool) (Priority, bool) // of the primary
}

// handler turns a kind's events in one engagement into wake-ups.
func (w *watch) handler(e *engagement) toolscache.ResourceEventHandler {
	if w.role == rolePrimary {
		return w.primaryHandler(e)
	}
	return w.mappedHandler(e)
}

// primaryHandler wakes the object's own key. Updates that change nothing are the informer's resync, and ours is better.
func (w *watch) primaryHandler(e *engagement) toolscache.ResourceEventHandler {
	wake := func(old, obj client.Object, initial bool) {
		if obj.GetNamespace() == "" {
			e.clusterScoped.Store(true)
		}
		if priority, ok := w.weighed(e, old, obj, initial); ok {
			e.controller.queue.wake(e.flow, client.ObjectKeyFromObject(obj), priority, nil)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			if obj, ok := added.(client.Object); ok {
				wake(nil, obj, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			old, obj, ok := object.Changed(before, after)
			if ok {
				wake(old, obj, false)
			}
		},
		DeleteFunc: func(deleted any) {
			if obj := object.LastKnown(deleted); obj != nil {
				e.controller.queue.lost(e.flow, client.ObjectKeyFromObject(obj), e.controller.keeps)
			}
		},
	}
}

// weighed calls weigh, which asks a predicate. One that panics costs itself: the event counts as one that it keeps.
func (w *watch) weighed(e *engagement, old, obj client.Object, initial bool) (priority Priority, keep bool) {
	defer func() {
		if p := recover(); p != nil {
			w.panicked(e, obj, "predicate panicked", p)
			priority, keep = PriorityChanged, true
			if old == nil {
				priority = priorityOfAdd(initial)
			}
		}
	}()
	return w.weigh(old, obj, initial)
}

// panicked counts and logs a panic in what the kind's author wrote.
func (w *watch) panicked(e *engagement, obj client.Object, message string, p any) {
	e.controller.rt.metrics.panicked(e.controller.name, e.name)
	e.log.Error(message, "kind", object.KindName(w.gvk), "namespace", obj.GetNamespace(), "name", obj.GetName(),
		"panic", object.Clip(fmt.Sprint(p)), "stack", string(debug.Stack()))
}

// mappedHandler wakes the keys that an object of another kind concerns, before and after a change.
func (w *watch) mappedHandler(e *engagement) toolscache.ResourceEventHandler {
	wake := func(obj client.Object, priority Priority) {
		for _, key := range w.keys(e, obj) {
			e.controller.queue.wake(e.flow, key, priority, e.known)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			if obj, ok := added.(client.Object); ok && w.counts(e, nil, obj) {
				wake(obj, priorityOfAdd(initial))
			}
		},
		UpdateFunc: func(before, after any) {
			if old, obj, ok := object.Changed(before, after); ok && w.counts(e, old, obj) {
				wake(old, PriorityChanged)
				wake(obj, PriorityChanged)
			}
		},
		DeleteFunc: func(deleted any) {
			if obj := object.LastKnown(deleted); obj != nil {
				wake(obj, PriorityChanged)
			}
		},
	}
}

// keys names the keys that an object of another kind concerns.
func (w *watch) keys(e *engagement, obj client.Object) []types.NamespacedName {
	if w.role == roleMapped {
		return w.mapped(e, obj)
	}
	var keys []types.NamespacedName
	for _, name := range w.owners(obj) {
		key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
		if e.clusterScoped.Load() {
			key.Namespace = ""
		}
		keys = append(keys, key)
	}
	return keys
}

// mapped calls the mapper. One that panics costs its event, not the hub.
func (w *watch) mapped(e *engagement, obj client.Object) (keys []types.NamespacedName) {
	defer func() {
		if p := recover(); p != nil {
			w.panicked(e, obj, "mapper panicked", p)
		}
	}()
	return w.mapper(e.ctx, &Member{Name: e.name, Reader: e.cluster.GetCache()}, obj)
}

func priorityOfAdd(initial bool) Priority {
	if initial {
		return PriorityBackground
	}
	return PriorityChanged
}
