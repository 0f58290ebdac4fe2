package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pollInterval is how often we look whether something has come true.
	pollInterval = 100 * time.Millisecond
	// patience is how long anything may take before it counts as failed. It takes seconds on a machine with nothing else to do.
	patience = 90 * time.Second
)

// final is an error that no waiting mends.
type final struct{ error }

// Unwrap implements the errors package's way to look inside.
func (f final) Unwrap() error { return f.error }

// await asks again and again until there is no error, and returns the last one when patience or ctx ends.
func await(ctx context.Context, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	var last error
	for {
		err := condition(ctx)
		var end final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &end):
			return fmt.Errorf("wait for %s: %w", what, end.error)
		case ctx.Err() == nil: // else it says no more than that the time is up
			last = err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			err := fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
			if last != nil {
				err = fmt.Errorf("%w: %w", err, last)
			}
			return err
		}
	}
}
