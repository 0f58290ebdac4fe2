package webhook

import (
	"context"
	"runtime/debug"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// A Placer decides where a pod goes; *spot.Engine is one. It is called concurrently.
type Placer interface {
	// Reads reports whether it looks at the pod's label, or annotation, with that key; others are not given to it.
	Reads(key []byte) bool
	// Place is done when ctx is, which has a deadline: once it is done nobody hears the answer, so nothing should be reserved
	// any more. The pod is used again for another call as soon as Place returns.
	Place(ctx context.Context, member string, pod *spot.PodRequest) spot.Placement
}

// place asks the placer, and answers for it when it panics.
func (h *Handler) place(ctx context.Context, member string, pod *spot.PodRequest) (placed spot.Placement) {
	defer func() {
		if cause := recover(); cause != nil {
			h.options.Log.Error("placing a pod panicked; the pod was admitted without a decision", "member", member, "panic", cause, "stack", string(debug.Stack()))
			placed = spot.Placement{Outcome: outcomeError}
		}
	}()
	placed = h.options.Placer.Place(ctx, member, pod)
	if ctx.Err() != nil {
		return spot.Placement{Outcome: outcomeTimeout}
	}
	return placed
}
