package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
)

// fieldIndex is an index that was added with [Provider.IndexField].
type fieldIndex struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

// IndexField adds an index to a kind, in all members that are there and all that come. A kind that is not declared, or a
// field that has an index already, is an error, at the latest when the provider starts.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	p.mu.Lock()
	index := fieldIndex{obj, field, extract}
	if p.started {
		if err := p.checkIndexes(append(slices.Clone(p.indexes), index)); err != nil {
			p.mu.Unlock()
			return err
		}
	}
	p.indexes = append(p.indexes, index)
	members := slices.SortedFunc(maps.Keys(p.alive), func(a, b *Member) int { return strings.Compare(a.name, b.name) })
	p.mu.Unlock()
	for _, member := range members {
		if err := member.GetFieldIndexer().IndexField(ctx, obj, field, extract); err != nil {
			return err
		}
	}
	return nil
}

// ByIndex returns the objects of a kind whose index field has the value, in one namespace and in no order: those that the cache holds,
// and no copies. They are shared with everybody who reads the cache, and must not be changed. The field must be an index of the kind.
// A kind that is not cached now is a [*NotWarmError]. The answer is a slice of pointers: nothing is copied, however many there are.
func (m *Member) ByIndex(ctx context.Context, obj client.Object, field, namespace, value string) ([]any, error) {
	informer, err := m.GetCache().GetInformer(ctx, obj)
	if err != nil {
		return nil, err
	}
	return caching.ByIndex(informer, indexName(field), indexValue(namespace, value))
}

// How controller-runtime's caches name an index in their informers, and an object of a namespace in it. A test holds both to it.
func indexName(field string) string             { return "field:" + field }
func indexValue(namespace, value string) string { return namespace + "/" + value }

// checkIndexes finds indexes of kinds that are not declared, and two of one field. It is called with the lock held.
func (p *Provider) checkIndexes(indexes []fieldIndex) error {
	taken := map[string]bool{}
	for _, kind := range p.declared {
		taken[kind.name] = true
		for field := range kind.Indexes {
			taken[kind.name+" "+field] = true
		}
	}
	for _, index := range indexes {
		gvk, err := apiutil.GVKForObject(index.object, p.opts.Scheme)
		if err != nil {
			return fmt.Errorf("index field %q of %T: %w", index.field, index.object, err)
		}
		if !taken[caching.KindName(gvk)] {
			return fmt.Errorf("index field %q of %s: the kind is not declared to be cached", index.field, caching.KindName(gvk))
		}
		key := caching.KindName(gvk) + " " + index.field
		if taken[key] {
			return fmt.Errorf("index field %q of %s: the index exists", index.field, caching.KindName(gvk))
		}
		taken[key] = true
	}
	return nil
}
