package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is how often we look whether something has come true.
const pollInterval = 50 * time.Millisecond

// Await polls until the condition holds. A failure to find out is tried again until ctx ends, and then part of the error.
func Await(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		held, err := condition(ctx)
		if ctx.Err() == nil || err == nil { // what was cut off by the end of the wait says nothing
			last = err
		}
		return held && err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	return fmt.Errorf("wait for %s: %w", what, err)
}
