package main

import (
	"context"
	"time"
)

// pause waits for d. It returns ctx's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
