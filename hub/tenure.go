package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// tenure is what a replica knows of the Lease: whether it holds it and until when, and who does if it does not.
//
// All times of its own holding are read before the request that renewed the Lease was sent, on this machine's monotonic
// clock; other replicas wait for the whole duration after they saw that renewal. So this replica's view of its tenure ends
// before anybody else's can begin, whatever the clocks say.
type tenure struct {
	identity string
	margin   time.Duration // before the end, in which no write starts any more
	now      func() time.Time

	mu          sync.Mutex
	stamped     time.Time // the renewal time that we last wrote, in whole seconds
	stampedAt   time.Time // when it was first sent
	deadline    time.Time // of our holding; zero: we do not hold the Lease
	transitions int       // of the record that we last wrote
	holder      string    // identity in the record last seen
	renewal     time.Time // in the record last seen, by the holder's clock
	until       time.Time // when the holder's tenure ends, as far as was seen
	changed     chan struct{}
	subscribers []func()
}

func newTenure(identity string, margin time.Duration) *tenure {
	return &tenure{identity: identity, margin: margin, now: time.Now, changed: make(chan struct{}, 1)}
}

// stamp returns the renewal time for a request that is sent now, and since when others may have seen it.
//
// client-go's elector takes a record for renewed when its text has changed, and the text has whole seconds. It also writes
// one renewal time into all requests of a try, so a renewal whose answer got lost looks like the one that follows it, and
// those who wait go on counting from the first. So each request gets a time of its own, one that others can see counts
// from the first of its second, and none goes back.
func (t *tenure) stamp() (renewal, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	second := now.Round(0).Truncate(time.Second)
	if second.Equal(t.stamped) {
		return t.stamped, t.stampedAt
	}
	if second.Before(t.stamped) { // the clock was set back
		second = t.stamped.Add(time.Second)
	}
	t.stamped, t.stampedAt = second, now
	return second, now
}

// renewed notes that the Lease was written with our name in it, in a way that others can have seen no earlier than sent.
func (t *tenure) renewed(sent time.Time, duration time.Duration, transitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadline, t.transitions = sent.Add(duration), transitions
	t.holder, t.until = t.identity, t.deadline
	t.signal()
}

// resign ends our holding at once, as far as we are concerned.
func (t *tenure) resign() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadline = time.Time{}
	t.signal()
}

// saw notes a record that was read. newest says that it was read after everything that we wrote; what a watch shows may be
// older than that.
func (t *tenure) saw(holder string, renewal time.Time, duration time.Duration, transitions int, newest bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.deadline.IsZero() && !newest && transitions < t.transitions {
		return // from before our time
	}
	if holder == t.identity {
		return // renewed knows better
	}
	t.deadline = time.Time{} // somebody has taken the Lease from us, by hand if it was too early
	if holder != t.holder || !renewal.Equal(t.renewal) {
		t.until = t.now().Add(duration)
	}
	t.holder, t.renewal = holder, renewal
	if holder == "" {
		t.until = time.Time{}
	}
	t.signal()
}

// signal wakes follow; the caller holds mu.
func (t *tenure) signal() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Owner implements [Ownership].
func (t *tenure) Owner(string) (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return addressOf(t.holder), t.until
}

// Mine implements [Ownership].
func (t *tenure) Mine(string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mineLocked()
}

func (t *tenure) mineLocked() (until time.Time, ok bool) {
	if t.deadline.IsZero() {
		return time.Time{}, false
	}
	last := t.deadline.Add(-t.margin)
	return last, t.now().Before(last)
}

// Subscribe implements [Ownership].
func (t *tenure) Subscribe(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, f)
}

// MayWrite implements clusters.Fence: a write that starts now and takes no longer than the margin ends before any other
// replica can begin.
func (t *tenure) MayWrite(string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.mineLocked(); ok {
		return nil
	}
	return errors.New(t.reasonLocked())
}

// reasonLocked says why this replica does not act.
func (t *tenure) reasonLocked() string {
	switch t.holder {
	case "":
		return "no replica holds the Lease yet"
	case t.identity:
		return "this replica could not renew its Lease in time"
	default:
		return fmt.Sprintf("replica %s at %s holds the Lease", podOf(t.holder), addressOf(t.holder))
	}
}

// standing is what subscribers of an Ownership hear about.
type standing struct {
	mine    bool
	address string
}

// follow tells the subscribers when what they can ask has changed, until ctx ends. Losing the Lease needs no event: time
// passes.
func (t *tenure) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var told standing
	for {
		now, left, subscribers := t.standing()
		if now != told {
			told = now
			for _, f := range subscribers {
				f()
			}
		}
		timer.Stop()
		if now.mine {
			timer.Reset(left)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-timer.C:
		}
	}
}

// standing returns what is true now and for how long it stays true by itself, if it is ours.
func (t *tenure) standing() (standing, time.Duration, []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.mineLocked()
	return standing{mine: ok, address: addressOf(t.holder)}, last.Sub(t.now()), t.subscribers
}
