package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// memberRead is what is known of the reads of a member. The feed's lock guards it.
type memberRead struct {
	pass    uint64 // the last one that has begun
	done    bool   // one has ended
	version uint64 // what follows is of the last that has ended
	at      time.Time
	gap     *plimsollv1.UnreachableMember
}

// lane is the members that wait for the answers of one replica. Each lane is read for itself: a replica that does not answer holds up
// nothing but what it owns. The feed's lock guards it.
type lane struct {
	busy bool      // it is read
	due  time.Time // when all of its members are read that cannot say whether they have changed
	next time.Time // when it is looked for those that have changed
}

// lookup is one read of a member that is to be done.
type lookup struct {
	member        string
	pass, version uint64
}

// run looks for changes until nobody has watched for a while.
func (f *feed[T]) run(stopping context.Context) {
	lanes := map[string]*lane{}
	ended := make(chan struct{}, 1)
	for {
		looked := time.Now()
		f.lookSafely(stopping, lanes, ended)
		for pause := f.pause(lanes, looked); pause > 0; pause = f.pause(lanes, looked) {
			select {
			case <-stopping.Done():
				return
			case <-ended: // when its lane is next is known now
			case <-time.After(pause):
			}
		}
		if stopping.Err() != nil || f.rests(lanes) {
			return
		}
	}
}

// pause is how long nothing is to be looked for. There may be new members or owners after each refreshFloor.
func (f *feed[T]) pause(lanes map[string]*lane, looked time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := looked.Add(refreshFloor)
	for _, l := range lanes {
		if !l.busy && l.next.Before(next) {
			next = l.next
		}
	}
	return time.Until(next)
}

// rests forgets everything when nobody has watched for a while, and reports whether it did.
func (f *feed[T]) rests(lanes map[string]*lane) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers > 0 || time.Since(f.idle) <= feedLinger {
		return false
	}
	for _, l := range lanes {
		if l.busy { // it would answer the next watchers
			return false
		}
	}
	f.running = false
	f.forget()
	return true
}

// wakes is how long watchers are let sleep so that waking them costs no more than its share: what changes meanwhile they get at once.
func (f *feed[T]) wakes() time.Duration { return time.Duration(f.watchers) * wakeShare * wakeCost }

// lookSafely goes on after a panic: nobody's call is there to end.
func (f *feed[T]) lookSafely(ctx context.Context, lanes map[string]*lane, ended chan<- struct{}) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("members could not be read for watches", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	f.look(ctx, lanes, ended)
}

// look begins to read the lanes whose time has come, and reports which members are gone.
func (f *feed[T]) look(ctx context.Context, lanes map[string]*lane, ended chan<- struct{}) {
	names := f.members()
	slices.Sort(names)
	of := map[string][]string{}
	for _, name := range names {
		owner := f.owner(name)
		of[owner] = append(of[owner], name)
	}
	f.mu.Lock()
	before := f.revision
	f.onlyMembers(names)
	f.announceState(before)
	var due []string
	for owner := range of {
		switch l := lanes[owner]; {
		case l == nil:
			lanes[owner] = &lane{}
		case l.busy || time.Now().Before(l.next):
			continue
		}
		due = append(due, owner)
	}
	for owner, l := range lanes {
		if of[owner] == nil && !l.busy {
			delete(lanes, owner)
		}
	}
	f.mu.Unlock()
	for _, owner := range due {
		f.readLane(ctx, lanes[owner], of[owner], ended)
	}
}

// onlyMembers notes that the items of all members but these are gone. The lock is held.
func (f *feed[T]) onlyMembers(names []string) {
	f.names = names
	for _, name := range names {
		if f.reads[name] == nil {
			f.reads[name] = &memberRead{}
		}
	}
	for member := range f.reads {
		if _, is := slices.BinarySearch(names, member); !is {
			delete(f.reads, member)
			f.drop(f.nodes[member], nil)
		}
	}
}

