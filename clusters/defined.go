package clusters

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitionKind is the kind of objects that define kinds.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// servedSoon is how long an API server gets to serve a kind after its definition came or changed. A member whose definitions
// change all the time is asked no more often than that.
const servedSoon = time.Second

// followDefinitions wakes those who wait for a kind when its definition comes or changes. It does so in members where a
// controller has definitions cached, and for these definitions only.
func (w *warmer) followDefinitions(ctx context.Context, k *memberKind, warm *warmCache) error {
	if k.gvk.GroupKind() != definitionKind {
		return nil
	}
	informer, err := warm.GetInformer(ctx, k.Object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	wake := func(object any) {
		if definition, ok := object.(client.Object); ok {
			_, group, _ := strings.Cut(definition.GetName(), ".") // the name is that of the resource and its group
			w.defined(group)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }})
	return err
}

// defined wakes those who wait for a kind of a group.
func (m *Member) defined(group string) {
	for _, kind := range m.kinds {
		if warm, _ := kind.get(); warm == nil && kind.gvk.Group == group {
			kind.defined.Signal()
		}
	}
}

// pause waits before the next attempt at k: for the next of the retry's times, or until a definition of its group comes, after
// which the retries begin again.
func (w *warmer) pause(ctx context.Context, k *memberKind, retry *wait.Backoff) {
	timer := time.NewTimer(retry.Step())
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.defined:
		*retry = w.retry
		sleep(ctx, min(w.retry.Duration, servedSoon))
		w.mapper.expect(k.gvk.GroupVersion())
	}
}
