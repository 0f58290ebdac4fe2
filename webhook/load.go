package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// What the calls about pods that are being read may have in bytes, of one member and of all.
	maxPodBytesOfMember, maxPodBytes = 8 << 20, 64 << 20
	// The same for calls about kinds, which take several times as much memory while they are answered.
	maxKindBytesOfMember, maxKindBytes = 24 << 20, 64 << 20
	// largeCall is how many bytes a call may have without counting as large; pods of real services have some kilobytes. Large
	// calls of a member have largeRate bytes a second, and largeBurst at once.
	largeCall, largeRate, largeBurst = 256 << 10, 4 << 20, 8 << 20
	// The same for calls about kinds, which wait: an API server that lists sends all objects of a page at once.
	largeKindRate, largeKindBurst = 4 << 20, 16 << 20
	// turnTimeout is how long a call about a kind waits for others to end.
	turnTimeout = 5 * time.Second
)

// refusedLength is the HTTP status to refuse a call with before it is read, by the length that it says to have; 0: it is read.
// API servers always say it, and what says nothing would be reckoned with as the largest.
func refusedLength(length, limit int64) (status int) {
	switch {
	case length < 0:
		return http.StatusLengthRequired
	case length > limit:
		return http.StatusRequestEntityTooLarge
	}
	return 0
}

// reserve adds to what is being read and returns true, unless that is more than allowed.
func reserve(read *atomic.Int64, bytes, most int64) bool {
	if read.Add(bytes) <= most {
		return true
	}
	read.Add(-bytes)
	return false
}

// largeCalls bounds the bytes of large calls of one member, so that reading and refusing them leaves the processors to others.
// The zero value may be used, by several goroutines at once.
type largeCalls struct {
	once    sync.Once
	limiter *rate.Limiter
}

// allow takes account of a call, and refuses it when there were too many.
func (l *largeCalls) allow(bytes int64) bool {
	if bytes <= largeCall {
		return true
	}
	l.once.Do(func() { l.limiter = rate.NewLimiter(largeRate, largeBurst) })
	return l.limiter.AllowN(time.Now(), int(bytes))
}

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
	return &turns{all: semaphore.NewWeighted(maxKindBytes), members: map[string]*memberTurns{}}
}

// take waits for the turn of a call of a member. What it returns gives the turn back.
func (t *turns) take(ctx context.Context, member string, bytes int64) (giveBack func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	own := t.enter(member)
	if bytes > largeCall {
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
		return nil, fmt.Errorf("the members' calls take too long: %w", err)
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
		own = &memberTurns{Weighted: semaphore.NewWeighted(maxKindBytesOfMember), pace: rate.NewLimiter(largeKindRate, largeKindBurst)}
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
		if own.calls == 0 && own.pace.TokensAt(now) >= largeKindBurst {
			delete(t.members, member)
		}
	}
}
