package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// pollInterval is how often we look whether something has come true.
	pollInterval = 100 * time.Millisecond
	// patience is how long anything may take before it counts as failed. It takes seconds on a machine with nothing else to do.
	patience = 90 * time.Second
	// tryTimeout is how long one look may take.
	tryTimeout = 10 * time.Second
)

// await asks again and again until there is no error, and returns the last one when patience or ctx ends.
func await(ctx context.Context, what string, condition func(context.Context) error) error {
	until := time.Now().Add(patience)
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for {
		err := try(ctx, condition)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case time.Now().After(until):
			return fmt.Errorf("wait for %s: not within %s: %w", what, patience, err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// try asks once. A question that hangs is no reason to wait for ever, and one that was cut short because the patience is
// over would hide the reason of those before it; so each has a time of its own.
func try(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return condition(ctx)
}
