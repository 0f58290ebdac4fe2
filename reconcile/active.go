package reconcile

import (
	"context"
	"sync"
)

// active counts running reconciles and tells when there are none. Guarded by Runtime.mu.
type active struct {
	n       int
	waiting []chan struct{}
}

func (a *active) add() { a.n++ }

func (a *active) done() {
	if a.n--; a.n > 0 {
		return
	}
	for _, c := range a.waiting {
		close(c)
	}
	a.waiting = nil
}

// wait returns when none is active, or with ctx's error. mu guards a and is not held by the caller.
func (a *active) wait(ctx context.Context, mu *sync.Mutex) error {
	mu.Lock()
	if a.n == 0 {
		mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	a.waiting = append(a.waiting, c)
	mu.Unlock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
