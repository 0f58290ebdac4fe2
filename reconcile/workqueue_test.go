package reconcile

import (
	"testing"
	"time"
)

func TestShutDownHandsOutNothingAndWaitsForNobody(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	w := workQueue{q}
	got := make(chan bool)
	go func() {
		_, shutdown := w.Get()
		got <- shutdown
	}()
	for idle := 0; idle == 0; {
		b.rt.mu.Lock()
		idle = len(q.idle)
		b.rt.mu.Unlock()
	}
	l := b.join(q, "m")
	w.ShutDown()
	if !<-got || !w.ShuttingDown() {
		t.Error("a waiting worker was not notified of the shut-down")
	}
	wakeChanged(q, l, "a")
	if _, shutdown := w.Get(); !shutdown {
		t.Error("a worker got a key after the shut-down")
	}
	if w.Len() != 1 {
		t.Errorf("%d keys, want 1", w.Len())
	}
	w.ShutDownWithDrain()
}

func TestRequestsOfUnknownMembersAreDropped(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	w := workQueue{b.queues[0]}
	req := request("nobody", nsName("a"))
	w.Add(req)
	w.AddAfter(req, time.Hour)
	w.AddRateLimited(req)
	w.Done(req)
	if w.Len() != 0 || w.NumRequeues(req) != 0 {
		t.Error("a key of an unknown member was kept")
	}
}
