package api

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
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

// ask has a member say what it contributes to a list, at most limit items.
type ask[T any] func(ctx context.Context, member string, limit int) (part[T], error)

// gather asks one window of members after the other until size items are there, and keeps their order. here says which members this
// replica answers for itself. Where the budget of filters ends behind some members, the page ends behind these.
func gather[T any](ctx context.Context, from *candidates, size int, here func(member string) bool, ask ask[T]) (*page[T], error) {
	p, looked := &page[T]{asOf: time.Now()}, ""
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
		parts, err := askEnough(ctx, members, size-len(p.items), here, ask)
		if err != nil && apierror.ReasonOf(err) != limits.FilterBudget {
			return nil, err
		}
		for i := range parts {
			if full := p.add(members[i], &parts[i], size); full {
				p.more = p.more || i < len(members)-1 || from.left()
				return p, nil
			}
			looked = members[i]
		}
		switch {
		case err != nil && looked == "":
			return nil, err
		case err != nil:
			p.more, p.skipped = true, looked
			return p, nil
		}
	}
	return p, nil
}

// add appends what a member contributed, and reports whether the page ends with it.
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
func askAll[T any](ctx context.Context, members []string, limit int, ask ask[T]) ([]part[T], error) {
	a := newAnswers(ctx, members, limit, ask)
	for i := range members {
		a.under.Go(func() { a.ask(i) })
	}
	return a.wait()
}

// askEnough asks the members of other replicas all at once, because those wait, and the members of this one in their order until size
// items are there: the parts behind these are empty, and nobody has paid for them.
func askEnough[T any](ctx context.Context, members []string, size int, here func(member string) bool, ask ask[T]) ([]part[T], error) {
	var found atomic.Int64
	return askInTurn(ctx, members, size, here, ask, func(p *part[T]) bool {
		return found.Add(int64(len(p.items))) >= int64(size) || p.more // a page ends there
	})
}

// askInTurn asks the members of other replicas all at once, and those of this one in their order, as many at a time as there are processors, until
// one of them is enough or a member before them has failed.
func askInTurn[T any](ctx context.Context, members []string, limit int, here func(member string) bool, ask ask[T], enough func(*part[T]) bool) ([]part[T], error) {
	a := newAnswers(ctx, members, limit, ask)
	var local []int
	for i, member := range members {
		if here(member) {
			local = append(local, i)
			continue
		}
		a.under.Go(func() { a.ask(i) })
	}
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(local)) {
		a.under.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(local) && a.needs(local[n]); n = int(next.Add(1)) - 1 {
				if a.ask(local[n]); enough(&a.parts[local[n]]) {
					a.endBehind(local[n])
				}
			}
		})
	}
	return a.wait()
}

// answers are the parts of some members of a list in the making.
type answers[T any] struct {
	ctx     context.Context // of the call
	members []string
	limit   int
	of      ask[T]

	parts  []part[T]
	failed []error
	under  sync.WaitGroup

	mu  sync.Mutex
	end int // what is behind this member is not needed
}

func newAnswers[T any](ctx context.Context, members []string, limit int, of ask[T]) *answers[T] {
	return &answers[T]{ctx: ctx, members: members, limit: limit, of: of, parts: make([]part[T], len(members)), failed: make([]error, len(members)), end: len(members)}
}

// needs reports whether the answer of a member is needed, as far as is known.
func (a *answers[T]) needs(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return i <= a.end
}

// endBehind says that nothing behind a member is needed.
func (a *answers[T]) endBehind(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end = min(a.end, i)
}

// ask asks one member, and ends behind it where that fails. Calls for different members may overlap.
func (a *answers[T]) ask(i int) {
	defer func() {
		if cause := recover(); cause != nil {
			a.failed[i] = fmt.Errorf("ask about member %q: panic: %v\n%s", a.members[i], cause, debug.Stack())
		}
		if a.failed[i] != nil {
			a.endBehind(i)
		}
	}()
	a.parts[i], a.failed[i] = a.of(a.ctx, a.members[i], a.limit)
}

// wait returns the parts when all who were asked have answered: those before the first error, and that.
func (a *answers[T]) wait() ([]part[T], error) {
	a.under.Wait()
	for i, err := range a.failed {
		if err != nil {
			return a.parts[:i], err
		}
	}
	return a.parts, nil
}
