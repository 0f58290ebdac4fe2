package spot

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// BenchmarkObserve reads the pods of one workload for a plan, from an index as a member's cache has it. One in a hundred has changed
// since the plan before.
func BenchmarkObserve(b *testing.B) {
	for _, replicas := range []int{100, 10_000, 80_000} {
		b.Run(fmt.Sprint(replicas), func(b *testing.B) {
			e, err := NewEngine(Options{Keys: spottest.DefaultKeys, Capacity: spottest.MustLabels(b), Settings: plantest.DefaultSettings})
			if err != nil {
				b.Fatal(err)
			}
			dir := newDirectory(e.options.Keys, e.options.Defaults, e.options.Namespaces)
			for _, node := range spotAndOnDemandNodes() {
				dir.nodes.Set(node.(*corev1.Node), &e.options.Interruptions, time.Now())
			}
			cache := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{"owner": func(any) ([]string, error) { return []string{"web"}, nil }})
			for i := range replicas {
				if err := cache.Add(running(fmt.Sprintf("web-1-%05d", i), fmt.Sprint(i), "node-spot")); err != nil {
					b.Fatal(err)
				}
			}
			pods := func(context.Context, string, types.UID) ([]any, error) { return cache.ByIndex("owner", "web") }
			sources := []source{replicaSetSource(counted(int32(replicas)))}
			b.ReportAllocs()
			for version := 2; b.Loop(); version++ {
				for i := version % 100; i < replicas; i += 100 {
					changed := running(fmt.Sprintf("web-1-%05d", i), fmt.Sprint(i), "node-spot")
					changed.ResourceVersion = fmt.Sprint(version)
					if err := cache.Update(changed); err != nil {
						b.Fatal(err)
					}
				}
				o, err := e.observe(b.Context(), pods, dir, "shop", sources, time.Time{}, time.Now())
				if err != nil || len(o.Pods) != replicas {
					b.Fatalf("%d pods, error %v", len(o.Pods), err)
				}
			}
		})
	}
}
