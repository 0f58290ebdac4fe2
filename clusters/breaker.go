package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// ErrBreakerOpen is wrapped by the errors of requests that were not sent because the member does not answer.
var ErrBreakerOpen = errors.New("the member does not answer, its breaker is open")

// requestFailuresToOpen is how many requests in a row may fail without any answer before a member is left alone until
// the next good probe.
const requestFailuresToOpen = 5

// breaker keeps requests from a member that does not answer. Requests and probes open it; only a good probe closes it.
type breaker struct {
	member   string
	onChange func(open bool) // called outside the lock, in no particular order

	mu       sync.Mutex
	failures int           // requests without an answer, in a row
	closed   chan struct{} // nil while the breaker is closed (requests flow); else closed when it closes again
}

// isOpen reports whether requests are refused now.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed != nil
}

// open starts refusing requests.
func (b *breaker) open() {
	b.mu.Lock()
	changed := b.closed == nil
	if changed {
		b.closed = make(chan struct{})
	}
	b.mu.Unlock()
	if changed {
		b.onChange(true)
	}
}

// close lets requests flow again, those that are held as well.
func (b *breaker) close() {
	b.mu.Lock()
	b.failures = 0
	changed := b.closed != nil
	if changed {
		close(b.closed)
		b.closed = nil
	}
	b.mu.Unlock()
	if changed {
		b.onChange(false)
	}
}

// observe counts the outcome of one request; answered reports whether the member gave any answer at all.
func (b *breaker) observe(answered bool) {
	b.mu.Lock()
	if answered {
		b.failures = 0
	} else {
		b.failures++
	}
	tooMany := b.failures >= requestFailuresToOpen
	b.mu.Unlock()
	if tooMany {
		b.open()
	}
}

// guard refuses requests while the breaker is open, and counts the outcomes of the others.
func (b *breaker) guard(next http.RoundTripper) http.RoundTripper {
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if b.isOpen() {
			return nil, fmt.Errorf("member %s: %w", b.member, ErrBreakerOpen)
		}
		resp, err := next.RoundTrip(req)
		if saysAboutMember(req, err) {
			b.observe(err == nil)
		}
		return resp, err
	})
}

// saysAboutMember reports whether the outcome of a request says something about the member. What the caller gave up, the budget or the
// fence stopped does not; nor does a write that was not answered in time, for an admission webhook of the member may be slow
// while its API server is not. Probes and reads find out about that.
func saysAboutMember(req *http.Request, err error) bool {
	if req.Context().Err() != nil || errors.Is(err, ErrNotOwner) || errors.Is(err, errBudget) {
		return false
	}
	return !isWrite(req) || !errors.As(err, new(*intake.TimeoutError))
}

// hold lets requests wait while the breaker is open, until it closes or their context ends. Informers sit behind it: they
// go on the moment the member is back, where failing would have made them back off for up to half a minute.
func (b *breaker) hold(next http.RoundTripper) http.RoundTripper {
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		for {
			b.mu.Lock()
			closed := b.closed
			b.mu.Unlock()
			if closed == nil {
				return next.RoundTrip(req)
			}
			select {
			case <-closed:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
	})
}
