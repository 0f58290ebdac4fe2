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

// leave ends a lane, and tells whether the member now has none in this queue, and in any queue.
func (q *queue) leave(l *lane) (here, anywhere bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	if l.gone {
		return q.lanes[l.member.name] == nil, len(l.member.lanes) == 0
	}
	delete(q.lanes, l.member.name)
	q.drop(l)
	q.rt.receipts.abandon(l)
	anywhere = len(l.member.lanes) == 0
	l.member.tidy()
	return true, anywhere
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
