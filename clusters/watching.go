package clusters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

const (
	// watchRetryMin and watchRetryMax are the times between two tries to open a watch.
	watchRetryMin = 100 * time.Millisecond
	watchRetryMax = time.Second
	// staleAfter is how long a watch may be closed before that is shown: each ends now and then, and is opened again.
	staleAfter = 5 * time.Second
)

// watchState is whether the watch of one part of a kind is open.
type watchState struct {
	changed func() // called when staleness begins or ends, outside the lock

	mu       sync.Mutex
	open     bool
	closedAt time.Time
	late     *time.Timer
}

func newWatchState(changed func()) *watchState {
	return &watchState{changed: changed, closedAt: time.Now()}
}

func (s *watchState) opened() {
	s.mu.Lock()
	stale := !s.open && time.Since(s.closedAt) >= staleAfter
	s.open = true
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Unlock()
	if stale {
		s.changed()
	}
}

func (s *watchState) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.open, s.closedAt = false, time.Now()
		s.late = time.AfterFunc(staleAfter, s.changed)
	}
}

// closedSince returns since when the watch is closed; the zero time: it is open.
func (s *watchState) closedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return time.Time{}
	}
	return s.closedAt
}

// watching carries the requests of one part of a kind's cache, and keeps its watch open: what fails for the moment, or ends
// before anything came, is tried again every second at most. The reflector above it would wait for up to a minute, and
// list everything again.
type watching struct {
	next  http.RoundTripper
	state *watchState

	mu   sync.Mutex
	last time.Time // when a watch was opened last
}

// RoundTrip sends a request; that of a watch is tried until it is answered for good.
func (w *watching) RoundTrip(req *http.Request) (*http.Response, error) {
	if !intake.IsStream(req) {
		return w.next.RoundTrip(req)
	}
	resp, err := w.openWatch(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		body := &watchBody{watching: w, req: req}
		body.begin(resp.Body)
		resp.Body = body
	}
	return resp, err
}

func (w *watching) openWatch(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	retry := wait.Backoff{Duration: watchRetryMin, Factor: 2, Jitter: 0.2, Steps: 10, Cap: watchRetryMax}
	sleep(ctx, w.untilNext())
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		resp, err := w.next.RoundTrip(req.Clone(ctx))
		if ctx.Err() != nil || !passing(resp, err) {
			w.note()
			return resp, err
		}
		pause := min(retry.Step(), watchRetryMax)
		if resp != nil {
			pause = max(pause, retryAfter(resp))
			_ = resp.Body.Close()
		}
		sleep(ctx, pause)
	}
}

// untilNext is how long the next watch has to wait after one that ended at once.
func (w *watching) untilNext() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return watchRetryMax - time.Since(w.last)
}

func (w *watching) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

// passing reports whether a failure is one that may be over in a moment.
func passing(resp *http.Response, err error) bool {
	if err != nil {
		return classify(err).state == StateUnreachable
	}
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError
}

// retryAfter is how long the member asks to be left alone, which the transport has bounded to maxRetryAfter.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// watchBody is the stream of a watch. As long as nothing has come, one that ended is replaced by another. It counts as open
// when something has come or it has lasted for a moment: some end as soon as they are opened.
type watchBody struct {
	io.ReadCloser // of the watch that is open now; only Read replaces it
	watching      *watching
	req           *http.Request

	mu     sync.Mutex // guards ReadCloser, over and ended
	over   bool
	events bool
	ended  bool // the stream that is here has
	lasted *time.Timer
}

// begin takes a stream that has just been opened; the lock is held, or nobody else has b yet.
func (b *watchBody) begin(stream io.ReadCloser) {
	b.ReadCloser, b.ended = stream, false
	b.lasted = time.AfterFunc(watchRetryMax, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.ended && !b.over && b.ReadCloser == stream {
			b.watching.state.opened()
		}
	})
}

func (b *watchBody) Read(p []byte) (int, error) {
	for {
		n, err := b.current().Read(p)
		if n > 0 && !b.events {
			b.events = true
			b.watching.state.opened()
		}
		if err == nil {
			return n, nil
		}
		b.end()
		if b.events || !b.reopen() {
			return n, streamEnd(err)
		}
	}
}

// streamEnd is how a reflector learns that a watch ended. A stream that was cut off ends like one that is over, and the
// reflector goes on from the last event; of an error it would list everything again, after up to a minute.
func streamEnd(err error) error {
	for _, known := range []error{io.EOF, intake.ErrTooLarge, intake.ErrUnreadable, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

// end notes that the stream has ended.
func (b *watchBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.lasted.Stop()
	b.watching.state.closed()
}

func (b *watchBody) current() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ReadCloser
}

// reopen replaces a stream that ended; false: there is no other.
func (b *watchBody) reopen() bool {
	if b.req.Context().Err() != nil {
		return false
	}
	resp, err := b.watching.openWatch(b.req)
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // the reflector lists, and learns why
		return false
	}
	_ = b.ReadCloser.Close()
	b.begin(resp.Body)
	return true
}

// Close ends the watch.
func (b *watchBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.lasted.Stop()
	b.watching.state.closed()
	return b.ReadCloser.Close()
}
