package reconcile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// Owns wakes a key when an object that it controls changes: one with a controller owner reference to it, or with
// [AnyOwner] any owner reference.
func (b *Builder[T]) Owns(kind clusters.Kind, opts ...WatchOption) *Builder[T] {
	return b.other(watch{kind: kind, role: roleOwned}, opts)
}

func (b *Builder[T]) other(w watch, opts []WatchOption) *Builder[T] {
	for _, option := range opts {
		option(&w)
	}
	if w.anyOwner && w.role != roleOwned {
		b.fail("%s(%T): AnyOwner is for Owns", w.role, w.kind.Object)
	}
	b.others = append(b.others, w)
	return b
}

// Watches wakes the keys that the mapper names when an object of the kind changes.
func (b *Builder[T]) Watches(kind clusters.Kind, mapper Mapper, opts ...WatchOption) *Builder[T] {
	if mapper == nil {
		b.fail("Watches(%T): the mapper is nil", kind.Object)
	}
	return b.other(watch{kind: kind, role: roleMapped, mapper: mapper}, opts)
}

// Uses has a kind cached that the reconciler reads, without waking anything.
func (b *Builder[T]) Uses(kind clusters.Kind) *Builder[T] {
	b.others = append(b.others, watch{kind: kind, role: roleUsed})
	return b
}

// A WatchOption changes what wakes keys, for [Builder.Owns] and [Builder.Watches].
type WatchOption func(*watch)

// When drops events of a kind for which keep is false. old is nil for an object that is new in the cache. Objects that are gone
// are not asked about. keep must not change the objects, which are the cache's; one that panics keeps the event. Several of
// them must all be true.
func When(keep func(old, now client.Object) bool) WatchOption {
	return func(w *watch) { w.when = append(w.when, keep) }
}

// AnyOwner wakes every object of the reconciled kind that is named by an owner reference, not only the controller: for objects
// that are shared, or that a controller of somebody else controls. [Request.ListOwned] finds those that are controlled.
func AnyOwner() WatchOption { return func(w *watch) { w.anyOwner = true } }

// counts reports whether an event of another kind than the reconciled one wakes anything.
func (w *watch) counts(e *engagement, old, now client.Object) (counts bool) {
	defer func() {
		if p := recover(); p != nil {
			w.panicked(e, now, "predicate panicked", p)
			counts = true
		}
	}()
	for _, keep := range w.when {
		if !keep(old, now) {
			return false
		}
	}
	return true
}

// owners names the owners of an object that are of the reconciled kind and count.
func (w *watch) owners(obj client.Object) (names []string) {
	if !w.anyOwner {
		if name, ok := object.ControllerOf(obj, w.owner); ok {
			names = append(names, name)
		}
		return names
	}
	for _, ref := range obj.GetOwnerReferences() {
		if object.IsKind(&ref, w.owner) {
			names = append(names, ref.Name)
		}
	}
	return names
}
