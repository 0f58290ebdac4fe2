package reconcile

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// A queue holds the keys of one controller in all members. It is the seam between informers, workers and the API: every
// key has one [record] and every record one state.
//
// What may run is handed out by priority, and within a priority the members take turns; see pick.go. One rule makes it lively:
// while a worker is idle or may be started, nothing may be runnable. Whatever makes a key runnable (a change, a timer, a released hold, a
// freed worker of its member) therefore ends in handOut or [member.serve].
//
// All queues of a runtime share one lock, Runtime.mu: every step is short and constant, or logarithmic in the number of
// timers, and budgets, holds and operations span controllers.
type queue struct {
	rt        *Runtime
	name      string
	kind      schema.GroupVersionKind // that is reconciled
	perMember int                     // how many keys of one member may run at once
	reserve   int                     // workers that are kept for members of which no key runs
	resync    time.Duration           // 0: off
	pace      retry.Pace
	limit     rateLimit
	overdue   time.Duration // a run that takes longer does not return

	flows   map[string]*flow // by member
	rounds  [priorities]round
	picks   uint32
	running map[mcreconcile.Request]run
	orphans int // runs whose flow is gone

	run     func(mcreconcile.Request) // what a worker does with a key; nil: no worker may be started yet
	workers int                       // that were started and have not ended
	idle    []chan handout            // those without a key; the last to come is the first to go, so that few stacks stay warm
	down    bool
	crew    sync.WaitGroup
}

// A run is a key that a worker holds.
type run struct {
	record   *record
	flow     *flow // where it started
	waited   time.Duration
	decision decision
	judged   bool
	orphan   bool // its flow went away meanwhile: the outcome counts for nothing
}

func newQueue(rt *Runtime, name string, perMember int, resync time.Duration) *queue {
	return &queue{
		rt: rt, name: name, perMember: perMember, reserve: max(rt.opts.Workers/2-perMember, 0), resync: resync, pace: retry.Usual,
		flows: map[string]*flow{}, running: map[mcreconcile.Request]run{},
	}
}

// wake makes a key run, in the given priority or the better one it already has. exists is asked, outside the lock, whether a
// key that has no record should get one; nil: yes.
func (q *queue) wake(l *flow, key types.NamespacedName, priority Priority, exists func(types.NamespacedName) bool) {
	q.rt.mu.Lock()
	r := l.records[key]
	if r == nil && exists != nil && !l.gone {
		q.rt.mu.Unlock()
		if !exists(key) {
			return
		}
		q.rt.mu.Lock()
	}
	defer q.rt.mu.Unlock()
	if !l.gone {
		r := q.recordOf(l, key)
		r.lost = r.lost && exists != nil // what is seen itself is there
		q.want(r, priority)
	}
}

// recordOf finds or makes the record of a key. A key that still runs for an engagement that is over keeps its record, so
// that it never runs twice at once.
func (q *queue) recordOf(l *flow, key types.NamespacedName) *record {
	r := l.records[key]
	if r != nil {
		return r
	}
	if q.orphans > 0 {
		if run, ok := q.running[request(l.member.name, key)]; ok && run.record.flow.gone {
			r = run.record
			r.setOverdue(false)
			r.flow = l
		}
	}
	if r == nil {
		r = newRecord(key, l)
	}
	l.records[key] = r
	l.member.touch()
	return r
}

// want makes a record run again, by the state that it is in.
func (q *queue) want(r *record, priority Priority) {
	if r.flow.member.detached != "" && r.state != keyRunning {
		q.giveUp(r)
		return
	}
	switch r.state {
	case keyRunning:
		r.again = min(r.again, priority)
		return
	case keyQueued:
		if priority >= r.priority {
			return
		}
		since := r.queuedAt
		r.flow.dequeue(r)
		r.flow.enqueue(r, priority, since)
		q.handOut() // a rate limit may have held it back, and does not hold back orders
		return
	case keyWaiting:
		if priority == PriorityBackground && r.backoff {
			return // it will look again by itself; only news may hurry a retry
		}
	}
	q.rt.timers.clear(r)
	r.flow.enqueue(r, priority, q.rt.now())
	q.handOut()
}

// wait puts a record that is in no line to sleep until its next try, or the resync before it. In a member that was given up
// nothing waits.
func (q *queue) wait(r *record, next int64, reason string, backoff bool) {
	if r.flow.member.detached != "" {
		q.giveUp(r)
		return
	}
	r.state, r.reason, r.nextTry, r.backoff = keyWaiting, reason, next, backoff
	r.flow.member.touch()
	due := next
	if !backoff && q.resync > 0 {
		due = min(due, q.rt.now()+q.resyncDelay())
	}
	q.rt.timers.set(r, due)
}

func (q *queue) resyncDelay() int64 { return int64(retry.Jitter(q.resync, rand.Float64())) } //nolint:gosec // spreads load

