package fleet

import (
	"context"
	"time"
)

// Every calls do at a pace until ctx ends, one call at a time. A call that takes longer than the pace delays the next one.
func Every(ctx context.Context, pace time.Duration, do func()) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ctx.Err() == nil { // both may be true
				do()
			}
		}
	}
}

// EveryWithin is [Every] for what asks others: each call has a limit of time, which a call that has begun when ctx ends keeps.
func EveryWithin(ctx context.Context, pace, limit time.Duration, do func(context.Context)) {
	Every(ctx, pace, func() {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		do(asking)
	})
}
