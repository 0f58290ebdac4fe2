package reconcile

import "maps"

// check compares the queues with what must be true of them at rest.
func (m *model) check() {
	m.rt.mu.Lock()
	inHeap := map[*record]bool{}
	for i, r := range m.rt.timers.heap {
		if int(r.heapIndex) != i || r.flow.gone {
			m.t.Fatalf("the timers hold %v at %d, gone: %v", r.key, r.heapIndex, r.flow.gone)
		}
		inHeap[r] = true
	}
	byMember := map[string]int{}
	for _, q := range m.queues {
		for req := range q.running {
			byMember[req.ClusterName.String()]++
		}
		m.checkQueue(q, inHeap)
	}
	for name, n := range byMember {
		if n > modelWorkers || m.rt.members[name].running != n {
			m.t.Fatalf("member %s runs %d and counts %d of %d", name, n, m.rt.members[name].running, modelWorkers)
		}
	}
	maps.DeleteFunc(m.owed, func(r *record, _ bool) bool { return r.flow.gone }) // the next engagement lists everything
	for r := range m.owed {
		if r.state != keyQueued && (r.state != keyRunning || r.again > PriorityChanged) {
			m.t.Fatalf("the change of %v is lost: it is %v", r.key, r.snapshot())
		}
	}
	m.rt.mu.Unlock()
	m.checkOperations()
}

func (m *model) checkQueue(q *queue, inHeap map[*record]bool) {
	holds, runs := map[*record]bool{}, map[*flow]bool{}
	for _, run := range q.running {
		holds[run.record], runs[run.flow] = true, true
	}
	waiting := false
	for _, l := range q.flows {
		lined := m.checkLines(l)
		for key, r := range l.records {
			if r.key != key || r.flow != l {
				m.t.Fatalf("the record of %v is that of %v", key, r.key)
			}
			places := [...]bool{lined[r], holds[r], inHeap[r]}
			want, ok := map[keyState][3]bool{
				keyQueued: {true, false, false}, keyRunning: {false, true, false}, keyWaiting: {false, false, true},
				keyIdle: {false, false, inHeap[r] && q.resync > 0},
			}[r.state]
			if !ok || places != want {
				m.t.Fatalf("%v is in state %d and lined, held, timed: %v", key, r.state, places)
			}
		}
		m.checkDetached(l)
		if q.perMember == modelPerMember && len(lined) > 0 && l.open() && !runs[l] && len(q.running) >= modelAllowed && q.orphans == 0 {
			m.t.Fatalf("%s runs %d keys of other members, and none of %s", q.name, len(q.running), l.member.name)
		}
		if l.running > q.perMember || l.running > l.member.running {
			m.t.Fatalf("%s/%s runs %d of %d", q.name, l.member.name, l.running, q.perMember)
		}
		kept := l.running > 0 && q.perMember == modelPerMember && modelAllowed-len(q.running) <= modelAllowed/2-modelPerMember
		waiting = waiting || (len(lined) > 0 && l.member.running < modelWorkers && l.running < q.perMember && m.shut[l.member.name] == 0 && !m.given[l.member.name] && !kept)
	}
	if waiting && len(q.idle) > 0 {
		m.t.Fatalf("%s has an idle worker while a key may run", q.name)
	}
}

// checkDetached: in a member that was given up nothing waits or stands in line, and what is gone there is forgotten.
func (m *model) checkDetached(l *flow) {
	if !m.given[l.member.name] {
		return
	}
	for _, r := range l.records {
		if r.state != keyIdle && r.state != keyRunning {
			m.t.Fatalf("%v is in state %d in a member that was detached", r.key, r.state)
		}
		if r.lost && r.state != keyRunning {
			m.t.Fatalf("%v is gone, and stays in the ledger of a member that was detached", r.key)
		}
	}
}

// checkLines returns the records in line, and checks that the flow sits in the rounds exactly when it may be served.
func (m *model) checkLines(l *flow) map[*record]bool {
	lined := map[*record]bool{}
	for b := range l.seats {
		s, n := &l.seats[b], 0
		for r := s.line.head; r != nil; r = r.next {
			if r.priority != Priority(b) || lined[r] {
				m.t.Fatalf("%v is in the wrong line, or twice", r.key)
			}
			lined[r] = true
			n++
		}
		if n != s.line.n || s.seated != (l.open() && n > 0) {
			m.t.Fatalf("the line has %d and counts %d, seated: %v", n, s.line.n, s.seated)
		}
	}
	return lined
}

// checkOperations: an operation is done only after a reconcile that began after it was accepted, or because its key went or its
// member was given up.
func (m *model) checkOperations() {
	for id, before := range m.orders {
		rc, ok := m.rt.Operation(id)
		if !ok {
			m.t.Fatalf("operation %s is lost", id)
		}
		if !rc.Done {
			if l := m.rt.queues[rc.Key.Controller].flows[rc.Key.Member]; l != nil && l.records[rc.Key.NamespacedName] == nil {
				m.t.Fatalf("the operation of %v stays open although the key is gone", rc.Key)
			}
			continue
		}
		delete(m.orders, id)
		if rc.Record.LastOutcome != OutcomeGone && rc.Record.LastOutcome != OutcomeNotOurs && m.begun[rc.Key] <= m.orderAt[id] {
			m.t.Fatalf("the operation of %v is done without a reconcile that began after it; was %+v", rc.Key, before)
		}
	}
}
