package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"
)

// RoundTripper is an http.RoundTripper made of a function.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TimeoutError says that a member did not answer in time.
type TimeoutError struct {
	Member string
	Limit  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("member %s: no complete answer within %s", e.Member, e.Limit)
}

// Timeout marks the error for net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary marks the error for net.Error.
func (e *TimeoutError) Temporary() bool { return true }

// ErrTooLarge ends the reading of a response that would not fit into the hub's memory.
var ErrTooLarge = errors.New("response is larger than allowed")

// errWatchOver ends a watch from our side.
var errWatchOver = errors.New("the watch has lasted long enough")

const (
	// longestWatch ends watches for which no time-out was asked for, and watchGrace those that the member continues with after
	// the one that was: what is missing in a watch shows when the next one begins.
	longestWatch = 10 * time.Minute
	watchGrace   = 30 * time.Second

	// maxRefusal is how many bytes an answer may have that is an error: who asked reads all of it, and some keep it.
	maxRefusal = 256 << 10
)

// Bounded ends requests that have not been answered, body included, within limit; of watches the headers have to come in
// time, and they end when the time-out is over that they were asked for with. A body that exceeds maxBody bytes ends with an
// error, and one of an error sooner. The refusal of a watch is such a body, not a stream.
func Bounded(member string, limit time.Duration, maxBody int64, next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(req.Context())
		timer := time.AfterFunc(limit, func() { cancel(&TimeoutError{member, limit}) })
		release := func() {
			timer.Stop()
			cancel(nil)
		}
		resp, err := next.RoundTrip(req.WithContext(ctx))
		if err != nil {
			err = CauseOf(ctx, err)
			release()
			return nil, err
		}
		body := &boundedBody{ReadCloser: resp.Body, ctx: ctx, release: release, left: maxBody}
		if resp.StatusCode >= http.StatusMultipleChoices {
			body.left = min(maxBody, maxRefusal)
		}
		if streams(req, resp) {
			timer.Stop()
			body.left = -1
			body.release = follow(req, cancel)
		}
		resp.Body = body
		return resp, nil
	})
}

// BoundedOnceSent is bounded with a clock that starts when the request has been sent: what the hub's own queues and a new
// connection take does not count. Connections have limits of their own; all together may take patience.
func BoundedOnceSent(member string, limit, patience time.Duration, maxBody int64, next http.RoundTripper) http.RoundTripper {
	return Bounded(member, patience, maxBody, RoundTripper(func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(req.Context())
		clock := &sentClock{start: func() *time.Timer {
			return time.AfterFunc(limit, func() { cancel(&TimeoutError{member, limit}) })
		}}
		release := func() {
			clock.stop()
			cancel(nil)
		}
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { clock.begin() }})
		resp, err := next.RoundTrip(req.WithContext(traced))
		if err != nil {
			err = CauseOf(ctx, err)
			release()
			return nil, err
		}
		resp.Body = &boundedBody{ReadCloser: resp.Body, ctx: ctx, release: release, left: -1}
		return resp, nil
	}))
}

// sentClock is a timer that starts once, unless it was stopped before.
type sentClock struct {
	start func() *time.Timer

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (c *sentClock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil && !c.stopped {
		c.timer = c.start()
	}
}

func (c *sentClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// follow lets a stream go on, a watch for as long as it may; the function that it returns ends it.
func follow(req *http.Request, cancel context.CancelCauseFunc) (release func()) {
	if !isTrue(req.URL.Query().Get("watch")) {
		return func() { cancel(nil) }
	}
	limit := longestWatch
	if seconds, err := strconv.ParseUint(req.URL.Query().Get("timeoutSeconds"), 10, 31); err == nil && seconds > 0 {
		limit = time.Duration(seconds)*time.Second + watchGrace
	}
	timer := time.AfterFunc(limit, func() { cancel(errWatchOver) })
	return func() {
		timer.Stop()
		cancel(nil)
	}
}

// CauseOf replaces "context canceled" by the time-out that cancelled it.
func CauseOf(ctx context.Context, err error) error {
	var timeout *TimeoutError
	if errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return err
}

// boundedBody keeps the request's context alive until the body is closed.
type boundedBody struct {
	io.ReadCloser
	ctx     context.Context
	release func()
	left    int64 // bytes that may still be read; negative: no limit
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			b.left = 0
			return n, ErrTooLarge
		}
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(context.Cause(b.ctx), errWatchOver):
		err = io.EOF
	default:
		err = CauseOf(b.ctx, err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// IsStream reports whether the answer to req goes on for as long as both sides like.
func IsStream(req *http.Request) bool {
	if req.Method != "" && req.Method != http.MethodGet {
		return false
	}
	query := req.URL.Query()
	return isTrue(query.Get("watch")) || isTrue(query.Get("follow"))
}

// streams reports whether an answer is a stream. Clients read any other than 200 as a whole.
func streams(req *http.Request, resp *http.Response) bool {
	return IsStream(req) && resp.StatusCode == http.StatusOK
}

func isTrue(value string) bool { return value == "true" || value == "1" }
