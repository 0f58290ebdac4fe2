package limits

import (
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

const (
	// paceFor is how long a caller who is quiet is remembered: by then the limit is full again.
	paceFor = 10 * time.Second
	// allApart is how many times the limit of one all callers have who share an identity, and are distinguished by their connections.
	allApart = 10
	// maxPaced bounds memory.
	maxPaced = 8192
	// reasonTooManyCalls is that of calls above a caller's limit.
	reasonTooManyCalls = apierror.TooManyCalls
)

// Pace limits how many calls each caller makes. Safe for concurrent use.
type Pace struct {
	limit   rate.Limit
	callers *cache.Cache[string, *rate.Limiter]
}

// NewPace allows so many calls a second, and twice as many at once; negative: any number.
func NewPace(perSecond int) *Pace {
	limit := rate.Limit(perSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &Pace{limit: limit, callers: cache.New[string, *rate.Limiter](maxPaced)}
}

// Allow is RESOURCE_EXHAUSTED when a caller makes too many calls.
func (p *Pace) Allow(who auth.Identity) error {
	if p.limit == rate.Inf {
		return nil
	}
	if p.bucket(who.Share(), 1).Allow() && (who.Connection == "" || p.bucket(who.User, allApart).Allow()) {
		return nil
	}
	return apierror.WithReason(status.Newf(codes.ResourceExhausted, "user %q makes more than %d calls a second", who.User, int(p.limit)),
		reasonTooManyCalls, nil).Err()
}

// bucket is the limit of a caller, with the state that it has since they called last; of several times the rate.
func (p *Pace) bucket(whose string, times int) *rate.Limiter {
	limiter, ok := p.callers.Keep(whose, paceFor)
	if !ok {
		limit := p.limit * rate.Limit(times)
		limiter, _ = p.callers.Add(whose, rate.NewLimiter(limit, 2*int(limit)), paceFor)
	}
	return limiter
}
