package caching

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// partedCache is the cache of one kind in a member that is registered for named namespaces. It has a part for each of
// them, because no single list shows several namespaces and no others. controller-runtime's own asks the member whether a
// kind is namespaced, at each read, and cannot part the Namespaces themselves.
type partedCache struct {
	resource schema.GroupResource
	byName   bool // parts are found by an object's name: the objects are Namespaces, or have no namespaces and are cached one by one
	order    []string
	parts    map[string]cache.Cache // by namespace
}

var _ cache.Cache = (*partedCache)(nil)

// NewParted creates one cache of parts, each of a namespace.
func NewParted(resource schema.GroupResource, byName bool, parts map[string]cache.Cache) cache.Cache {
	return &partedCache{resource: resource, byName: byName, parts: parts, order: slices.Sorted(maps.Keys(parts))}
}

// Get reads one object; what lies in no part is not found.
func (c *partedCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	at := key.Namespace
	if c.byName {
		at = key.Name
	}
	if part := c.parts[at]; part != nil {
		return part.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(c.resource, key.Name)
}

// List reads objects of one namespace or of all parts, in the order of their names. A limit holds for each part.
func (c *partedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var items []runtime.Object
	for _, name := range c.order {
		if !c.byName && options.Namespace != "" && options.Namespace != name {
			continue
		}
		some := list.DeepCopyObject().(client.ObjectList)
		if err := c.parts[name].List(ctx, some, opts...); err != nil {
			return err
		}
		found, err := meta.ExtractList(some)
		if err != nil {
			return err
		}
		items = append(items, found...)
	}
	return meta.SetList(list, items)
}

// GetInformer returns the informers of all parts as one.
func (c *partedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(func(part cache.Cache) (cache.Informer, error) { return part.GetInformer(ctx, obj, opts...) })
}

// GetInformerForKind returns the informers of all parts as one.
func (c *partedCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(func(part cache.Cache) (cache.Informer, error) { return part.GetInformerForKind(ctx, gvk, opts...) })
}

func (c *partedCache) informer(of func(cache.Cache) (cache.Informer, error)) (cache.Informer, error) {
	all := make(partedInformer, 0, len(c.order))
	for _, name := range c.order {
		informer, err := of(c.parts[name])
		if err != nil {
			return nil, err
		}
		all = append(all, informer)
	}
	return all, nil
}

// RemoveInformer removes the informers of all parts.
func (c *partedCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	return c.each(func(part cache.Cache) error { return part.RemoveInformer(ctx, obj) })
}

// IndexField adds an index to all parts.
func (c *partedCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	return c.each(func(part cache.Cache) error { return part.IndexField(ctx, obj, field, extract) })
}

func (c *partedCache) each(do func(cache.Cache) error) error {
	for _, name := range c.order {
		if err := do(c.parts[name]); err != nil {
			return err
		}
	}
	return nil
}

// Start runs all parts until ctx ends and they have stopped.
func (c *partedCache) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, part := range c.parts {
		running.Go(func() { _ = part.Start(ctx) }) // fails only when it is started twice
	}
	running.Wait()
	return nil
}

// WaitForCacheSync waits for all parts.
func (c *partedCache) WaitForCacheSync(ctx context.Context) bool {
	for _, name := range c.order {
		if !c.parts[name].WaitForCacheSync(ctx) {
			return false
		}
	}
	return true
}

// partedInformer is the informers of all parts, in the order of their namespaces. A handler is called for one part at a
// time only as far as each part does that: events of different namespaces may come at the same time.
type partedInformer []cache.Informer

var _ cache.Informer = partedInformer(nil)

// AddEventHandler adds the handler to all parts.
func (p partedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.add(func(part cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return part.AddEventHandler(handler)
	})
}

// AddEventHandlerWithResyncPeriod adds the handler to all parts.
func (p partedInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.add(func(part cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return part.AddEventHandlerWithResyncPeriod(handler, resync)
	})
}

