package limits

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// Arrivals bounds the calls that have begun to arrive and of which nobody knows yet whose they are: because they are not complete, or
// because their tokens are being reviewed. Their headers and their messages take memory. Safe for concurrent use.
type Arrivals struct {
	places   *shares.Places
	patience time.Duration
}

// NewArrivals lets most calls arrive at a time, of all callers, and each for as long as patience.
func NewArrivals(most int, patience time.Duration) *Arrivals {
	return &Arrivals{places: shares.NewPlaces(most), patience: patience}
}

// Patience is how long a call may arrive.
func (a *Arrivals) Patience() time.Duration { return a.patience }

// Enter counts a call from somewhere until leave is called, which must be once. Its caller ends the reading of a call that takes longer than
// [Arrivals.Patience], and leaves when nothing more is read.
func (a *Arrivals) Enter(from string) (leave func(), err error) {
	if !a.places.Enter(from) {
		return nil, status.Error(codes.ResourceExhausted, "too many calls have begun and not arrived")
	}
	return func() { a.places.Leave(from) }, nil
}

// Begin counts a call from somewhere, until [Arrived] is called with the context that Begin returns, or ctx ends. If the call takes too
// long to arrive, the returned context ends; a server must then read no more of the call.
func (a *Arrivals) Begin(ctx context.Context, from string) (context.Context, error) {
	leave, err := a.Enter(from)
	if err != nil {
		return ctx, err
	}
	ctx, end := context.WithCancel(ctx)
	arriving := &arriving{Context: ctx, leave: leave}
	arriving.late = time.AfterFunc(a.patience, end)
	arriving.ended = context.AfterFunc(ctx, arriving.over)
	return arriving, nil
}

// Arrived ends the counting of the call of a context. It may be called again, and for calls that were not counted.
func Arrived(ctx context.Context) {
	if arriving, counted := ctx.Value(arrivingKey{}).(*arriving); counted {
		arriving.ended()
		arriving.over()
	}
}

type arrivingKey struct{}

// arriving is the context of a call that is counted.
type arriving struct {
	context.Context
	leave func()
	late  *time.Timer
	ended func() bool // does not wait for the end of the call any more
	left  atomic.Bool
}

// Value implements [context.Context].
func (a *arriving) Value(key any) any {
	if key == (arrivingKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// over gives the place back, once.
func (a *arriving) over() {
	a.late.Stop()
	if !a.left.Swap(true) {
		a.leave()
	}
}
