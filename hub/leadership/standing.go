package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Owner returns the address in the identity of the holder, as [NewIdentity] writes it, and until when the holding is known to
// last. It is the same for all members.
func (t *term) Owner(string) (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return AddressOf(t.holder), t.until
}

// Mine reports whether this replica may act on a member now, and until when it may if nothing changes.
func (t *term) Mine(string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mineLocked()
}

func (t *term) mineLocked() (until time.Time, ok bool) {
	if t.deadline.IsZero() {
		return time.Time{}, false
	}
	end, now := t.deadline, t.now()
	if now.Before(t.notBefore) {
		end = t.resumes
	}
	last := end.Add(-t.margin)
	return last, !passed(now, last)
}

// passed reports whether at has come by the monotonic or by the wall clock.
func passed(now, at time.Time) bool {
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// Subscribe calls f, one call at a time, whenever an answer of Owner's address or of Mine has changed, and at each renewal. f
// must return soon. Subscribe before [Lease.Contend].
func (t *term) Subscribe(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, f)
}

// MineAny reports whether there may be a member on which this replica may act now.
func (t *term) MineAny() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.mineLocked()
	return ok
}

// MayWrite reports whether a write to the member may begin now; the error says why not.
func (t *term) MayWrite(member string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusalLocked(member)
}

// BeginWrite implements clusters.Fence: a write that begins now and takes no longer than the margin ends before any other
// replica can begin.
func (t *term) BeginWrite(member string) (until time.Time, ended func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusalLocked(member); err != nil {
		return time.Time{}, nil, err
	}
	ended, ok := t.writes.begin(member)
	if !ok {
		return time.Time{}, nil, errStopping
	}
	last, _ := t.mineLocked()
	return last.Add(t.margin), ended, nil
}

var errStopping = errors.New("this replica stops")

// refusalLocked says why this replica may not write to the member now, if it may not.
func (t *term) refusalLocked(member string) error {
	if t.writes.stopped(member) {
		return errStopping
	}
	if _, ok := t.mineLocked(); ok {
		return nil
	}
	switch t.holder {
	case "":
		return errors.New("no replica holds the Lease yet")
	case t.identity:
		if !t.deadline.IsZero() && t.now().Before(t.notBefore) {
			return errors.New("this replica holds the Lease, and waits until the term of the last holder has ended")
		}
		return errors.New("this replica could not renew its Lease in time")
	default:
		return fmt.Errorf("replica %s at %s holds the Lease", NameOf(t.holder), AddressOf(t.holder))
	}
}

// standing is what subscribers hear about.
type standing struct {
	mine    bool
	address string
}

// follow notifies the subscribers when what they can ask has changed, until ctx ends. Losing the Lease needs no event: time
// passes. They are also notified of each renewal: a renewal that comes late may follow a moment in which a subscriber was refused,
// and which nobody else has seen.
func (t *term) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last standing
	renewed := false
	for {
		now, changes, subscribers := t.standing()
		if now != last || renewed {
			last, renewed = now, false
			for _, f := range subscribers {
				f()
			}
		}
		timer.Stop()
		if changes > 0 {
			timer.Reset(changes)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
			renewed = true
		case <-timer.C:
		}
	}
}

// standing returns what is true now and when that changes by itself; 0: it does not.
func (t *term) standing() (now standing, changes time.Duration, subscribers []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.mineLocked()
	switch at := t.now(); {
	case ok:
		changes = last.Sub(at)
	case !t.deadline.IsZero() && at.Before(t.notBefore):
		changes = t.notBefore.Sub(at)
	}
	return standing{mine: ok, address: AddressOf(t.holder)}, changes, t.subscribers
}
