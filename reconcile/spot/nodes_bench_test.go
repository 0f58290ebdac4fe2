package spot

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
)

// largeNode is a node as a cloud makes them: some 40 labels, 50 images, conditions and annotations. It is decoded, so that it
// shares no memory with others.
func largeNode(b *testing.B, i int) *corev1.Node {
	b.Helper()
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256),
		Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Labels[corev1.LabelHostname] = n.Name
	n.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("eu-central-1%c", 'a'+i%3)
	n.Labels[testSteer] = []string{"spot", "on-demand"}[i%2]
	for l := range 37 {
		n.Labels[fmt.Sprintf("node.example.com/instance-property-%d", l)] = fmt.Sprintf("value-%d-of-%d", l, i%8)
	}
	for a := range 12 {
		n.Annotations[fmt.Sprintf("csi.example.com/annotation-%d", a)] = fmt.Sprintf("a longer text for node %d", i)
	}
	for image := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("images.example.com/%d@sha256:%064d", image, i)}})
	}
	text, err := json.Marshal(&n)
	if err != nil {
		b.Fatal(err)
	}
	var decoded corev1.Node
	if err := json.Unmarshal(text, &decoded); err != nil {
		b.Fatal(err)
	}
	return &decoded
}

// BenchmarkCachedNodes reports what a member's nodes cost in memory, by node: the cached object with the table's share.
func BenchmarkCachedNodes(b *testing.B) {
	const count = 5000
	in, err := nodes.NewInterruptions()
	if err != nil {
		b.Fatal(err)
	}
	kind := nodeKind(testCapacity(b), in)
	for b.Loop() {
		before := heapInUse()
		table, cached := nodes.NewTable(), make([]*corev1.Node, count)
		for i := range cached {
			whole := largeNode(b, i)
			cached[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion}}
			kind.Keep(whole, cached[i])
			table.Set(cached[i], &in, spottest.Epoch)
		}
		b.ReportMetric(float64(heapInUse()-before)/count, "B/node")
		runtime.KeepAlive(cached)
		runtime.KeepAlive(table)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
