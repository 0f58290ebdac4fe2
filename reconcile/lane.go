package reconcile

import "k8s.io/apimachinery/pkg/types"

// A lane holds the keys of one controller in one member: all its records by name, and those that are queued in line, one
// line per band. It lives as long as one engagement. Guarded by Runtime.mu.
type lane struct {
	queue      *queue
	member     *member
	engagement *engagement
	records    map[types.NamespacedName]*record
	seats      [bands]seat
	picks      uint32
	running    int
	gone       bool // the member left or was replaced; nothing may enter any more
}

// A seat is a lane's place in one band of its queue. It sits in the band's round, where members take turns, exactly when
// a worker could take a key from it.
type seat struct {
	lane       *lane
	line       line
	prev, next *seat
	seated     bool
}

func newLane(q *queue, m *member, e *engagement) *lane {
	l := &lane{queue: q, member: m, engagement: e, records: map[types.NamespacedName]*record{}}
	for b := range l.seats {
		l.seats[b].lane = l
	}
	return l
}

func (l *lane) name() laneName { return laneName{controller: l.queue.name, member: l.member.name} }

// open tells whether a worker may take a key of this lane now, if there is one.
func (l *lane) open() bool {
	return !l.gone && !l.queue.down && !l.member.shut && l.running < l.queue.perMember &&
		l.member.running < l.queue.rt.opts.WorkersPerMember
}

// reseat puts the lane into, or takes it out of, the rounds of its queue, as its keys, caps and gates have it now.
func (l *lane) reseat() {
	open := l.open()
	for b := range l.seats {
		l.reseatBand(Band(b), open)
	}
}

func (l *lane) reseatBand(b Band, open bool) {
	s := &l.seats[b]
	if want := open && s.line.n > 0; want == s.seated {
		return
	} else if want {
		l.queue.rounds[b].push(s)
	} else {
		l.queue.rounds[b].remove(s)
	}
}

// enqueue puts a record that is in no line at the end of the line of its band.
func (l *lane) enqueue(r *record, b Band, now int64) {
	r.state, r.band, r.queuedAt = keyQueued, b, now
	r.reason, r.nextTry, r.backoff = "", 0, false
	l.seats[b].line.push(r)
	l.reseatBand(b, l.open())
}

// dequeue takes a queued record out of its line.
func (l *lane) dequeue(r *record) {
	l.seats[r.band].line.remove(r)
	l.reseatBand(r.band, l.open())
}

// A line is a first-in, first-out list that runs through its records.
type line struct {
	head, tail *record
	n          int
}

func (q *line) push(r *record) {
	r.prev, r.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = r
	} else {
		q.head = r
	}
	q.tail = r
	q.n++
}

func (q *line) remove(r *record) {
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

// A round is the list of seats that take turns in one band of one queue; the head is next.
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
