package reconcile

// join gives a member a lane in the queue. A lane that it still has is over: its keys are dropped, as the new engagement
// lists them anew and starts without back-off. Only orders that were accepted and not yet followed are carried over.
func (q *queue) join(name string, e *engagement) *lane {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	m := q.rt.member(name)
	l := newLane(q, m, e)
	old := q.lanes[name]
	q.lanes[name] = l
	m.lanes = append(m.lanes, l)
	if old != nil {
		q.drop(old)
		q.rt.receipts.move(old, l)
		q.handOut()
	}
	return l
}

// leave ends a lane, and tells whether the member has none now in this queue, and in any queue.
func (q *queue) leave(l *lane) (noneHere, noneAnywhere bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	name := l.member.name
	if !l.gone {
		delete(q.lanes, name)
		q.drop(l)
		q.rt.receipts.abandon(l)
		l.member.tidy()
	}
	m := q.rt.members[name]
	return q.lanes[name] == nil, m == nil || len(m.lanes) == 0
}

// drop takes all keys of a lane out of the ledger. Those that run are left to finish, for nothing.
func (q *queue) drop(l *lane) {
	l.gone = true
	l.reseat()
	l.member.remove(l)
	q.rt.timers.drop(l)
	for req, run := range q.running {
		if run.lane == l && !run.orphan {
			run.orphan = true
			q.running[req] = run
			q.orphans++
		}
		if run.record.lane == l {
			run.record.again = bands
		}
	}
	l.records = nil
}
