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
	ofCall bool // the bodies of a call have it, one after the other

	mu          sync.Mutex
	of          Decodes
	ctx         context.Context // of the request
	taken, over bool
}

// callKey finds the turn of a call in its context.
type callKey struct{}

// Call returns the context of one call of a client, which decodes an answer after it has closed its body: if the answer is large, it has its
// turn until done is called. The call must make one request at a time and close each answer before the next, and must not watch.
func Call(ctx context.Context) (call context.Context, done func()) {
	t := &turn{ofCall: true}
	return context.WithValue(ctx, callKey{}, t), t.close
}

// turnOf returns the turn of the answer to a request. What the same call asked for before is decoded, or nobody wants it any more.
func (d Decodes) turnOf(ctx context.Context) *turn {
	t, ok := ctx.Value(callKey{}).(*turn)
	if !ok {
		return &turn{of: d, ctx: ctx}
	}
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.ctx = d, ctx
	return t
}

// take waits for a place, unless the body has one or so few bytes that it needs none.
func (t *turn) take(bytes int) error {
	of, ctx, has := t.state()
	if of == nil || bytes <= smallPart || has {
		return nil
	}
	select {
	case of <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		<-of
		return http.ErrBodyReadAfterClose
	}
	t.taken = true
	return nil
}

func (t *turn) state() (of Decodes, ctx context.Context, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of, t.ctx, t.taken
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

// bodyClosed ends the turn of a body that is closed, unless its call goes on.
func (t *turn) bodyClosed() {
	if !t.ofCall {
		t.close()
	}
}

// close gives the place back for good.
func (t *turn) close() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.end()
}