// forget takes a record that is not running out of the ledger.
func (q *queue) forget(r *record) {
	if r.state == keyQueued {
		r.flow.dequeue(r)
	}
	q.rt.timers.clear(r)
	r.setOverdue(false)
	r.state, r.outcome, r.reason = keyIdle, codeGone, ""
	if r.ordered {
		q.rt.operations.end(r, r.snapshot())
	}
	delete(r.flow.records, r.key)
	r.flow.member.touch()
	delete(r.flow.handled, r.key)
	r.flow.needs.Forget(r.key)
}

// lost notes that a key's object is gone. The record goes at once when nothing is kept for it elsewhere (keeps says
// whether there may be); else a worker must say good-bye.
func (q *queue) lost(l *flow, key types.NamespacedName, keeps bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	r := l.records[key]
	switch {
	case r == nil || l.gone:
	case r.state == keyRunning, keeps && r.runs > 0:
		r.lost = true
		q.want(r, PriorityChanged)
	default:
		q.forget(r)
	}
}

// begin returns what the worker that took a key needs. Not ok: the key's engagement is over.
func (q *queue) begin(req mcreconcile.Request) (work, bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	run, ok := q.running[req]
	if !ok || run.orphan || !run.flow.engagement.live() {
		return work{}, false
	}
	return work{flow: run.flow, engagement: run.flow.engagement, attempts: run.record.attempts, waited: run.waited,
		priority: run.record.priority}, true
}

// work is what a worker has to know about the key it took.
type work struct {
	flow       *flow
	engagement *engagement
	attempts   uint32 // failed in a row before this one
	waited     time.Duration
	priority   Priority
}

// report says how a run ended; Done applies it. Not ok: its engagement is over, nobody cares any more.
func (q *queue) report(req mcreconcile.Request, v decision) (ok bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	run, ok := q.running[req]
	if !ok || run.orphan {
		return false
	}
	run.decision, run.judged = v, true
	q.running[req] = run
	return true
}

// done ends a run, applies its decision, and lets freed workers go to whoever waits for them.
func (q *queue) done(req mcreconcile.Request) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	run, ok := q.running[req]
	if !ok {
		return
	}
	delete(q.running, req)
	l, m := run.flow, run.flow.member
	wasFull := m.full()
	l.running--
	m.running--
	q.settle(run)
	run.record.flow.member.touch()
	plentiful := q.spare() == q.reserve+1 // again
	if plentiful {
		q.reseat()
	}
	if wasFull {
		m.reseat()
		m.serve()
	} else {
		l.reseat()
		q.handOut()
	}
	if plentiful {
		q.handOut()
	}
	q.rt.active.done()
	m.active.done()
	m.tidy()
}

// spare is how many workers hold no key.
func (q *queue) spare() int { return q.rt.opts.Workers - len(q.running) }

// scarce reports whether the workers that are left are kept for members of which no key runs. Members that hang hold what they
// were given until the deadline, and with half of the workers nobody else could be served for as long.
func (q *queue) scarce() bool { return q.reserve > 0 && q.spare() <= q.reserve }

// reseat has all flows take or give up their seats.
func (q *queue) reseat() {
	for _, l := range q.flows {
		l.reseat()
	}
}

// settle moves the record of a run that ended to its next state.
func (q *queue) settle(run run) {
	r, v, now := run.record, run.decision, q.rt.now()
	again := r.again
	r.again = priorities
	if run.orphan {
		q.orphans--
		if !r.flow.gone { // the member's next engagement wants it as well
			r.tried(0, now)
			r.outcome, r.lastErr = codeNone, ""
			r.state = keyIdle
			if r.flow.member.detached != "" {
				q.giveUp(r)
				return
			}
			r.flow.enqueue(r, min(again, PriorityBackground), now)
		}
		return
	}
	defer q.rt.arm(now)
	if !run.judged { // nobody looked at it: its engagement is about to end
		q.wait(r, now+int64(retry.First), "its engagement ends", true)
		return
	}
	r.ended, r.outcome, r.lastErr, r.reason = now, v.outcome, v.err, v.reason
	r.tried(v.attempts, now)
	r.setOverdue(v.overdue)
	r.flow.handle(r.key, v.asked)
	r.runs++
	q.next(r, v, again, now)
	if r.ordered {
		q.rt.operations.settle(r)
	}
}

// next gives a record that has just ended its state: what came in while it ran goes before what it asked for.
func (q *queue) next(r *record, v decision, again Priority, now int64) {
	r.state = keyIdle
	switch {
	case r.flow.member.detached != "" && (v.next != nextGone || again < priorities):
		q.giveUp(r)
	case again < PriorityBackground, again == PriorityBackground && v.next != nextRetry:
		r.flow.enqueue(r, again, now)
	case v.next == nextGone:
		q.forget(r)
	case v.next == nextRetry:
		q.wait(r, now+int64(v.after), v.reason, true)
	case v.next == nextWait && v.after <= 0:
		r.flow.enqueue(r, PriorityChanged, now)
	case v.next == nextWait:
		q.wait(r, now+int64(v.after), v.reason, false)
	case v.next == nextIdle && q.resync > 0:
		q.rt.timers.set(r, now+q.resyncDelay())
	}
}

func request(member string, key types.NamespacedName) (req mcreconcile.Request) {
	req.NamespacedName = key
	req.ClusterName = multicluster.ClusterName(member)
	return req
}
