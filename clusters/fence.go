package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// ErrNotOwner is wrapped by the errors of writes that the fence stopped.
var ErrNotOwner = errors.New("write refused, this replica does not own the member now")

// FenceFunc is a [Fence] made of a function that says whether a write may begin; it counts nothing.
type FenceFunc func(member string) error

// BeginWrite calls f.
func (f FenceFunc) BeginWrite(member string) (time.Time, func(), error) {
	return time.Time{}, func() {}, f(member)
}

// fenced stops the writes to member that fence does not let pass, and ends those that pass limit after they asked, or when
// their permission ends. It stands as close to the wire as can be: what waits for the budget, waits in front of it.
func fenced(member string, fence Fence, limit time.Duration, next http.RoundTripper) http.RoundTripper {
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if !isWrite(req) {
			return next.RoundTrip(req)
		}
		asked := time.Now() // before the answer: a process can stand still between the two
		until, ended, err := fence.BeginWrite(member)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w: %w", member, ErrNotOwner, err)
		}
		if own := asked.Add(limit); until.IsZero() || own.Before(until) {
			until = own
		}
		return permit{member: member, until: until, limit: limit, ended: ended}.send(req, next)
	})
}

// permit is for one write that the fence let pass.
type permit struct {
	member string
	until  time.Time // when it must have ended
	limit  time.Duration
	ended  func()
}

// send sends the write if there is time left for it. The request says how long the server may take: what a client that was
// stopped can no longer cancel ends there as well.
func (p permit) send(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	left := timeLeft(time.Now(), p.until)
	if left <= 0 {
		p.ended()
		return nil, fmt.Errorf("member %s: %w: the time for it passed before it was sent", p.member, ErrNotOwner)
	}
	ctx, cancel := context.WithDeadlineCause(req.Context(), p.until, &intake.TimeoutError{Member: p.member, Limit: p.limit})
	sent := req.Clone(ctx)
	limitOnServer(sent, left)
	resp, err := next.RoundTrip(sent)
	if err != nil {
		err = intake.CauseOf(ctx, err)
		cancel()
		p.endUnanswered(err)
		return nil, err
	}
	p.ended()
	resp.Body = &releasingBody{ReadCloser: resp.Body, release: cancel}
	return resp, nil
}

// endUnanswered ends a write without an answer. One that may have been sent may still take effect for as long as the server
// was given.
func (p permit) endUnanswered(err error) {
	left := timeLeft(time.Now(), p.until)
	if NotSent(err) || left <= 0 {
		p.ended()
		return
	}
	time.AfterFunc(left, p.ended)
}

// timeLeft is the time from now to until, by the monotonic or the wall clock, whichever leaves less: the monotonic clock
// stands still while a machine is suspended, and the wall clock can be set back.
func timeLeft(now, until time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// limitOnServer asks the API server to give the request up after left, unless less was asked for already.
func limitOnServer(req *http.Request, left time.Duration) {
	query := req.URL.Query()
	if asked, err := time.ParseDuration(query.Get("timeout")); err == nil && asked > 0 && asked <= left {
		return
	}
	query.Set("timeout", max(left.Truncate(time.Millisecond), time.Millisecond).String())
	req.URL.RawQuery = query.Encode()
}

// releasingBody releases the request's context when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// isWrite reports whether req may change the member. Access reviews are questions, though they are POSTed, and so are the nonces of a
// proof: every replica has to know which cluster it is connected to.
func isWrite(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		return !isAccessReview(req.URL.Path)
	case http.MethodPatch:
		return !isIdentity(req.URL.Path)
	}
	return true
}

// isAccessReview reports whether path ends in apis/authorization.k8s.io/<version>/<something>reviews, or the namespaced
// form of it. The URL of a server may have a path of its own in front.
func isAccessReview(path string) bool {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	n := len(segments)
	switch {
	case n >= 4 && segments[n-4] == "apis" && segments[n-3] == "authorization.k8s.io":
	case n >= 6 && segments[n-6] == "apis" && segments[n-5] == "authorization.k8s.io" && segments[n-3] == "namespaces":
	default:
		return false
	}
	return strings.HasSuffix(segments[n-1], "reviews")
}

// NotSent reports whether err is of a request through a member's client that never went out: the fence, the breaker or the
// budget of requests stopped it, or there was no connection to send it on. The result of a write that failed without an
// answer for any other reason is not known.
func NotSent(err error) bool {
	var network *net.OpError
	return errors.Is(err, ErrNotOwner) || errors.Is(err, ErrBreakerOpen) || errors.Is(err, errBudget) ||
		(errors.As(err, &network) && network.Op == "dial")
}
