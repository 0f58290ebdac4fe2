package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// ChangeType says what a [Change] is.
type ChangeType uint8

const (
	// ChangeAdded: the reader did not know the object; Object is it.
	ChangeAdded ChangeType = iota + 1
	// ChangeUpdated: Old is the state that the reader knows, Object the one that is.
	ChangeUpdated
	// ChangeDeleted: Object is the last state that the reader knows of an object that is gone.
	ChangeDeleted
	// ChangeSynced: everything that was in the member's cache when the reader came to it has been sent. Once for each time
	// that a member is followed.
	ChangeSynced
	// ChangeResynced: the reader was slower than the changes, and some states were skipped. What was skipped until this was
	// queued has been sent by now, in its newest state.
	ChangeResynced
	// ChangeDisengaged: the member or the kind is no longer followed, for Err. What the reader knows of the member is void.
	ChangeDisengaged
)

// String names the type.
func (c ChangeType) String() string {
	if int(c) < len(changeTypes) {
		return changeTypes[c]
	}
	return "unknown"
}

var changeTypes = [...]string{"unknown", "Added", "Updated", "Deleted", "Synced", "Resynced", "Disengaged"}

// A Change is one element of the sequence. Objects are those of the member's cache, trimmed as they are there; they must not be
// changed.
type Change[T client.Object] struct {
	Type   ChangeType
	Member string
	Object T // of Added, Updated and Deleted
	Old    T // of Updated
	Err    error
}

// Follow is Changes of package reconcile.
func Follow[T client.Object](ctx context.Context, instances *members.Instances, member string) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		s := &stream[T]{instances: instances, only: member, kind: object.New[T](), wake: notify.New(), stop: make(chan struct{}),
			sources: map[string]*streamSource[T]{}, backlogs: map[string]*backlog[T]{}}
		forget := instances.Listen(s.look)
		defer s.close()
		defer forget()
		s.begin()
		for {
			some, last := s.take()
			for _, change := range some {
				if ctx.Err() != nil || !yield(change) {
					return
				}
			}
			switch {
			case last:
				return
			case len(some) > 0:
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
		}
	}
}

// A stream is one use of Changes. Its sources, one for each member, fill the backlogs, and the reader empties them.
type stream[T client.Object] struct {
	instances *members.Instances
	only      string // empty: all members
	kind      T
	wake      notify.Wake // something is in a backlog
	stop      chan struct{}
	wg        sync.WaitGroup

	mu       sync.Mutex
	sources  map[string]*streamSource[T]
	backlogs map[string]*backlog[T] // by member, those that are not empty
	turns    []*backlog[T]          // in which they take turns
	closed   bool
}

// A streamSource follows the informer of one instance of a member.
type streamSource[T client.Object] struct {
	stream *stream[T]
	member string
	there  *members.Instance
	gone   <-chan struct{} // closed when the kind goes; nil: never
}

var (
	errNotCached  = errors.New("the kind is not cached in the member")
	errMemberLeft = errors.New("the member left")
	errKindLeft   = errors.New("the member no longer has the kind")
)

// begin follows the members that are there.
func (s *stream[T]) begin() {
	if s.only == "" {
		for _, name := range s.instances.Names() {
			s.look(name)
		}
		return
	}
	s.look(s.only)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[s.only] == nil {
		s.end(s.only, errNotCached)
	}
}

// look follows a member that is there, has the kind, and is not followed yet.
func (s *stream[T]) look(name string) {
	if s.only != "" && name != s.only {
		return
	}
	there := s.instances.Get(name)
	if there == nil || there.Context.Err() != nil {
		return
	}
	gone, ok := members.Presence(there.Cluster, s.kind)
	if !ok || (gone != nil && members.IsClosed(gone)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.sources[name] != nil {
		return
	}
	src := &streamSource[T]{stream: s, member: name, there: there, gone: gone}
	s.sources[name] = src
	s.wg.Go(src.follow)
}

// follow attaches to the informer and stays until the kind, the member or the reader goes. One that took its member's place
// meanwhile is followed then.
func (src *streamSource[T]) follow() {
	s := src.stream
	err := src.attend()
	s.mu.Lock()
	delete(s.sources, src.member)
	if !s.closed {
		s.end(src.member, err)
	}
	s.mu.Unlock()
	if s.only == "" {
		s.look(src.member)
	}
}

func (src *streamSource[T]) attend() error {
	s := src.stream
	informer, err := src.there.Cluster.GetCache().GetInformer(src.there.Context, s.kind, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotCached, err)
	}
	handle, err := informer.AddEventHandler(src.handler())
	if err != nil {
		return fmt.Errorf("%w: %w", errNotCached, err)
	}
	defer func() { _ = informer.RemoveEventHandler(handle) }() // fails when the informer has stopped
	synced := handle.HasSyncedChecker().Done()
	for {
		select {
		case <-s.stop:
			return nil
		case <-src.there.Context.Done():
			return errMemberLeft
		case <-src.gone:
			return errKindLeft
		case <-synced:
			synced = nil
			src.put(func(b *backlog[T]) { b.mark(Change[T]{Type: ChangeSynced, Member: src.member}) })
		}
	}
}

func (src *streamSource[T]) handler() toolscache.ResourceEventHandler {
	var none T
	event := func(old, now T) {
		src.put(func(b *backlog[T]) { b.event(old, now) })
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if now, ok := obj.(T); ok {
				event(none, now)
			}
		},
		UpdateFunc: func(before, after any) {
			if _, _, ok := object.Changed(before, after); !ok {
				return
			}
			old, okOld := before.(T)
			now, okNow := after.(T)
			if okOld && okNow {
				event(old, now)
			}
		},
		DeleteFunc: func(obj any) {
			if old, ok := object.LastKnown(obj).(T); ok {
				event(old, none)
			}
		},
	}
}

// put adds to the backlog of the source's member and wakes the reader. What a source that is over still delivers is dropped:
// another one may follow the member by now.
func (src *streamSource[T]) put(add func(*backlog[T])) {
	s := src.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.sources[src.member] == src {
		s.add(src.member, add)
	}
}

// end voids what is queued of a member. The lock is held.
func (s *stream[T]) end(member string, why error) {
	s.add(member, func(b *backlog[T]) {
		b.clear()
		b.mark(Change[T]{Type: ChangeDisengaged, Member: member, Err: fmt.Errorf("member %s: %T: %w", member, s.kind, why)})
	})
}

func (s *stream[T]) add(member string, add func(*backlog[T])) {
	b := s.backlogs[member]
	if b == nil {
		b = newBacklog[T](member)
		s.backlogs[member] = b
		s.turns = append(s.turns, b)
	}
	add(b)
	s.wake.Signal()
}

// take returns what the reader is to get next, at most about one object. last: there will be no more.
func (s *stream[T]) take() (some []Change[T], last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(some) == 0 && len(s.turns) > 0 {
		b := s.turns[0]
		s.turns = s.turns[1:]
		if some = b.next(); b.empty() {
			delete(s.backlogs, b.member)
		} else {
			s.turns = append(s.turns, b)
		}
	}
	last = s.only != "" && len(some) == 1 && some[0].Type == ChangeDisengaged
	return some, last
}

func (s *stream[T]) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.wg.Wait()
}
