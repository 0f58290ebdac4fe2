package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// staff is how many workers a queue has, and how many of them wait.
func (q *queue) staff() (workers, idle int) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	return q.workers, len(q.idle)
}

// waiting is how many keys of a queue are in line.
func (q *queue) waiting() (n int) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	for _, l := range q.flows {
		for b := range l.seats {
			n += l.seats[b].line.n
		}
	}
	return n
}

func TestWorkersComeAndGoWithTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const allowed, keys = 12, 30
		b := newBench(t, Options{Workers: allowed, WorkersPerMember: keys}, &queue{name: "c", perMember: keys})
		q := b.queues[0]
		l := b.join(q, "m")
		wakeAll := func(n int) {
			for i := range n {
				wakeChanged(q, l, fmt.Sprint(i))
			}
			synctest.Wait()
		}
		expect := func(when string, workers, idle, waiting int) {
			t.Helper()
			if w, i := q.staff(); w != workers || i != idle || q.waiting() != waiting {
				t.Errorf("%s: %d workers, %d idle, %d keys wait; want %d, %d and %d", when, w, i, q.waiting(), workers, idle, waiting)
			}
		}
		wakeAll(1)
		expect("before the start", 0, 0, 1)

		release := make(chan struct{})
		q.open(func(req mcreconcile.Request) {
			<-release
			q.report(req, done)
		})
		synctest.Wait()
		expect("one key", 1, 0, 0)
		wakeAll(keys)
		expect("more keys than workers", allowed, 0, keys-allowed)
		close(release)
		synctest.Wait()
		expect("all is done", keptIdle, keptIdle, 0)
		wakeAll(keys)
		expect("all is done again", keptIdle, keptIdle, 0)
		q.close()
		expect("the end", 0, 0, 0)
	})
}

func TestCloseHandsOutNothingAndWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
		q := b.queues[0]
		l := b.join(q, "m")
		ran, release := 0, make(chan struct{})
		q.open(func(req mcreconcile.Request) {
			<-release
			ran++
			q.report(req, done)
		})
		wakeChanged(q, l, "runs")
		wakeChanged(q, l, "waits")
		closed := false
		go func() {
			q.close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("it is closed while a key runs")
		}
		close(release)
		synctest.Wait()
		wakeChanged(q, l, "late")
		synctest.Wait()
		if workers, _ := q.staff(); !closed || ran != 1 || workers != 0 || q.waiting() != 2 {
			t.Errorf("closed: %v, %d runs, %d workers, %d keys wait; want one run and two keys", closed, ran, workers, q.waiting())
		}
	})
}

func TestAControllerStartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "once", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) { return Done(), nil })))
		synctest.Wait()
		if err := c.Start(t.Context()); err == nil || err.Error() != "controller once was started before" {
			t.Errorf("the second start: %v", err)
		}
		h.cancel()
	})
}
