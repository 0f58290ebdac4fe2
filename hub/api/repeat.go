package api

import (
	"context"
	"sync"
	"time"
)

// repeat calls check d from now, and d after each time that it returned true, until ctx ends or stop is called, which may be once.
// Calls do not overlap; one may be under way when stop returns. There is a goroutine only while check runs: watches in which nothing
// happens would else keep two more stacks each.
func repeat(ctx context.Context, d time.Duration, check func() (again bool)) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	ended := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		if ctx.Err() != nil || !check() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			timer.Reset(d)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}
