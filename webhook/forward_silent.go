package webhook

import (
	"errors"
	"sync"
	"time"
)

const (
	// pingOwner is the time without an answer after which the connection to an owner is pinged, and that for the ping's answer.
	pingOwner = time.Second
	// askSilentEvery is how often an owner that does not answer is asked by one admission; the others continue without it.
	askSilentEvery = time.Second
)

var errSilentOwner = errors.New("the owner did not answer a moment ago")

// silentOwners are the owners that let an admission run out of time: a replica that is dead or frozen, whose Lease has not
// ended yet. It costs one admission a second its time, and not all of them. Safe for concurrent use; the zero value is ready.
type silentOwners struct {
	mu   sync.Mutex
	next map[string]time.Time // by address: when it may be asked again
}

// mayAsk reports whether a call may be forwarded. It lets one try pass at a time.
func (s *silentOwners) mayAsk(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, silent := s.next[owner]
	if !silent {
		return true
	}
	now := time.Now()
	if now.Before(next) {
		return false
	}
	s.next[owner] = now.Add(askSilentEvery)
	return true
}

// asked notes how a call went. Only one that ran out of time says that the owner is silent; other failures come at once.
func (s *silentOwners) asked(owner string, err error) {
	var timeout interface{ Timeout() bool }
	silent := errors.As(err, &timeout) && timeout.Timeout()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !silent {
		delete(s.next, owner)
		return
	}
	now := time.Now()
	for other, next := range s.next { // there are few, and addresses of former owners must not pile up
		if now.Sub(next) > time.Minute {
			delete(s.next, other)
		}
	}
	if s.next == nil {
		s.next = map[string]time.Time{}
	}
	s.next[owner] = now.Add(askSilentEvery)
}
