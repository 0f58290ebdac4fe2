package intake

import (
	"context"
	"net/http"
	"sync"
)

const (
	// DecodesAtOnce is how many large answers and events of a member are read and decoded at a time, and listsAtOnce how many
	// lists of its caches.
	DecodesAtOnce = 1
	listsAtOnce   = 2
	// smallPart is how many bytes an answer or an event may have without waiting for others.
	smallPart = 256 << 10
)

// Decodes lets the large answers and events of one member wait for each other, so that the memory that they take while they
// are read is that of a few. It is safe for concurrent use; nil lets all pass.
type Decodes chan struct{}

// NewDecodes returns places for so many parts at once.
func NewDecodes(atOnce int) Decodes { return make(Decodes, atOnce) }

// turn is the place that one body has, if it is large. A body may be closed while it is read.
type turn struct {
	of  Decodes
	ctx context.Context

	mu          sync.Mutex
	taken, over bool
}

// take waits for a place, unless the body has one or so few bytes that it needs none.
func (t *turn) take(bytes int) error {
	if t.of == nil || bytes <= smallPart || t.has() {
		return nil
	}
	select {
	case t.of <- struct{}{}:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		<-t.of
		return http.ErrBodyReadAfterClose
	}
	t.taken = true
	return nil
}

func (t *turn) has() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// end gives the place back.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		<-t.of
		t.taken = false
	}
}

// close gives the place back for good.
func (t *turn) close() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.end()
}
