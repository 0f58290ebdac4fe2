package journal

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Type says what an event is about.
type Type string

// The types of events.
const (
	// Move: a pod was evicted or released.
	Move Type = "Move"
	// InsufficientCapacityBegan and InsufficientCapacityEnded: a capacity type has no room for pods of a shape, and has room again.
	InsufficientCapacityBegan Type = "InsufficientCapacityBegan"
	InsufficientCapacityEnded Type = "InsufficientCapacityEnded"
	// Interruption: a node is about to go.
	Interruption Type = "Interruption"
	// ClusterState: the state of a member is another.
	ClusterState Type = "ClusterState"
	// Requeue: somebody ordered one reconcile or many.
	Requeue Type = "Requeue"
)

// Event is one thing that happened. The zero value of a field says that it has none.
type Event struct {
	// ID names it. IDs of one journal sort as its events came in. [Journal.Add] sets it.
	ID string
	// At is when it happened. [Journal.Add] sets it where it is zero.
	At     time.Time
	Type   Type
	Member string
	// Namespace, Kind and Name are those of the workload or object.
	Namespace, Kind, Name string
	// Subject is the pod or node that it is about, or the controller that was asked.
	Subject string
	// Reason is a word for programs, Message a sentence for people.
	Reason, Message string
	// User is who asked for it.
	User string
}

// Limits bound a journal. Zero values: one day, 2,000 events and 2 MiB of texts of a member, 20,000 events and 16 MiB in all. The
// oldest event of the namespace with the most goes first; events in no namespace go by their types. At most a quarter of the events
// are requeues: where there are more, the oldest of whoever asked for the most of them goes, and nothing else.
type Limits struct {
	Keep           time.Duration
	OfMember, Most int
	// BytesOfMember and Bytes bound the texts of events, whose lengths others decide.
	BytesOfMember, Bytes int
}

// Journal keeps events. Safe for concurrent use.
type Journal struct {
	limits Limits
	// epoch distinguishes the events of this process from those of one before it.
	epoch string

	mu       sync.Mutex
	last     uint64
	total    size
	members  map[string]*memberEvents // only those that have some
	orders   orders
	versions map[string]uint64
}

// New creates an empty journal.
func New(limits Limits) *Journal {
	if limits.Keep <= 0 {
		limits.Keep = 24 * time.Hour
	}
	orDefault(&limits.OfMember, 2000)
	orDefault(&limits.Most, 20_000)
	orDefault(&limits.BytesOfMember, 2<<20)
	orDefault(&limits.Bytes, 16<<20)
	return &Journal{
		limits: limits, epoch: fmt.Sprintf("%012x", time.Now().UnixMicro()),
		members: map[string]*memberEvents{}, orders: orders{}, versions: map[string]uint64{},
	}
}

func orDefault(limit *int, value int) {
	if *limit <= 0 {
		*limit = value
	}
}

// Add takes in an event. What is too much or too old is forgotten; that can be the event itself, where its texts alone are too much.
func (j *Journal) Add(e Event) {
	now := time.Now()
	if e.At.IsZero() {
		e.At = now
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e.ID = fmt.Sprintf("%s-%010x", j.epoch, j.last)
	m := j.members[e.Member]
	if m == nil {
		m = &memberEvents{groups: map[group]size{}}
		j.members[e.Member] = m
	}
	m.events = append(m.events, e)
	j.count(m, &e, 1)
	j.versions[e.Member]++
	j.expire(e.Member, now)
	if e.Type == Requeue {
		j.boundOrders(e.Member)
	}
	j.bound(e.Member)
}

// count counts an event of a member in, or out. The lock is held.
func (j *Journal) count(m *memberEvents, e *Event, n int) {
	j.total.add(e, n)
	m.count(e, n)
	j.orders.note(e, n)
}

// expire drops the first events of a member that are too old. Their times are not in order: what a replica finds when it starts
// may have begun days ago. The lock is held.
func (j *Journal) expire(member string, now time.Time) {
	m := j.members[member]
	if m == nil {
		return
	}
	n := slices.IndexFunc(m.events, func(e Event) bool { return now.Sub(e.At) <= j.limits.Keep })
	if n < 0 {
		n = len(m.events)
	}
	if n == 0 {
		return
	}
	for i := range m.events[:n] {
		j.count(m, &m.events[i], -1)
	}
	j.versions[member]++
	if m.events = slices.Clone(m.events[n:]); len(m.events) == 0 {
		delete(j.members, member)
	}
}

// List returns events of a member behind an ID, in the order in which they came in: at most limit, and whether there are more. An
// empty namespace means all events, also those that are in none; an empty ID the first.
func (j *Journal) List(member, namespace, behind string, limit int) (found []Event, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expire(member, time.Now())
	var events []Event
	if m := j.members[member]; m != nil {
		events = m.events
	}
	from := sort.Search(len(events), func(i int) bool { return strings.Compare(events[i].ID, behind) > 0 })
	for _, e := range events[from:] {
		if namespace != "" && e.Namespace != namespace {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, e)
	}
	return found, false
}

// Version changes whenever the events of a member do.
func (j *Journal) Version(member string) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expire(member, time.Now())
	return j.versions[member]
}
