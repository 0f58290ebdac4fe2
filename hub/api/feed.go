package api

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/wire"
)

const (
	// A feed reads members that cannot say whether they have changed every refreshFloor, and less often where reading takes long: a
	// tenth of the time, and at least every refreshCeiling. The others are read when they have changed, which is looked at every
	// changeFloor, and less often where reading takes long: a quarter of the time.
	refreshFloor, refreshCeiling, changeFloor = 100 * time.Millisecond, 5 * time.Second, 10 * time.Millisecond
	// feedLinger is how long a feed goes on without watchers, so that one that comes back finds its place.
	feedLinger = time.Minute
	// maxGone is how many items that are gone a feed remembers.
	maxGone = 10_000
	// maxShared is how many of the last changes have a message that all watchers get alike: more would only cost memory.
	maxShared = 1024
	// wakeCost is about what it takes to wake a watcher and to send it one change. All together get a fifth of a processor for that.
	wakeCost, wakeShare = 5 * time.Microsecond, 5
)

// feed knows the items of one kind of resource in all members, in the order in which they changed last. All watchers read from
// it, each at its own pace, so one that is slow costs nothing and misses states in between. It looks for changes while there are
// watchers. Safe for concurrent use.
type feed[T proto.Message] struct {
	members func() []string
	// read returns the items of a member. blind: those that it had may still be there, for the reason in gap. Of owners in failed it asks
	// nothing more.
	read func(ctx context.Context, member string, failed *failures) (items []T, gap string, blind bool)
	// owner is whose answer read waits for; "": nobody's.
	owner  func(member string) string
	nameOf func(T) lists.Position
	log    *slog.Logger
	// version is another number when a member may have changed; not ok: nobody can say. Nil: of no member.
	version func(member string) (now uint64, ok bool)

	mu       sync.Mutex
	names    []string               // of the members, in order
	reads    map[string]*memberRead // of these
	passes   uint64                 // counts reads of members
	epoch    string                 // changes when everything is forgotten
	revision uint64
	nodes    map[string]map[string]*node[T] // by member and name
	known    int                            // how many nodes there are
	entries  []logged[T]                    // by revision; of each node the last entry counts
	shared   [maxShared]recent              // the last changes, by revision
	gone     int                            // nodes without an item
	floor    uint64                         // who has not read up to here may have missed that something went
	gaps     []*plimsollv1.UnreachableMember
	whole    bool // all members have been read once
	changed  chan struct{}
	watchers int
	running  bool
	idle     time.Time // since when there are no watchers
}

// node is one item, which may be gone. Guarded by the feed's lock, but for what never changes.
type node[T any] struct {
	at       lists.Position
	item     T // the last that is known
	gone     bool
	revision uint64
}

type logged[T any] struct {
	revision uint64
	node     *node[T]
}

// recent is one of the last changes, and what watchers get that are shown it as it is.
type recent struct {
	revision uint64
	message  *wire.Shared
}

// seen is an item as it was at a revision.
type seen[T any] struct {
	node    *node[T]
	item    T
	gone    bool
	message *wire.Shared // nil: the change is not one of the last
}

func newFeed[T proto.Message](c *core, nameOf func(T) lists.Position, read func(context.Context, string, *failures) ([]T, string, bool)) *feed[T] {
	f := &feed[T]{members: c.names, owner: c.asked, read: read, nameOf: nameOf, log: c.log, changed: make(chan struct{})}
	f.forget()
	return f
}

// forget starts again.
func (f *feed[T]) forget() {
	f.epoch, f.revision, f.nodes, f.entries, f.gone, f.floor = uuid.NewString(), 1, map[string]map[string]*node[T]{}, nil, 0, 0
	f.known = 0
	f.names, f.reads, f.gaps, f.whole = nil, map[string]*memberRead{}, nil, false
	clear(f.shared[:])
}

// enter adds a watcher. leave must be called once.
func (f *feed[T]) enter(stopping context.Context) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers++; !f.running {
		f.running = true
		go f.run(stopping)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watchers--
		f.idle = time.Now()
	}
}

