package placing

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

const (
	// refusalHolds is how long a member that forbids a write is left alone, before it is asked whether it still does.
	refusalHolds = 30 * time.Second
	// failureHolds bounds how long one is left alone of which a write has failed. It begins with a second, and doubles.
	failureHolds = 15 * time.Second
)

// refusal is the result of the last writes to a member, where they failed. The zero value: they did not.
type refusal struct {
	why   string
	since time.Time // when the first of them failed
	tried time.Time // when the last did
	times int
	// forbidden says that the member does not allow it: it is of no use to try again soon. Anything else may pass.
	forbidden bool
}

// again is the refusal after one more write has failed.
func (r refusal) again(err error, now time.Time) refusal {
	if r.times == 0 {
		r.since = now
	}
	r.why, r.tried, r.times, r.forbidden = plain.Text(err.Error(), 256), now, r.times+1, forbidden(err)
	return r
}

// forbidden reports whether a write fails however often it is tried.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// stopped reports whether a write failed only because this replica is ending, or because somebody else has written.
func stopped(ctx context.Context, err error) bool {
	return apierrors.IsConflict(err) || errors.Is(context.Cause(ctx), context.Canceled)
}

// due reports whether it is time to try again.
func (r refusal) due(now time.Time) bool {
	holds := refusalHolds
	if !r.forbidden {
		holds = min(time.Second<<min(max(r.times-1, 0), 10), failureHolds)
	}
	return r.times == 0 || now.Sub(r.tried) >= holds
}

// out is why the member is not to be counted on; empty: it is. Writes that merely fail have the grace, as a member has that is
// out of reach.
func (r refusal) out(grace time.Duration, now time.Time) string {
	if r.times == 0 || (!r.forbidden && now.Sub(r.since) < grace) {
		return ""
	}
	return r.why
}
