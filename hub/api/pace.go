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
	limiter, ok := p.callers.get(who.User)
	if !ok {
		limiter, _ = p.callers.add(who.User, rate.NewLimiter(p.limit, 2*int(p.limit)), paceFor)
	}
	if limiter.Allow() {
		return nil
	}
	p.callers.put(who.User, limiter, paceFor) // who is refused now stays known
	return apierror.WithReason(status.Newf(codes.ResourceExhausted, "user %q makes more than %d calls a second", who.User, int(p.limit)),
		reasonTooManyCalls, nil).Err()
}

// keepPace refuses calls above the caller's limit.
func (p *pace) keepPace(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := p.allow(identityOf(ctx)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}