// AddEventHandlerWithOptions adds the handler to all parts.
func (p partedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.add(func(part cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return part.AddEventHandlerWithOptions(handler, options)
	})
}

func (p partedInformer) add(to func(cache.Informer) (toolscache.ResourceEventHandlerRegistration, error)) (toolscache.ResourceEventHandlerRegistration, error) {
	all := make(partedRegistration, 0, len(p))
	for _, part := range p {
		one, err := to(part)
		if err != nil {
			_ = p.RemoveEventHandler(&all) // what an informer that ended says does not matter
			return nil, err
		}
		all = append(all, one)
	}
	return &all, nil
}

// RemoveEventHandler removes a handler that was added to all parts.
func (p partedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	all, ok := handle.(*partedRegistration)
	if !ok {
		return nil // it was never added here
	}
	for i, one := range *all {
		if err := p[i].RemoveEventHandler(one); err != nil {
			return err
		}
	}
	return nil
}

// AddIndexers adds them to all parts.
func (p partedInformer) AddIndexers(indexers toolscache.Indexers) error {
	for _, part := range p {
		if err := part.AddIndexers(indexers); err != nil {
			return err
		}
	}
	return nil
}

// HasSynced reports whether all parts have.
func (p partedInformer) HasSynced() bool {
	return !slices.ContainsFunc(p, func(part cache.Informer) bool { return !part.HasSynced() })
}

// HasSyncedChecker is done when all parts have synced.
func (p partedInformer) HasSyncedChecker() toolscache.DoneChecker {
	all := make(allDone, len(p))
	for i := range p {
		all[i] = p[i].HasSyncedChecker()
	}
	return all
}

// IsStopped reports whether any part has stopped.
func (p partedInformer) IsStopped() bool { return slices.ContainsFunc(p, cache.Informer.IsStopped) }

// GetByKey returns what the store of any part has under a key of the form namespace/name.
func (p partedInformer) GetByKey(key string) (item any, exists bool, err error) {
	for _, part := range p {
		indexed, ok := part.(interface{ GetIndexer() toolscache.Indexer })
		if !ok {
			continue
		}
		if item, exists, err = indexed.GetIndexer().GetByKey(key); exists || err != nil {
			return item, exists, err
		}
	}
	return nil, false, nil
}

// ByIndex returns what the stores of all parts have in an index.
func (p partedInformer) ByIndex(name, value string) (items []any, err error) {
	for _, part := range p {
		some, err := ByIndex(part, name, value)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// ByIndex returns the objects that an informer has in an index, uncopied. An informer that shows no store is an error, and so is an index
// that it does not have.
func ByIndex(informer cache.Informer, name, value string) ([]any, error) {
	switch informer := informer.(type) {
	case partedInformer:
		return informer.ByIndex(name, value)
	case interface{ GetIndexer() toolscache.Indexer }:
		return informer.GetIndexer().ByIndex(name, value)
	}
	return nil, fmt.Errorf("read index %q: %T does not show what it holds", name, informer)
}

// partedRegistration is a handler in each part.
type partedRegistration []toolscache.ResourceEventHandlerRegistration

// HasSynced reports whether the handler has been given the first list of every part.
func (r *partedRegistration) HasSynced() bool {
	return !slices.ContainsFunc(*r, func(one toolscache.ResourceEventHandlerRegistration) bool { return !one.HasSynced() })
}

// HasSyncedChecker is done when HasSynced is true.
func (r *partedRegistration) HasSyncedChecker() toolscache.DoneChecker {
	all := make(allDone, len(*r))
	for i, one := range *r {
		all[i] = one.HasSyncedChecker()
	}
	return all
}

// allDone is done when all of it are.
type allDone []toolscache.DoneChecker

// Name is that of the first.
func (a allDone) Name() string {
	if len(a) == 0 {
		return "no parts"
	}
	return a[0].Name() + " and further parts"
}

// Done returns a channel that is closed when all are done.
func (a allDone) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, one := range a {
			<-one.Done()
		}
	}()
	return done
}