// readLane begins to read the members of a lane that may have changed. What changes is sent as soon as its member is read.
func (f *feed[T]) readLane(ctx context.Context, l *lane, members []string, ended chan<- struct{}) {
	begun := time.Now()
	f.mu.Lock()
	all := !begun.Before(l.due)
	f.mu.Unlock()
	some := f.changedOf(members, all)
	if len(some) == 0 {
		f.rest(l, all, begun)
		return
	}
	f.mu.Lock()
	l.busy = true
	f.mu.Unlock()
	go func() {
		var under sync.WaitGroup
		places, failed := make(chan struct{}, window), &failures{}
		for _, one := range some {
			places <- struct{}{}
			under.Go(func() {
				defer func() { <-places }()
				f.readMember(ctx, one, failed)
			})
		}
		under.Wait()
		f.rest(l, all, begun)
		select {
		case ended <- struct{}{}:
		default:
		}
	}()
}

// changedOf are the members that may have changed since they were read. all: also those that cannot say.
func (f *feed[T]) changedOf(members []string, all bool) (some []lookup) {
	for _, member := range members {
		var version uint64
		says := false
		if f.version != nil {
			version, says = f.version(member)
		}
		f.mu.Lock()
		last := f.reads[member]
		current := last.done && !all
		if says { // what the version does not show is seen after refreshCeiling
			current = last.done && last.version == version && time.Since(last.at) < refreshCeiling
		}
		if !current {
			f.passes++
			last.pass = f.passes
			some = append(some, lookup{member, f.passes, version})
		}
		f.mu.Unlock()
	}
	return some
}

// readMember reads a member and merges what it has, unless it was read again meanwhile, of another owner, or has gone.
func (f *feed[T]) readMember(ctx context.Context, one lookup, failed *failures) {
	begun := time.Now()
	items, gap, blind := f.readSafely(ctx, one.member, failed)
	f.mu.Lock()
	defer f.mu.Unlock()
	read := f.reads[one.member]
	if read == nil || read.pass != one.pass || ctx.Err() != nil {
		return
	}
	f.merge(one.member, items, blind)
	read.done, read.version, read.at, read.gap = true, one.version, begun, nil
	if gap != "" {
		read.gap = &plimsollv1.UnreachableMember{Member: one.member, Reason: gap}
	}
}

// readSafely reads a member, or returns why it cannot be read. It takes a panic for that: nobody's call is there to end.
func (f *feed[T]) readSafely(ctx context.Context, member string, failed *failures) (items []T, gap string, blind bool) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("cannot read a member for a watch", "member", member, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			gap, blind = "it cannot be read; the hub's log has the details", true
		}
	}()
	return f.read(ctx, member, failed)
}

// rest lets a lane rest in proportion to the time that reading it took, and reports what is missing of its members.
func (f *feed[T]) rest(l *lane, all bool, begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, took := time.Now(), time.Since(begun)
	if all {
		l.due = now.Add(min(max(refreshFloor, 9*took), refreshCeiling))
	}
	l.busy, l.next = false, l.due
	if changed := now.Add(max(changeFloor, 3*took, f.wakes())); f.version != nil && changed.Before(l.next) {
		l.next = changed
	}
	f.announceState(f.revision)
}

// announceState wakes the watchers when something has changed since a revision, or when other members are missing, or when all have been
// read for the first time. The lock is held.
func (f *feed[T]) announceState(since uint64) {
	gaps, whole := []*plimsollv1.UnreachableMember{}, true
	for _, name := range f.names {
		read := f.reads[name]
		whole = whole && read.done
		if read.gap != nil {
			gaps = append(gaps, read.gap)
		}
	}
	same := slices.EqualFunc(f.gaps, gaps, func(a, b *plimsollv1.UnreachableMember) bool { return proto.Equal(a, b) })
	if f.revision == since && same && (f.whole || !whole) {
		return
	}
	f.gaps, f.whole = gaps, f.whole || whole
	f.wake()
}
