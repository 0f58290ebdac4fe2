package shortage

import (
	"sync"
	"time"
)

// maxTried is how many replicas of a member and a capacity type are remembered that were tried there: names of replicas are a tenant's. Of
// those beyond, another try costs a pod its place sooner than it should.
const maxTried = 1 << 16

// tried remembers replicas that were moved and found no room although a probe had, and when. It is safe for concurrent use, also
// where the [Tracker] is not, because calls about new pods read it.
type tried struct {
	mu sync.RWMutex
	at map[string]time.Time
}

// of returns when a replica was tried; zero: it was not.
func (t *tried) of(replica string) time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.at[replica]
}

func (t *tried) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.at)
}

// add takes in that a replica was tried, unless it was again since.
func (t *tried) add(replica string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.at[replica]
	if at.After(last) && (known || len(t.at) < maxTried) {
		t.at[replica] = at
	}
}

// forget drops what is older than a time.
func (t *tried) forget(before time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for replica, at := range t.at {
		if at.Before(before) {
			delete(t.at, replica)
		}
	}
}
