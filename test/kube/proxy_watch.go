package kube

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// isWatch reports whether a request is a watch.
func isWatch(r *http.Request) bool {
	switch r.URL.Query().Get("watch") {
	case "", "0", "false":
		return strings.HasPrefix(r.URL.Path, "/api/v1/watch/")
	}
	return true
}

// chunkSize is how much of a watch is read at once.
const chunkSize = 32 << 10

// A chunk is a piece of a watch, with the time at which the API server said it.
type chunk struct {
	at   time.Time
	data []byte
	err  error // the end
}

// A lateBody hands out a watch's bytes when the faults allow it. It reads on meanwhile, so that the API server never
// notices a slow client.
type lateBody struct {
	inner   io.ReadCloser
	request *http.Request
	faults  *faults
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	pending []chunk
	arrived chan struct{} // has an element when pending may have grown
}

func newLateBody(inner io.ReadCloser, r *http.Request, f *faults) *lateBody {
	b := &lateBody{inner: inner, request: r, faults: f, closed: make(chan struct{}), arrived: make(chan struct{}, 1)}
	go b.fill()
	return b
}

// fill reads until the watch ends, which Close makes it do.
func (b *lateBody) fill() {
	for {
		buffer := make([]byte, chunkSize)
		n, err := b.inner.Read(buffer)
		b.mu.Lock()
		b.pending = append(b.pending, chunk{at: time.Now(), data: buffer[:n], err: err})
		b.mu.Unlock()
		select {
		case b.arrived <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Read waits until the oldest chunk is due.
func (b *lateBody) Read(into []byte) (int, error) {
	for {
		hangs, delay, changed := b.faults.now(b.request)
		at, any := b.oldest()
		var due <-chan time.Time
		if any && !hangs {
			left := time.Until(at.Add(delay))
			if left <= 0 {
				return b.take(into)
			}
			due = time.After(left)
		}
		select {
		case <-due:
		case <-b.arrived:
		case <-changed:
		case <-b.closed:
			return 0, http.ErrBodyReadAfterClose
		}
	}
}

// oldest is when the API server said what is to be handed out next.
func (b *lateBody) oldest() (at time.Time, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) == 0 {
		return time.Time{}, false
	}
	return b.pending[0].at, true
}

// take hands out what fits of the oldest chunk.
func (b *lateBody) take(into []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := &b.pending[0]
	n := copy(into, first.data)
	first.data = first.data[n:]
	if len(first.data) > 0 {
		return n, nil
	}
	if first.err != nil {
		return n, first.err // and again at the next call
	}
	b.pending = b.pending[1:]
	return n, nil
}

// Close ends the watch.
func (b *lateBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.inner.Close()
}
