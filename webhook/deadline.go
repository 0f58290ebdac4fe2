package webhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlineContext is context.WithDeadline for calls that hardly ever wait: its timer is made when Done is first asked for.
type deadlineContext struct {
	context.Context // of the call
	deadline        time.Time

	once  sync.Once
	timed atomic.Pointer[timedContext] // nil while nobody has asked for Done
}

type timedContext struct {
	context.Context
	stop context.CancelFunc
}

// over represents the timer of a call that is over.
var over = func() *timedContext {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return &timedContext{ctx, stop}
}()

func withDeadline(parent context.Context, deadline time.Time) *deadlineContext {
	return &deadlineContext{Context: parent, deadline: deadline}
}

func (c *deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *deadlineContext) Done() <-chan struct{} {
	c.once.Do(func() {
		ctx, stop := context.WithDeadline(c.Context, c.deadline)
		c.timed.Store(&timedContext{ctx, stop})
	})
	return c.timed.Load().Done()
}

// Err goes with Done once that was asked for: contexts that derive from this one rely on it.
func (c *deadlineContext) Err() error {
	if timed := c.timed.Load(); timed != nil {
		return timed.Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// cancel gives the timer back, when the call is over.
func (c *deadlineContext) cancel() {
	c.once.Do(func() { c.timed.Store(over) })
	c.timed.Load().stop()
}
