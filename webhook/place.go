package webhook

import (
	"context"
	"runtime/debug"
)

// A Placer decides where a pod goes.
type Placer interface {
	Place(ctx context.Context, member string, pod *review) placement
}

type placement struct {
	patch   []byte
	outcome string
}

// place asks the placer, and answers for it when it panics or is not done in time.
func (h *Handler) place(ctx context.Context, member string, call *review) placement {
	done := make(chan placement, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				h.Log.Error("placing a pod panicked; the pod was let through", "member", member, "panic", cause, "stack", string(debug.Stack()))
				done <- placement{outcome: outcomeError}
			}
		}()
		done <- h.Placer.Place(ctx, member, call)
	}()
	select {
	case placed := <-done:
		return placed
	case <-ctx.Done():
		return placement{outcome: outcomeTimeout}
	}
}
