package spot

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// cachedPods answers lists of pods as the cache does: by copying the structs, and nothing that they point to.
type cachedPods struct {
	client.Reader
	items []corev1.Pod
}

func (c *cachedPods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	pods := list.(*corev1.PodList)
	pods.Items = append(make([]corev1.Pod, 0, len(c.items)), c.items...)
	return nil
}

// BenchmarkObserve reads the pods of one workload for a plan.
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
			cache := &cachedPods{}
			for i := range replicas {
				cache.items = append(cache.items, *running(fmt.Sprintf("web-1-%05d", i), fmt.Sprint(i), "node-spot"))
			}
			sources := []source{replicaSetSource(counted(int32(replicas)))}
			b.ReportAllocs()
			for b.Loop() {
				o, err := e.observe(b.Context(), cache, dir, "shop", sources, time.Time{}, time.Now())
				if err != nil || len(o.Pods) != replicas {
					b.Fatalf("%d pods, error %v", len(o.Pods), err)
				}
			}
		})
	}
}
