package kube

import (
	"net/http"
	"sync"
	"time"
)

// faults are what a proxy is to do wrong. Whoever waits on them is woken by every change.
type faults struct {
	mu      sync.Mutex
	delay   time.Duration
	match   func(*http.Request) bool // nil: nothing hangs
	changed chan struct{}            // closed and replaced by each change
}

func newFaults() *faults { return &faults{changed: make(chan struct{})} }

func (f *faults) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *faults) delayWatches(d time.Duration) { f.change(func() { f.delay = d }) }

func (f *faults) hang(match func(*http.Request) bool) { f.change(func() { f.match = match }) }

func (f *faults) clear() { f.change(func() { f.delay, f.match = 0, nil }) }

// now says whether the request hangs, how late watches are, and what to wait on for either to change.
func (f *faults) now(r *http.Request) (hangs bool, delay time.Duration, changed <-chan struct{}) {
	f.mu.Lock()
	match, delay, changed := f.match, f.delay, f.changed
	f.mu.Unlock()
	return match != nil && match(r), delay, changed
}

// hold keeps requests that hang from the next handler, until they no longer do or nobody waits for them.
func (f *faults) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			hangs, _, changed := f.now(r)
			if !hangs {
				next.ServeHTTP(w, r)
				return
			}
			select {
			case <-changed:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler) // no answer, not an empty one
			}
		}
	})
}
