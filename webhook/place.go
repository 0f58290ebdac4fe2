package webhook

import (
	"context"
	"runtime/debug"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// A Placer decides where a pod goes; *spot.Engine is one. It is called concurrently, with a deadline on ctx. Once ctx is
// done nobody hears its answer, so it should reserve nothing any more.
type Placer interface {
	Place(ctx context.Context, member string, pod *spot.PodRequest) spot.Placement
}

// place asks the placer, and answers for it when it panics or is not done in time.
func (h *Handler) place(ctx context.Context, member string, pod *spot.PodRequest) spot.Placement {
	done := make(chan spot.Placement, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				h.Log.Error("placing a pod panicked; the pod was let through", "member", member, "panic", cause, "stack", string(debug.Stack()))
				done <- spot.Placement{Outcome: outcomeError}
			}
		}()
		done <- h.Placer.Place(ctx, member, pod)
	}()
	select {
	case placed := <-done:
		return placed
	case <-ctx.Done():
		return spot.Placement{Outcome: outcomeTimeout}
	}
}
