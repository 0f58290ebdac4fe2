package placing

import (
	"slices"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// indexers find FleetPlacements by namespace.
func indexers() toolscache.Indexers {
	return toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
}

// known returns the FleetPlacements that this replica follows.
func (c *Controller) known() toolscache.Indexer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store
}

// Synced reports whether the FleetPlacements of the hub cluster have been read. It is safe for concurrent use, as are the functions
// below.
func (c *Controller) Synced() bool { return c.synced.Load() }

// Version is another number whenever a FleetPlacement is another.
func (c *Controller) Version() uint64 { return c.version.Load() }

// changed notes that a FleetPlacement is another, and asks for a round.
func (c *Controller) changed() {
	c.version.Add(1)
	c.wake()
}

// Namespaces returns those that have FleetPlacements, in order.
func (c *Controller) Namespaces() []string {
	store := c.known()
	namespaces := slices.DeleteFunc(store.ListIndexFuncValues(toolscache.NamespaceIndex), func(namespace string) bool {
		keys, err := store.IndexKeys(toolscache.NamespaceIndex, namespace)
		return err != nil || len(keys) == 0
	})
	slices.Sort(namespaces)
	return namespaces
}

// Placements returns the FleetPlacements of a namespace, in the order of their names, as the hub cluster shows them. The caller does
// not change them.
func (c *Controller) Placements(namespace string) []*v1alpha1.FleetPlacement {
	found, err := c.known().ByIndex(toolscache.NamespaceIndex, namespace)
	if err != nil {
		return nil // there is such an index
	}
	all := make([]*v1alpha1.FleetPlacement, 0, len(found))
	for _, one := range found {
		if p, ok := one.(*v1alpha1.FleetPlacement); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.FleetPlacement) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Placement returns one FleetPlacement; false: there is none. The caller does not change it.
func (c *Controller) Placement(namespace, name string) (*v1alpha1.FleetPlacement, bool) {
	found, exists, err := c.known().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil, false
	}
	p, ok := found.(*v1alpha1.FleetPlacement)
	return p, ok
}
