package reconcile

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// workQueue is the face that controller-runtime's controller sees. Its workers take keys with GetWithPriority and give
// them back with Done, which applies the outcome that the adapter has reported. Keys of members that are not engaged are
// dropped, as their engagement lists them again. Priorities are priorities: above zero ordered, zero changed, below background.
type workQueue struct{ *queue }

var _ priorityqueue.PriorityQueue[mcreconcile.Request] = workQueue{}
var _ workqueue.TypedRateLimitingInterface[mcreconcile.Request] = workQueue{}

func clusterName(member string) multicluster.ClusterName { return multicluster.ClusterName(member) }

// Add wakes a key in the changed priority.
func (w workQueue) Add(req mcreconcile.Request) { w.add(req, PriorityChanged) }

func (w workQueue) add(req mcreconcile.Request, priority Priority) {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if l := w.flows[req.ClusterName.String()]; l != nil {
		w.want(w.recordOf(l, req.NamespacedName), priority)
	}
}

// AddAfter wakes a key after a time, unless something does so earlier.
func (w workQueue) AddAfter(req mcreconcile.Request, d time.Duration) {
	if d <= 0 {
		w.Add(req)
		return
	}
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if l := w.flows[req.ClusterName.String()]; l != nil {
		w.wakeAt(w.recordOf(l, req.NamespacedName), w.rt.now()+int64(d), "asked for a later look")
	}
}

// AddRateLimited counts a failure and wakes the key after its back-off.
func (w workQueue) AddRateLimited(req mcreconcile.Request) {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	l := w.flows[req.ClusterName.String()]
	if l == nil {
		return
	}
	r := w.recordOf(l, req.NamespacedName)
	r.tried(r.attempts+1, w.rt.now())
	delay := w.pace.Backoff(r.attempts, rand.Float64()) //nolint:gosec // spreads load
	w.wakeAt(r, w.rt.now()+int64(delay), retryReasons[codeError])
}

// AddWithOpts adds keys the way the options say.
func (w workQueue) AddWithOpts(o priorityqueue.AddOpts, reqs ...mcreconcile.Request) {
	for _, req := range reqs {
		switch {
		case o.RateLimited:
			w.AddRateLimited(req)
		case o.After > 0:
			w.AddAfter(req, o.After)
		default:
			w.add(req, priorityOf(o.Priority))
		}
	}
}

// GetWithPriority waits for a key that may run.
func (w workQueue) GetWithPriority() (req mcreconcile.Request, priority int, shutdown bool) {
	h := w.take()
	return h.req, controllerRuntimePriorities[h.priority], !h.ok
}

// Get waits for a key that may run.
func (w workQueue) Get() (req mcreconcile.Request, shutdown bool) {
	req, _, shutdown = w.GetWithPriority()
	return req, shutdown
}

// Done ends the run of a key.
func (w workQueue) Done(req mcreconcile.Request) { w.done(req) }

// Forget does nothing: failures are forgotten by the outcome that Done applies (controller-runtime would forget them
// whenever a delay is asked for).
func (w workQueue) Forget(mcreconcile.Request) {}

// NumRequeues is the number of consecutive tries of a key that did not end well.
func (w workQueue) NumRequeues(req mcreconcile.Request) int {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if l := w.flows[req.ClusterName.String()]; l != nil && l.records[req.NamespacedName] != nil {
		return int(l.records[req.NamespacedName].attempts)
	}
	return 0
}

// Len is the number of keys that are queued or held.
func (w workQueue) Len() (n int) {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	for _, l := range w.flows {
		for b := range l.seats {
			n += l.seats[b].line.n
		}
	}
	return n
}

// ShutDown hands out nothing any more, what is queued included: all of it is found again by the next start.
func (w workQueue) ShutDown() {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	w.down = true
	for _, l := range w.flows {
		l.reseat()
	}
	for _, c := range w.idle {
		c <- handout{}
	}
	w.idle = nil
}

// ShutDownWithDrain shuts down and waits for what is running.
func (w workQueue) ShutDownWithDrain() {
	w.ShutDown()
	_ = w.active.wait(context.Background(), &w.rt.mu)
}

// ShuttingDown reports whether the queue was shut down.
func (w workQueue) ShuttingDown() bool {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	return w.down
}
