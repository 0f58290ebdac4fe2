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
	// leastObject is what an object that is converted costs at least in bytes of largeRate: about 30 µs of a processor. A member may have
	// converted objects for maxDebt that it has not waited for, then it is refused.
	leastObject, maxDebt = 4 << 10, 2 * largeBurst
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
	pace  *rate.Limiter
	calls int
}

func newTurns() *turns {
	return &turns{all: semaphore.NewWeighted(maxBytes), members: map[string]*memberTurns{}}
}

// errAllBusy says that a turn did not come because of what all members together ask.
var errAllBusy = errors.New("the members' calls take too long")

// errTooMany says that a member has more converted than the hub does for one.
var errTooMany = fmt.Errorf("the member has too many objects converted: the hub converts %d at once, and then %d a second", (largeBurst+maxDebt)/leastObject, largeRate/leastObject)

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

// due waits until a member has waited for the objects that were converted for it. A small call waits for nothing else of that rate.
func (t *turns) due(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	own := t.enter(member)
	defer t.leave(member)
	if err := own.pace.WaitN(ctx, 1); err != nil {
		return fmt.Errorf("the member had too many objects converted: %w", err)
	}
	return nil
}

// converts accounts for an object of so many bytes that is about to be converted; paid: its bytes were accounted for with those of its
// call. An error: the member has too many objects converted.
func (t *turns) converts(member string, bytes int, paid bool) error {
	cost := max(bytes, leastObject)
	if paid {
		cost -= bytes
	}
	own := t.enter(member)
	defer t.leave(member)
	now := time.Now()
	if own.pace.TokensAt(now) < -maxDebt {
		return errTooMany
	}
	own.pace.ReserveN(now, cost)
	return nil
}

func (t *turns) enter(member string) *memberTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.members[member]
	if own == nil {
		t.forget(time.Now())
		own = &memberTurns{Weighted: semaphore.NewWeighted(maxBytesOfMember), pace: rate.NewLimiter(largeRate, largeBurst)}
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

// forget drops members without calls whose large ones were long ago.
func (t *turns) forget(now time.Time) {
	for member, own := range t.members {
		if own.calls == 0 && own.pace.TokensAt(now) >= largeBurst {
			delete(t.members, member)
		}
	}
}
