package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/depend"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// A flow holds the keys of one controller in one member: all its records by name, and those that are queued in line, one
// line per priority. It lives as long as one engagement. Guarded by Runtime.mu.
type flow struct {
	queue      *queue
	member     *member
	engagement *engagement
	records    map[types.NamespacedName]*record
	handled    map[types.NamespacedName]string // by which requests of people the last reconciles were asked for; few have one
	seats      [priorities]seat
	picks      uint32
	bucket     *bucket // nil: no rate limit
	running    int
	overdue    int  // records whose cleaning up has taken too long
	gone       bool // the member left or was replaced; nothing may enter any more
	needs      *depend.Flow
	measures   measures
}

// A seat is a flow's place in one priority of its queue. It sits in the priority's round, where members take turns, exactly when
// a worker could take a key from it.
type seat struct {
	flow       *flow
	line       line
	prev, next *seat
	seated     bool
}

func newFlow(q *queue, m *member, e *engagement) *flow {
	l := &flow{queue: q, member: m, engagement: e, records: map[types.NamespacedName]*record{}, bucket: newBucket(q.limit)}
	for b := range l.seats {
		l.seats[b].flow = l
	}
	l.needs = q.rt.dependencies.NewFlow(m.name, q.kind.GroupKind(), func(key types.NamespacedName) { q.wake(l, key, PriorityChanged, e.known) })
	return l
}

// handle notes what a reconcile that has ended was asked for by.
func (l *flow) handle(key types.NamespacedName, asked asking) {
	switch {
	case !asked.seen:
	case asked.value == "":
		delete(l.handled, key)
	default:
		if l.handled == nil {
			l.handled = map[types.NamespacedName]string{}
		}
		l.handled[key] = object.Clip(asked.value)
	}
}

func (l *flow) name() flowName { return flowName{controller: l.queue.name, member: l.member.name} }

// open reports whether a worker may take a key of this flow now, if there is one.
func (l *flow) open() bool {
	return !l.gone && !l.queue.down && !l.member.shut && l.running < l.queue.perMember &&
		l.member.running < l.queue.rt.opts.WorkersPerMember && (l.running == 0 || !l.queue.scarce())
}

// reseat puts the flow into, or takes it out of, the rounds of its queue, as its keys, caps and holds have it now.
func (l *flow) reseat() {
	open := l.open()
	for b := range l.seats {
		l.reseatPriority(Priority(b), open)
	}
}

func (l *flow) reseatPriority(b Priority, open bool) {
	s := &l.seats[b]
	if want := open && s.line.n > 0 && !l.limited(b); want == s.seated {
		return
	} else if want {
		l.queue.rounds[b].push(s)
	} else {
		l.queue.rounds[b].remove(s)
	}
}

// enqueue puts a record that is in no line at the end of the line of its priority.
func (l *flow) enqueue(r *record, b Priority, now int64) {
	r.state, r.priority, r.queuedAt = keyQueued, b, now
	r.reason, r.nextTry, r.backoff = "", 0, false
	l.member.touch()
	if b == PriorityChanged && r.runs == 0 {
		l.seats[b].line.pushNew(r)
	} else {
		l.seats[b].line.push(r)
	}
	l.reseatPriority(b, l.open())
}

// dequeue takes a queued record out of its line.
func (l *flow) dequeue(r *record) {
	l.seats[r.priority].line.remove(r)
	l.reseatPriority(r.priority, l.open())
}

// A line is a first-in, first-out list that runs through its records. Those that were never reconciled stand before all others, in
// their own order: somebody waits for what is to come of a new object, and to follow what happens to others can wait.
type line struct {
	head, tail *record
	lastNew    *record // of those that were never reconciled; nil: there are none
	n          int
	given      uint32
}

// newShare is the share of the others while there are new ones: of so many records that a line gives, one is theirs.
const newShare = 8

// take removes the record whose turn it is from a line that has one.
func (q *line) take() *record {
	r := q.head
	if q.given++; q.given%newShare == 0 && q.lastNew != nil && q.lastNew.next != nil {
		r = q.lastNew.next
	}
	q.remove(r)
	return r
}

func (q *line) push(r *record) { q.insert(q.tail, r) }

func (q *line) pushNew(r *record) {
	q.insert(q.lastNew, r)
	q.lastNew = r
}

// insert puts a record behind another; behind nil: at the head.
func (q *line) insert(behind, r *record) {
	r.prev, r.next = behind, q.head
	if behind != nil {
		r.next, behind.next = behind.next, r
	} else {
		q.head = r
	}
	if r.next != nil {
		r.next.prev = r
	} else {
		q.tail = r
	}
	q.n++
}

func (q *line) remove(r *record) {
	if r == q.lastNew {
		q.lastNew = r.prev
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.tail = r.prev
	}
	r.prev, r.next = nil, nil
	q.n--
}

// A round is the list of seats that take turns in one priority of one queue; the head is next.
type round struct{ head, tail *seat }

func (o *round) push(s *seat) {
	s.prev, s.next, s.seated = o.tail, nil, true
	if o.tail != nil {
		o.tail.next = s
	} else {
		o.head = s
	}
	o.tail = s
}

func (o *round) remove(s *seat) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		o.head = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		o.tail = s.prev
	}
	s.prev, s.next, s.seated = nil, nil, false
}

// join gives a member a flow in the queue. A flow that it still has is over: its keys are dropped, as the new engagement
// lists them again and starts without back-off. Only orders that were accepted and not yet followed are carried over, also
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
		q.rt.operations.strand(old)
	}
	q.rt.operations.adopt(l)
	return l
}

// leave ends a flow, and reports whether the member has none now in this queue, and in any queue.
func (q *queue) leave(l *flow) (noneHere, noneAnywhere bool) {
	q.rt.mu.Lock()
	defer q.rt.mu.Unlock()
	name := l.member.name
	if !l.gone {
		delete(q.flows, name)
		q.drop(l)
		if q.rt.operations.strand(l) {
			q.rt.abandonLater(l.name())
		}
		l.member.tidy()
	}
	m := q.rt.members[name]
	return q.flows[name] == nil, m == nil || len(m.flows) == 0
}

// abandonLater ends the orders of a member that left, unless it is back in time.
func (rt *Runtime) abandonLater(name flowName) {
	left := slices.Clone(rt.operations.stranded[name])
	time.AfterFunc(orderGrace, func() {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		rt.operations.abandon(name, left)
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
