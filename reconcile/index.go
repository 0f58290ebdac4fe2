package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// reservedIndex is the prefix of the names of the framework's own indexes.
const reservedIndex = "plimsoll.dev/"

// ownedByUID restricts a List from a member's cache to the objects whose controller owner has the UID, whatever kind and
// version the owner reference names. It is answered from an index, which the kinds have that the controller Owns; of
// other kinds the List fails. See [Request.ListOwned] for the objects of the one that is reconciled.
func ownedByUID(uid types.UID) client.ListOption {
	return client.MatchingFields{object.ControllerIndex: string(uid)}
}

// ListOwned reads from the member's cache, into list, the objects of its kind that the reconciled object controls: their
// controller owner reference has its UID, and its group and kind in any version. What is in a namespace controls nothing
// outside of it, as for Kubernetes' garbage collector: references from elsewhere do not count. The controller must Own the
// kind. The cache may not show yet what was written a moment ago.
func (r Request[T]) ListOwned(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	owner, err := r.Client.GroupVersionKindFor(r.Object)
	if err != nil {
		return fmt.Errorf("member %s: list owned %T: kind of the owner %T: %w", r.Member, list, r.Object, err)
	}
	if r.Object.GetUID() == "" {
		return fmt.Errorf("member %s: list owned %T: %s %s has no UID: it was not read from a cluster", r.Member, list,
			owner.Kind, client.ObjectKeyFromObject(r.Object))
	}
	namespace := r.Object.GetNamespace()
	opts = append([]client.ListOption{ownedByUID(r.Object.GetUID()), client.InNamespace(namespace)}, opts...)
	if err := r.Client.List(ctx, list, opts...); err != nil {
		if strings.Contains(err.Error(), object.ControllerIndex) { // controller-runtime has no type for it
			return fmt.Errorf("member %s: list owned %T: the controller does not Own the kind: %w", r.Member, list, err)
		}
		return fmt.Errorf("member %s: list owned %T: %w", r.Member, list, err)
	}
	return keepOwned(list, owner.GroupKind(), namespace)
}

// keepOwned takes the items out of a list whose controller owner is of another group or kind, or cannot be theirs because
// it is in another namespace; empty: it is in none. UIDs are unique, so there are none unless somebody wrote a reference
// that lies.
func keepOwned(list client.ObjectList, kind schema.GroupKind, namespace string) error {
	var kept []runtime.Object
	lies := false
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok || namespace != "" && obj.GetNamespace() != namespace {
			lies = true
			return nil
		}
		if _, owned := object.ControllerOf(obj, kind); owned {
			kept = append(kept, item)
			return nil
		}
		lies = true
		return nil
	}); err != nil || !lies {
		return err
	}
	return meta.SetList(list, kept)
}

// An index is a field index that a controller declared.
type index struct {
	object  client.Object
	name    string
	extract client.IndexerFunc
}

// Index declares a field index on a kind of this controller: the reconciled one, or one that it Owns, Watches or Uses. A
// List from a member's cache with client.MatchingFields{name: value} is then answered without a walk over all objects. The
// function is called for every object that is cached, of which it sees what is kept ([clusters.Kind].Keep), must not change
// it, and returns the values it can be found by; one that panics finds nothing. Controllers that declare an index of the
// same name on the same kind must mean the same function. The name must not begin with "plimsoll.dev/".
func (b *Builder[T]) Index(obj client.Object, name string, extract client.IndexerFunc) *Builder[T] {
	switch {
	case object.IsNil(obj):
		b.fail("Index(%q): the object is nil", name)
	case extract == nil:
		b.fail("Index(%T, %q): the function is nil", obj, name)
	case name == "" || strings.HasPrefix(name, reservedIndex):
		b.fail("Index(%T, %q): the name must not be empty or begin with %q", obj, name, reservedIndex)
	default:
		b.indexes = append(b.indexes, index{object: obj, name: name, extract: extract})
	}
	return b
}

// addIndexes puts the declared indexes, and the owner index of owned kinds, into the kinds.
func (b *Builder[T]) addIndexes(watches []watch) {
	for i := range watches {
		if watches[i].role == roleOwned {
			setIndex(&watches[i].kind, object.ControllerIndex, object.ControllerUID)
		}
	}
	for _, x := range b.indexes {
		w := b.rt.watchOf(watches, x.object)
		if w == nil {
			b.fail("Index(%T, %q): the controller has no such kind: add it with Owns, Watches or Uses", x.object, x.name)
			continue
		}
		if _, taken := w.kind.Indexes[x.name]; taken {
			b.fail("Index(%T, %q): the kind has an index of this name already", x.object, x.name)
			continue
		}
		extract, err := b.rt.index(w.gvk, x, b.name)
		if err != nil {
			b.fail("Index(%T, %q): %w", x.object, x.name, err)
			continue
		}
		setIndex(&w.kind, x.name, extract)
	}
}

// watchOf finds the watch of an object's kind.
func (rt *Runtime) watchOf(watches []watch, obj client.Object) *watch {
	gvk, err := apiutil.GVKForObject(obj, rt.opts.Scheme)
	if err != nil {
		return nil
	}
	for i := range watches {
		if watches[i].gvk == gvk {
			return &watches[i]
		}
	}
	return nil
}

func setIndex(kind *clusters.Kind, name string, extract client.IndexerFunc) {
	kind.Indexes = maps.Clone(kind.Indexes)
	if kind.Indexes == nil {
		kind.Indexes = map[string]client.IndexerFunc{}
	}
	kind.Indexes[name] = extract
}

// indexKey names an index over all controllers.
type indexKey struct {
	gvk  schema.GroupVersionKind
	name string
}

// sharedIndex is an index that controllers share, and who declared it first.
type sharedIndex struct {
	controller string
	function   uintptr
	extract    client.IndexerFunc
}

// index returns the function to declare for an index. It is the same one for all controllers that declare the same index.
func (rt *Runtime) index(gvk schema.GroupVersionKind, x index, controller string) (client.IndexerFunc, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	key, function := indexKey{gvk, x.name}, reflect.ValueOf(x.extract).Pointer()
	if other, taken := rt.indexes[key]; taken {
		if other.function != function {
			return nil, fmt.Errorf("controller %q declares another index of this name", other.controller)
		}
		return other.extract, nil
	}
	shared := sharedIndex{controller: controller, function: function, extract: guarded(gvk, x, rt.log)}
	rt.indexes[key] = shared
	return shared.extract, nil
}

// guarded calls an index function. One that panics costs its object the index, not the hub.
func guarded(gvk schema.GroupVersionKind, x index, log *slog.Logger) client.IndexerFunc {
	return func(obj client.Object) (values []string) {
		defer func() {
			if p := recover(); p != nil {
				values = nil
				log.Error("index function panicked", "index", x.name, "kind", object.KindName(gvk), "namespace", obj.GetNamespace(),
					"name", obj.GetName(), "panic", object.Clip(fmt.Sprint(p)), "stack", string(debug.Stack()))
			}
		}()
		return x.extract(obj)
	}
}
