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

// take waits for the turn of a call of a member. What it returns gives the turn back.
func (t *turns) take(ctx context.Context, member string, bytes int64) (giveBack func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	own := t.enter(member)
	if bytes > calls.LargeCall {
		if err := own.pace.WaitN(ctx, int(bytes)); err != nil {
			t.leave(member)
			return nil, fmt.Errorf("the member has too many large calls: %w", err)
		}
	}
	if err := own.Acquire(ctx, bytes); err != nil {
		t.leave(member)
		return nil, fmt.Errorf("the member's other calls take too long: %w", err)
	}
	if err := t.all.Acquire(ctx, bytes); err != nil {
		own.Release(bytes)
		t.leave(member)
		return nil, fmt.Errorf("%w: %w", errAllBusy, err)
	}
	return func() {
		t.all.Release(bytes)
		own.Release(bytes)
		t.leave(member)
	}, nil
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
