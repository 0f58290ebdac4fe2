package placing

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// follow keeps the store current, whenever the hub cluster knows the kind.
func (c *Controller) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.options.Hub.List(ctx, &v1alpha1.FleetPlacementList{}, client.Limit(1)); err != nil {
			if !absent(err) {
				c.options.Log.Warn("cannot read FleetPlacements", "error", err)
			}
			pause(ctx, absentRetry)
			continue
		}
		informer := c.informer()
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.changed() }, UpdateFunc: func(any, any) { c.changed() }, DeleteFunc: func(any) { c.changed() },
		})
		if err != nil {
			c.options.Log.Warn("cannot watch FleetPlacements", "error", err)
			return
		}
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			c.mu.Lock()
			c.store = informer.GetIndexer()
			c.mu.Unlock()
			c.synced.Store(true)
			c.wake()
		}
		running.Wait()
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// informer lists and watches the FleetPlacements of the hub cluster.
func (c *Controller) informer() toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.FleetPlacementList{}
			return list, c.options.Hub.List(ctx, list, &client.ListOptions{Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.options.Hub.Watch(ctx, &v1alpha1.FleetPlacementList{}, &client.ListOptions{Raw: &o})
		},
	}, &v1alpha1.FleetPlacement{}, 0, indexers())
}
