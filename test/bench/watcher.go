package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A watcher is to compare with: a watch without anything behind it, which notes when each change of a StatefulSet
// arrives. What it sees late, nobody could have reconciled in time.
type watcher struct {
	mu    sync.Mutex
	heard map[string][]time.Time
}

// watchMembers watches until ctx ends.
func watchMembers(ctx context.Context, members []*fleet.Member) (*watcher, error) {
	w := &watcher{heard: map[string][]time.Time{}}
	for _, m := range members {
		c, err := client.NewWithWatch(m.Cluster.Config(), client.Options{Scheme: scheme.Scheme})
		if err != nil {
			return nil, fmt.Errorf("member %s: watch StatefulSets: %w", m.Name, err)
		}
		events, err := c.Watch(ctx, &appsv1.StatefulSetList{})
		if err != nil {
			return nil, fmt.Errorf("member %s: watch StatefulSets: %w", m.Name, err)
		}
		go w.follow(m.Name, events)
	}
	return w, nil
}

func (w *watcher) follow(member string, events watch.Interface) {
	for event := range events.ResultChan() {
		at := time.Now()
		if set, ok := event.Object.(*appsv1.StatefulSet); ok && event.Type == watch.Modified {
			w.mu.Lock()
			key := writeKey(member, set.Namespace, set.Name)
			w.heard[key] = append(w.heard[key], at)
			w.mu.Unlock()
		}
	}
}

// await waits until so many changes have arrived: the watch may be behind.
func (w *watcher) await(ctx context.Context, changes int) error {
	return fleet.Await(ctx, "a watch to hear of all writes", func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		heard := 0
		for _, times := range w.heard {
			heard += len(times)
		}
		return heard >= changes, nil
	})
}

// of returns when the changes of one object arrived, in order.
func (w *watcher) of(key string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[key]
}

// writeKey names an object of a member.
func writeKey(member, namespace, name string) string { return member + "/" + namespace + "/" + name }
