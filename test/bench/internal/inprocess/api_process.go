package inprocess

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub"
)

// likeAHub collects garbage and runs threads in this process as a hub does, until undo is called.
func likeAHub() (undo func()) {
	percent, limit, procs := debug.SetGCPercent(100), debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0)
	debug.SetGCPercent(percent)
	hub.TuneProcess(os.Environ(), slog.New(slog.DiscardHandler))
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		runtime.GOMAXPROCS(procs)
	}
}

// callTimes is a log of an API that keeps how long its calls took inside, while that is wanted, and nothing else.
type callTimes struct {
	wanted atomic.Bool
	mu     sync.Mutex
	took   []time.Duration
}

// during keeps times until the returned function is called, which returns them, the shortest first.
func (c *callTimes) during() (end func() []time.Duration) {
	c.mu.Lock()
	c.took = nil
	c.mu.Unlock()
	c.wanted.Store(true)
	return func() []time.Duration {
		c.wanted.Store(false)
		c.mu.Lock()
		defer c.mu.Unlock()
		slices.Sort(c.took)
		return c.took
	}
}

// Enabled implements [slog.Handler].
func (c *callTimes) Enabled(context.Context, slog.Level) bool { return c.wanted.Load() }

// Handle implements [slog.Handler].
func (c *callTimes) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(of slog.Attr) bool {
		if of.Key != "duration" {
			return true
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.took = append(c.took, of.Value.Duration())
		return false
	})
	return nil
}

// WithAttrs implements [slog.Handler].
func (c *callTimes) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements [slog.Handler].
func (c *callTimes) WithGroup(string) slog.Handler { return c }
