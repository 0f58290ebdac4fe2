package webhook

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// What the calls about pods that are being read may have in bytes, of one member and of all.
	maxPodBytesOfMember, maxPodBytes = 32 << 20, 128 << 20
	// The same for calls about WebApps, which take several times as much memory while they are answered.
	maxKindBytesOfMember, maxKindBytes = 24 << 20, 64 << 20
	// largeCall is how many bytes a call may have without counting as large; pods of real services have some kilobytes. Large
	// calls of a member, and those that do not say how large they are, have largeRate bytes a second, and largeBurst at once.
	largeCall, largeRate, largeBurst = 256 << 10, 4 << 20, 64 << 20
	// turnTimeout is how long a call about WebApps waits for others to end.
	turnTimeout = 5 * time.Second

	// Connections that are open, of one address and of all. Members' API servers keep a few each, and many members may come
	// through one address.
	maxConnectionsOfAddress, maxConnections = 1024, 4096
)

// expected is how many bytes a call is reckoned with before it has been read: what it says, or the most there may be.
func expected(length, limit int64) int64 {
	if length < 0 || length > limit {
		return limit
	}
	return length
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

// turns lets calls wait for each other by the bytes they have: those of one member before they hold up others.
type turns struct {
	all *semaphore.Weighted

	mu      sync.Mutex
	members map[string]*memberTurns // those with calls
}

type memberTurns struct {
	*semaphore.Weighted
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
		own = &memberTurns{Weighted: semaphore.NewWeighted(maxKindBytesOfMember)}
		t.members[member] = own
	}
	own.calls++
	return own
}

func (t *turns) leave(member string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.members[member]
	if own.calls--; own.calls == 0 {
		delete(t.members, member)
	}
}

// cappedListener closes connections that are too many.
type cappedListener struct {
	net.Listener
	ofAddress, ofAll int

	mu   sync.Mutex
	open map[string]int // by address
	all  int
}

func newCappedListener(listener net.Listener, ofAddress, ofAll int) *cappedListener {
	return &cappedListener{Listener: listener, ofAddress: ofAddress, ofAll: ofAll, open: map[string]int{}}
}

// Accept returns the next connection that is not too many.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err == nil && l.add(address) {
			return &cappedConn{Conn: conn, gone: sync.OnceFunc(func() { l.remove(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *cappedListener) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.ofAll || l.open[address] >= l.ofAddress {
		return false
	}
	l.all++
	l.open[address]++
	return true
}

func (l *cappedListener) remove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

type cappedConn struct {
	net.Conn
	gone func()
}

// Close closes the connection and makes room for another.
func (c *cappedConn) Close() error {
	defer c.gone()
	return c.Conn.Close()
}
