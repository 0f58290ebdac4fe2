package reconcile

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

const benchKeys = 100_000

// benchQueue is a queue with many keys in a few members, all idle behind a resync timer.
func benchQueue(b *testing.B, members int) (*bench, *queue, []*flow, []types.NamespacedName) {
	b.Helper()
	bench := newBench(b, Options{}, &queue{name: "c", perMember: 5, resync: 1 << 40})
	q := bench.queues[0]
	var flows []*flow
	for i := range members {
		flows = append(flows, bench.join(q, fmt.Sprint("member-", i)))
	}
	keys := make([]types.NamespacedName, benchKeys)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "namespace", Name: fmt.Sprint("name-", i)}
		q.wake(flows[i%members], keys[i], PriorityBackground, nil)
	}
	for {
		req, _, ok := bench.take(q)
		if !ok {
			break
		}
		bench.finish(q, req, done)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return bench, q, flows, keys
}

// BenchmarkQueueCycle is one event, one take and one end of a reconcile, among 100,000 keys.
func BenchmarkQueueCycle(b *testing.B) {
	bench, q, flows, keys := benchQueue(b, 4)
	for i := 0; b.Loop(); i++ {
		i %= benchKeys
		q.wake(flows[i%len(flows)], keys[i], PriorityChanged, nil)
		req, _, ok := bench.take(q)
		if !ok {
			b.Fatal("nothing to take")
		}
		bench.finish(q, req, done)
	}
}

// BenchmarkQueueRepeatedEvent is an event of a key that is queued already.
func BenchmarkQueueRepeatedEvent(b *testing.B) {
	_, q, flows, keys := benchQueue(b, 4)
	for i := 0; b.Loop(); i++ {
		i %= benchKeys
		q.wake(flows[i%len(flows)], keys[i], PriorityChanged, nil)
	}
}

// BenchmarkQueueWorkers is the same cycle with workers.
func BenchmarkQueueWorkers(b *testing.B) {
	_, q, flows, keys := benchQueue(b, 4)
	ended := make(chan struct{}, 1)
	q.open(func(req mcreconcile.Request) {
		q.report(req, done)
		ended <- struct{}{}
	})
	for i := 0; b.Loop(); i++ {
		i %= benchKeys
		q.wake(flows[i%len(flows)], keys[i], PriorityChanged, nil)
		<-ended
	}
	q.close()
}

// BenchmarkQueueHold holds and releases a member that holds 25,000 keys.
func BenchmarkQueueHold(b *testing.B) {
	bench, q, flows, keys := benchQueue(b, 4)
	for i, key := range keys {
		q.wake(flows[i%len(flows)], key, PriorityChanged, nil)
	}
	for b.Loop() {
		bench.rt.Hold("member-0", HoldOwnership, "standby")
		bench.rt.Release("member-0", HoldOwnership)
	}
}

// BenchmarkQueueMemory reports the bytes that one key costs, its share of maps and timers included, its name not.
func BenchmarkQueueMemory(b *testing.B) {
	keys := make([]types.NamespacedName, benchKeys)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "namespace", Name: fmt.Sprint("name-", i)}
	}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		bench := newBench(b, Options{}, &queue{name: "c", perMember: 5, resync: 1 << 40})
		q := bench.queues[0]
		l := bench.join(q, "m")
		for _, key := range keys {
			q.wake(l, key, PriorityBackground, nil)
			req, _, _ := bench.take(q)
			bench.finish(q, req, done)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchKeys, "B/key")
		runtime.KeepAlive(bench)
	}
}
