package api

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

const (
	// paceFor is how long a caller who is quiet is remembered: by then the limit is full again.
	paceFor = 10 * time.Second
	// allApart is how many times the limit of one all callers have who share an identity, and are told apart by their connections.
	allApart = 10
	// maxPaced bounds memory.
	maxPaced = 8192
	// reasonTooManyCalls is that of calls above a caller's limit.
	reasonTooManyCalls = apierror.TooManyCalls
)

// pace limits how many calls each caller makes. Safe for concurrent use.
type pace struct {
	limit   rate.Limit
	callers *cache[string, *rate.Limiter]
}

// newPace allows so many calls a second, and twice as many at once; negative: any number.
func newPace(perSecond int) *pace {
	limit := rate.Limit(perSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &pace{limit: limit, callers: newCache[string, *rate.Limiter](maxPaced)}
}

// allow is RESOURCE_EXHAUSTED when a caller makes too many calls.
func (p *pace) allow(who Identity) error {
	if p.limit == rate.Inf {
		return nil
	}
	if p.bucket(who.share(), 1).Allow() && (who.Connection == "" || p.bucket(who.User, allApart).Allow()) {
		return nil
	}
	return apierror.WithReason(status.Newf(codes.ResourceExhausted, "user %q makes more than %d calls a second", who.User, int(p.limit)),
		reasonTooManyCalls, nil).Err()
}

// bucket is the limit of a caller, with the state that it has since they called last; of several times the rate.
func (p *pace) bucket(whose string, times int) *rate.Limiter {
	limiter, ok := p.callers.keep(whose, paceFor)
	if !ok {
		limit := p.limit * rate.Limit(times)
		limiter, _ = p.callers.add(whose, rate.NewLimiter(limit, 2*int(limit)), paceFor)
	}
	return limiter
}

// keepPace refuses calls above the caller's limit.
func (p *pace) keepPace(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := p.allow(identityOf(ctx)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}
