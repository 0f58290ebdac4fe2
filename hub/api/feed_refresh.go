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

// run looks for changes until nobody has watched for a while.
func (f *feed[T]) run(stopping context.Context) {
	f.reads = map[string]memberRead{}
	var due time.Time // when all are read that cannot say whether they have changed
	for {
		begun := time.Now()
		all := !begun.Before(due)
		f.refreshSafely(stopping, all)
		took := time.Since(begun)
		if all {
			due = time.Now().Add(min(max(refreshFloor, 9*took), refreshCeiling))
		}
		pause := time.Until(due)
		if f.version != nil {
			pause = min(pause, max(changeFloor, 3*took, f.wakes()))
		}
		select {
		case <-stopping.Done():
			return
		case <-time.After(pause):
		}
		f.mu.Lock()
		if f.watchers == 0 && time.Since(f.idle) > feedLinger {
			f.running = false
			f.forget()
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
	}
}

// wakes is how long watchers are let sleep so that waking them costs no more than its share: what changes meanwhile they get at once.
func (f *feed[T]) wakes() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.watchers) * wakeShare * wakeCost
}

// current reports whether a member has not changed since it was read, and with which version it is read now.
func (f *feed[T]) current(member string, all bool) (version uint64, is bool) {
	if f.version == nil {
		return 0, !all
	}
	version, known := f.version(member)
	if !known {
		return 0, !all
	}
	last := f.reads[member]
	return version, last.version == version && time.Since(last.at) < refreshCeiling // what the version does not tell shows then
}

// refreshSafely goes on after a panic: nobody's call is there to end.
func (f *feed[T]) refreshSafely(ctx context.Context, all bool) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("members could not be read for watches", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	f.refresh(ctx, all)
}

// refresh reads the members that may have changed, and tells what has changed of each as soon as it is read. all: also those that
// cannot say.
func (f *feed[T]) refresh(ctx context.Context, all bool) {
	names := f.members()
	slices.Sort(names)
	reads := make([]memberRead, len(names))
	var under sync.WaitGroup
	places := make(chan struct{}, window)
	for i, name := range names {
		version, is := f.current(name, all)
		if last, read := f.reads[name]; is && read {
			reads[i] = last
			continue
		}
		reads[i] = memberRead{version: version, at: time.Now()}
		places <- struct{}{}
		under.Go(func() {
			defer func() { <-places }()
			if gap := f.readSafely(ctx, name); gap != "" {
				reads[i].gap = &plimsollv1.UnreachableMember{Member: name, Reason: gap}
			}
		})
	}
	under.Wait()
	if ctx.Err() != nil {
		return
	}
	clear(f.reads)
	gaps := []*plimsollv1.UnreachableMember{}
	for i, name := range names {
		f.reads[name] = reads[i]
		if reads[i].gap != nil {
			gaps = append(gaps, reads[i].gap)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.revision
	f.dropMembers(names)
	same := slices.EqualFunc(f.gaps, gaps, func(a, b *plimsollv1.UnreachableMember) bool { return proto.Equal(a, b) })
	if f.gaps = gaps; f.revision != before || !same || !f.whole {
		f.whole = true
		f.tell()
	}
}

// readSafely reads a member and merges what it has, or returns why it cannot be read. It takes a panic for that: nobody's call is there
// to end.
func (f *feed[T]) readSafely(ctx context.Context, member string) (gap string) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("cannot read a member for a watch", "member", member, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			gap = "it cannot be read; the hub's log has the details"
		}
	}()
	items, gap, blind := f.read(ctx, member)
	f.merge(member, items, blind)
	return gap
}
