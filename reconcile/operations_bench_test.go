package reconcile

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkOrder is one order when as many operations as are kept are spread over as many namespaces.
func BenchmarkOrder(b *testing.B) {
	const namespaces = 10_000
	bench := newBench(b, Options{Operations: namespaces}, &queue{name: "c", perMember: 5})
	q := bench.queues[0]
	l := bench.join(q, "m")
	keys := make([]Key, namespaces)
	order := func(i int) {
		if _, err := bench.rt.RequeueFor(keys[i], "caller"); err != nil {
			b.Fatal(err)
		}
	}
	for i := range keys {
		keys[i] = Key{Controller: "c", Member: "m", NamespacedName: types.NamespacedName{Namespace: fmt.Sprint("namespace-", i), Name: "a"}}
		q.want(q.recordOf(l, keys[i].NamespacedName), PriorityChanged)
		order(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		order(i % namespaces)
	}
}
