package reconcile

import mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

// keptIdle is how many workers of a controller wait when there is nothing to do; the others end. A goroutine that waits keeps a stack
// of 4 KiB or more, and the garbage collector lets the heap grow by a share of it as well (docs/decisions/0042).
const keptIdle = 4

// handout is a key on its way to a worker. Not ok: the worker ends.
type handout struct {
	req mcreconcile.Request
	ok  bool
}

func handOf(r *record) handout { return handout{req: request(r.flow.member.name, r.key), ok: true} }

// open has workers call run for the keys of the queue, until [queue.close]. Not ok: it was open before.
func (q *queue) open(run func(mcreconcile.Request)) (ok bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	if q.run != nil {
		return false
	}
	q.run = run
	q.handOut()
	return true
}

// close hands out nothing any more, what is queued included: all of it is found again by the next start. It returns when
// the last worker has ended.
func (q *queue) close() {
	q.rt.mu.Lock()
	q.down = true
	for _, l := range q.flows {
		l.reseat()
	}
	for _, c := range q.idle {
		c <- handout{}
	}
	q.workers -= len(q.idle)
	q.idle = nil
	q.rt.mu.Unlock()
	q.crew.Wait()
}

// handOut gives runnable keys to workers until either run out.
func (q *queue) handOut() {
	for q.handOne() {
	}
}

// handOne gives one runnable key to a worker that waits, or to a new one if there may be more; false: no key, or no worker.
func (q *queue) handOne() bool {
	last := len(q.idle) - 1
	if last < 0 && !q.mayHire() {
		return false
	}
	r := q.pick()
	if r == nil {
		return false
	}
	h := handOf(r)
	if last < 0 {
		q.workers++
		q.crew.Go(func() { q.work(h) })
		return true
	}
	c := q.idle[last]
	q.idle[last] = nil
	q.idle = q.idle[:last]
	c <- h
	return true
}

func (q *queue) mayHire() bool { return q.run != nil && q.workers < q.rt.opts.Workers }

// work runs one key after the other, the first of which the worker was given.
func (q *queue) work(h handout) {
	wait := make(chan handout, 1)
	for h.ok {
		q.serve(h.req)
		h = q.take(wait)
	}
}

func (q *queue) serve(req mcreconcile.Request) {
	defer q.done(req)
	q.run(req)
}

// take returns a key that may run, and waits for one unless enough other workers do.
func (q *queue) take(wait chan handout) handout {
	q.rt.mu.Lock()
	if r := q.pick(); r != nil {
		h := handOf(r)
		q.rt.mu.Unlock()
		return h
	}
	if q.down || len(q.idle) >= keptIdle {
		q.workers--
		q.rt.mu.Unlock()
		return handout{}
	}
	q.idle = append(q.idle, wait)
	q.rt.mu.Unlock()
	return <-wait
}
