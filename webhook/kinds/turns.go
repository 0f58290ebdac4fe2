package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	// What the calls that are being answered may have in bytes, of one member and of all: they take several times as much memory.
	maxBytesOfMember, maxBytes = 24 << 20, 64 << 20
	// Large calls of a member have largeRate bytes a second, and largeBurst at once, and wait: an API server that lists sends all objects
	// of a page at once.
	largeRate, largeBurst = 4 << 20, 16 << 20
	// leastCall is what a call counts for at least, in bytes: its answer may be larger.
	leastCall = 512 << 10
	// Conversions of a member have objectRate objects a second, and objectBurst at once; an object of a small call counts as one for each
	// objectBytes. The smallest object costs 12 µs of a processor, without another version. A call that has begun goes on, with maxObjects
	// at most and unless all calls of its member together have maxObjectDebt in advance; the next ones wait for dueTimeout at most, or are
	// refused.
	objectRate, objectBurst, objectBytes = 1024, 10 * 1024, 4 << 10
	maxObjects, maxObjectDebt            = 20_000, 60_000
	dueTimeout                           = time.Second
	// turnTimeout is how long a call waits for others to end.
	turnTimeout = 5 * time.Second
)

// turns lets calls wait for each other by the bytes they have: those of one member before they hold up others. Large ones of a
// member wait for time to pass as well, so that a member leaves the processors to others.
type turns struct {
	all *semaphore.Weighted

	mu      sync.Mutex
	members map[string]*memberTurns // those with calls, or with large ones lately
}

type memberTurns struct {
	*semaphore.Weighted
	pace    *rate.Limiter // of large calls, in bytes
	objects *rate.Limiter // of conversions
	calls   int
}

func newTurns() *turns {
	return &turns{all: semaphore.NewWeighted(maxBytes), members: map[string]*memberTurns{}}
}

// errAllBusy says that a turn did not come because of what all members together ask.
var errAllBusy = errors.New("the members' calls take too long")

// errTooMany says that a member has more converted than the hub does for one.
var errTooMany = fmt.Errorf("the member has too many objects converted: the hub converts %d at once, and then %d a second", objectBurst, objectRate)

// take waits for the turn of a call of a member. What it returns gives the turn back.
func (t *turns) take(ctx context.Context, member string, bytes int64) (giveBack func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	own := t.enter(member)
	weight := max(bytes, leastCall)
	if bytes > calls.LargeCall {
		if err := own.pace.WaitN(ctx, int(bytes)); err != nil {
			t.leave(member)
			return nil, fmt.Errorf("the member has too many large calls: %w", err)
		}
	}
	if err := own.Acquire(ctx, weight); err != nil {
		t.leave(member)
		return nil, fmt.Errorf("the member's other calls take too long: %w", err)
	}
	if err := t.all.Acquire(ctx, weight); err != nil {
		own.Release(weight)
		t.leave(member)
		return nil, fmt.Errorf("%w: %w", errAllBusy, err)
	}
	return func() {
		t.all.Release(weight)
		own.Release(weight)
		t.leave(member)
	}, nil
}

// due waits for a moment until a member has waited for the objects that were converted for it.
func (t *turns) due(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeout(ctx, dueTimeout)
	defer cancel()
	own := t.enter(member)
	defer t.leave(member)
	if err := own.objects.WaitN(ctx, 1); err != nil {
		return fmt.Errorf("%w: %w", errTooMany, err)
	}
	return nil
}

// converts accounts for the object of a number in a call that has its turn, of so many bytes; paid: its bytes were accounted for with those
// of its call. An error: it must not be converted.
func (t *turns) converts(member string, number, bytes int, paid bool) error {
	if number >= maxObjects {
		return fmt.Errorf("a call may have at most %d objects", maxObjects)
	}
	t.mu.Lock()
	objects := t.members[member].objects
	t.mu.Unlock()
	cost := 1
	if !paid {
		cost += bytes / objectBytes
	}
	now := time.Now()
	if objects.TokensAt(now) < -maxObjectDebt {
		return errTooMany
	}
	objects.ReserveN(now, min(cost, objectBurst))
	return nil
}

func (t *turns) enter(member string) *memberTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.members[member]
	if own == nil {
		t.forget(time.Now())
		own = &memberTurns{Weighted: semaphore.NewWeighted(maxBytesOfMember), pace: rate.NewLimiter(largeRate, largeBurst), objects: rate.NewLimiter(objectRate, objectBurst)}
		t.members[member] = own
	}
	own.calls++
	return own
}

func (t *turns) leave(member string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.members[member]
	own.calls--
	t.forget(time.Now())
}

// forget drops members without calls whose large ones, and whose conversions, were long ago.
func (t *turns) forget(now time.Time) {
	for member, own := range t.members {
		if own.calls == 0 && own.pace.TokensAt(now) >= largeBurst && own.objects.TokensAt(now) >= objectBurst {
			delete(t.members, member)
		}
	}
}
