package reconcile

import (
	"slices"
	"time"
)

// join gives a member a flow in the queue. A flow that it still has is over: its keys are dropped, as the new engagement
// lists them anew and starts without back-off. Only orders that were accepted and not yet followed are carried over, also
// from a flow that ended a moment ago.
func (q *queue) join(name string, e *engagement) *flow {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	m := q.rt.member(name)
	l := newFlow(q, m, e)
	old := q.flows[name]
	q.flows[name] = l
	m.flows = append(m.flows, l)
	m.touch()
	if old != nil {
		q.drop(old)
		q.rt.receipts.strand(old)
	}
	q.rt.receipts.adopt(l)
	return l
}

// leave ends a flow, and tells whether the member has none now in this queue, and in any queue.
func (q *queue) leave(l *flow) (noneHere, noneAnywhere bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	name := l.member.name
	if !l.gone {
		delete(q.flows, name)
		q.drop(l)
		if q.rt.receipts.strand(l) {
			q.rt.abandonLater(l.name())
		}
		l.member.tidy()
	}
	m := q.rt.members[name]
	return q.flows[name] == nil, m == nil || len(m.flows) == 0
}

// abandonLater ends the orders of a member that left, unless it is back in time.
func (rt *Runtime) abandonLater(name flowName) {
	left := slices.Clone(rt.receipts.stranded[name])
	time.AfterFunc(orderGrace, func() {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		rt.receipts.abandon(name, left)
	})
}

// drop takes all keys of a flow out of the ledger. Those that run are left to finish, for nothing.
func (q *queue) drop(l *flow) {
	l.gone = true
	l.member.touch()
	l.reseat()
	l.member.remove(l)
	q.rt.timers.drop(l)
	l.needs.Leave()
	for req, run := range q.running {
		if run.flow == l && !run.orphan {
			run.orphan = true
			q.running[req] = run
			q.orphans++
		}
		if run.record.flow == l {
			run.record.again = priorities
		}
	}
	l.records = nil
}