// merge takes over what a member has now. The lock is held.
func (f *feed[T]) merge(member string, items []T, blind bool) {
	before := f.revision
	nodes := f.nodes[member]
	if nodes == nil {
		nodes = map[string]*node[T]{}
		f.nodes[member] = nodes
	}
	there := make(map[string]bool, len(items))
	for _, item := range items {
		at := f.nameOf(item)
		key := strings.Join(at, "\x00")
		there[key] = true
		switch known := nodes[key]; {
		case known == nil:
			known = &node[T]{at: at, item: item}
			nodes[key] = known
			f.known++
			f.note(known)
		case known.gone:
			f.gone--
			known.item, known.gone = item, false
			f.note(known)
		case !proto.Equal(known.item, item):
			known.item = item
			f.note(known)
		}
	}
	if !blind {
		f.drop(nodes, there)
	}
	if f.revision != before {
		f.wake()
	}
}

// drop notes that the items of a member that are not there are gone. The lock is held.
func (f *feed[T]) drop(nodes map[string]*node[T], there map[string]bool) {
	for key, known := range nodes {
		if !known.gone && !there[key] {
			known.gone = true
			f.gone++
			f.note(known)
		}
	}
	f.tidy()
}

// note puts a node at the end of the log. The lock is held.
func (f *feed[T]) note(known *node[T]) {
	f.revision++
	known.revision = f.revision
	f.shared[f.revision%maxShared] = recent{f.revision, &wire.Shared{}}
	f.entries = append(f.entries, logged[T]{f.revision, known})
}

// wake wakes the watchers. The lock is held.
func (f *feed[T]) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// tidy keeps the log short, and forgets what is gone when that is too much. The lock is held.
func (f *feed[T]) tidy() {
	if len(f.entries) < 2*f.known+1024 && f.gone <= maxGone {
		return
	}
	excess := max(0, f.gone-maxGone/2)
	if f.gone <= maxGone {
		excess = 0
	}
	f.entries = slices.DeleteFunc(f.entries, func(l logged[T]) bool {
		switch {
		case l.node.revision != l.revision:
			return true
		case l.node.gone && excess > 0:
			excess--
			f.gone--
			f.floor = l.revision
			f.known--
			if delete(f.nodes[l.node.at[0]], strings.Join(l.node.at, "\x00")); len(f.nodes[l.node.at[0]]) == 0 {
				delete(f.nodes, l.node.at[0])
			}
			return true
		}
		return false
	})
}

// state is what a watcher finds when it has read on.
type state struct {
	upTo    uint64
	end     bool // there is nothing behind it at the moment
	whole   bool // all members have been read
	gaps    []*plimsollv1.UnreachableMember
	changed <-chan struct{} // closed when there is more
}

// after returns the next items that changed after a revision, at most limit. Not ok: some of what went since then is forgotten, or
// the epoch is another.
func (f *feed[T]) after(epoch string, revision uint64, limit int) (found []seen[T], now state, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch != f.epoch || revision > 0 && revision < f.floor || revision > f.revision {
		return nil, state{}, false
	}
	from, _ := slices.BinarySearchFunc(f.entries, revision+1, func(l logged[T], r uint64) int { return cmp.Compare(l.revision, r) })
	now = state{upTo: f.revision, end: true, whole: f.whole, gaps: f.gaps, changed: f.changed}
	for _, l := range f.entries[from:] {
		if l.node.revision != l.revision {
			continue
		}
		if len(found) == limit {
			now.end = false
			break
		}
		now.upTo = l.revision
		one := seen[T]{node: l.node, item: l.node.item, gone: l.node.gone}
		if last := f.shared[l.revision%maxShared]; last.revision == l.revision {
			one.message = last.message
		}
		found = append(found, one)
	}
	if now.end {
		now.upTo = f.revision
	}
	return found, now, true
}

// begin returns the epoch.
func (f *feed[T]) begin() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

func (f *feed[T]) revisionOf(n *node[T]) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.revision
}
