package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// timeoutError says that a member did not answer in time.
type timeoutError struct {
	member string
	limit  time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("member %s: no complete answer within %s", e.member, e.limit)
}

// Timeout marks the error for net.Error.
func (e *timeoutError) Timeout() bool { return true }

// Temporary marks the error for net.Error.
func (e *timeoutError) Temporary() bool { return true }

// errTooLarge ends the reading of a response that would not fit into the hub's memory.
var errTooLarge = errors.New("response is larger than allowed")

// bounded ends requests that have not been answered, body included, within limit; of watches only the headers have to
// come in time. A body that exceeds maxBody bytes ends with an error.
func bounded(member string, limit time.Duration, maxBody int64, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(req.Context())
		timer := time.AfterFunc(limit, func() { cancel(&timeoutError{member, limit}) })
		release := func() {
			timer.Stop()
			cancel(nil)
		}
		resp, err := next.RoundTrip(req.WithContext(ctx))
		if err != nil {
			err = causeOf(ctx, err)
			release()
			return nil, err
		}
		body := &boundedBody{ReadCloser: resp.Body, ctx: ctx, release: release, left: maxBody}
		if isStream(req) {
			timer.Stop()
			body.left = -1
		}
		resp.Body = body
		return resp, nil
	})
}

// boundedOnceSent is bounded with a clock that starts when the request has been sent: what the hub's own queues and a new
// connection take does not count. Connections have limits of their own; all together may take patience.
func boundedOnceSent(member string, limit, patience time.Duration, maxBody int64, next http.RoundTripper) http.RoundTripper {
	return bounded(member, patience, maxBody, roundTripper(func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(req.Context())
		clock := &sentClock{start: func() *time.Timer {
			return time.AfterFunc(limit, func() { cancel(&timeoutError{member, limit}) })
		}}
		release := func() {
			clock.stop()
			cancel(nil)
		}
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { clock.begin() }})
		resp, err := next.RoundTrip(req.WithContext(traced))
		if err != nil {
			err = causeOf(ctx, err)
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

// causeOf replaces "context canceled" by the time-out that cancelled it.
func causeOf(ctx context.Context, err error) error {
	var timeout *timeoutError
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
			return n, errTooLarge
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// isStream tells whether the answer to req goes on for as long as both sides like.
func isStream(req *http.Request) bool {
	if req.Method != "" && req.Method != http.MethodGet {
		return false
	}
	query := req.URL.Query()
	return isTrue(query.Get("watch")) || isTrue(query.Get("follow"))
}

func isTrue(value string) bool { return value == "true" || value == "1" }
