package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// part is what one member contributes to a list.
type part[T any] struct {
	items []T
	more  bool // there may be more items
	blind bool // nobody could be asked, so no items say nothing
	// reached is how far was looked, where more is behind that; nil: to the last item.
	reached lists.Position
	asOf    time.Time // the oldest moment that items show; zero: now
	gap     string    // why items are missing or may be old; "": they are neither
}

// page is a list's answer in the making.
type page[T any] struct {
	items       []T
	more        bool           // there may be another page, behind the last item or what follows
	reached     lists.Position // how far was looked, when that is behind the last item
	skipped     string         // the last member that was looked at, when the page ends behind it
	asOf        time.Time
	unreachable []*plimsollv1.UnreachableMember
}

// gather asks one window of members after the other until size items are there, and keeps their order.
func gather[T any](ctx context.Context, from *candidates, size int, ask func(ctx context.Context, member string, limit int) (part[T], error)) (*page[T], error) {
	p := &page[T]{asOf: time.Now()}
	for len(p.items) < size {
		members, err := from.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(members) == 0 {
			if p.more = from.left(); p.more {
				p.skipped = from.last
			}
			return p, nil
		}
		parts, err := askAll(ctx, members, size-len(p.items), ask)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			if full := p.add(members[i], &parts[i], size); full {
				p.more = p.more || i < len(parts)-1 || from.left()
				return p, nil
			}
		}
	}
	return p, nil
}

// add appends what a member contributed, and tells whether the page ends with it.
func (p *page[T]) add(member string, from *part[T], size int) bool {
	room := size - len(p.items)
	p.more = from.more || len(from.items) > room
	p.items = append(p.items, from.items[:min(room, len(from.items))]...)
	if p.reached = nil; len(from.items) <= room {
		p.reached = from.reached
	}
	p.note(member, from)
	return len(p.items) == size || p.more
}

// note takes over how old a part is, and what it lacks.
func (p *page[T]) note(member string, from *part[T]) {
	if !from.asOf.IsZero() && from.asOf.Before(p.asOf) {
		p.asOf = from.asOf
	}
	if from.gap != "" {
		p.unreachable = append(p.unreachable, &plimsollv1.UnreachableMember{Member: member, Reason: from.gap})
	}
}

// moment is as_of.
func (p *page[T]) moment() *timestamppb.Timestamp { return timestamppb.New(p.asOf) }

// askAll asks all members at once. A member that fails costs no other its answer: ask says so in the part. An error of ask
// ends the list.
func askAll[T any](ctx context.Context, members []string, limit int, ask func(context.Context, string, int) (part[T], error)) ([]part[T], error) {
	parts, failed := make([]part[T], len(members)), make([]error, len(members))
	var all sync.WaitGroup
	for i, member := range members {
		all.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					failed[i] = fmt.Errorf("ask about member %q: panic: %v\n%s", member, cause, debug.Stack())
				}
			}()
			parts[i], failed[i] = ask(ctx, member, limit)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}
