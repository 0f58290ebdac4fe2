package reconcile

import "time"

// shareEvery is the share of the lower priorities: of so many keys that are taken, one is taken from the background priority and one
// from the changed priority, if they have any, whatever waits above them. Otherwise the better priority always goes first. The
// count is kept for the queue and for each member in it, so that neither a busy member nor a busy priority can starve others.
const shareEvery = 16

// share returns the priority that the n-th pick favours; priorities: none.
func share(n uint32) Priority {
	switch n % shareEvery {
	case 0:
		return PriorityBackground
	case shareEvery / 2:
		return PriorityChanged
	}
	return priorities
}

// pick takes the next key that may run out of its line and marks it as running; nil: none may.
func (q *queue) pick() *record {
	if q.down {
		return nil
	}
	s := q.choose()
	if s == nil {
		return nil
	}
	l := s.flow
	q.picks++
	l.picks++
	q.rotate(s)
	if b := share(l.picks); b < priorities && l.seats[b].seated {
		s = &l.seats[b]
	}
	r := s.line.take()
	q.start(r)
	return r
}

// choose finds the seat whose turn it is.
func (q *queue) choose() *seat {
	if b := share(q.picks + 1); b < priorities && q.rounds[b].head != nil {
		return q.rounds[b].head
	}
	for b := range q.rounds {
		if s := q.rounds[b].head; s != nil {
			return s
		}
	}
	return nil
}

// rotate puts a seat at the end of its round.
func (q *queue) rotate(s *seat) {
	for b := range s.flow.seats {
		if s == &s.flow.seats[b] && q.rounds[b].tail != s {
			q.rounds[b].remove(s)
			q.rounds[b].push(s)
		}
	}
}

// start gives a record that is in no line to a worker.
func (q *queue) start(r *record) {
	now := q.rt.now()
	l, m := r.flow, r.flow.member
	q.running[request(m.name, r.key)] = run{
		record: r, flow: l, waited: time.Duration(now - max(r.queuedAt, m.opened)),
	}
	r.state, r.started, r.again = keyRunning, now, priorities
	m.touch()
	if r.ordered {
		q.rt.operations.begin(r)
	}
	l.running++
	m.running++
	if l.bucket != nil && r.priority != PriorityOrdered {
		l.bucket.take(now)
	}
	m.active.add()
	q.rt.active.add()
	if m.full() {
		m.reseat()
	} else {
		l.reseat()
	}
	if q.spare() == q.reserve { // from now on they are scarce
		q.reseat()
	}
}
