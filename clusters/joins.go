package clusters

import (
	"context"
	"time"
)

const (
	// joinsAtOnce bounds how many members are connected to and warmed at a time: more only wait for each other in the hub's
	// own queues, until requests that the members have answered run out of time.
	joinsAtOnce = 16
	// joinPatience is how long a member that is slow, or hangs, keeps its turn. Its warming goes on without it.
	joinPatience = 5 * time.Second
	joinPoll     = 50 * time.Millisecond
)

// joins lets members join in turn.
type joins chan struct{}

func newJoins() joins { return make(joins, joinsAtOnce) }

// enter waits for a turn; false: ctx ended first.
func (j joins) enter(ctx context.Context) bool {
	select {
	case j <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave gives the turn to the next.
func (j joins) leave() { <-j }

// awaitJoined returns when the member has joined, cannot be reached, or has had its turn for long enough.
func (m *Member) awaitJoined(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for ctx.Err() == nil {
		if r := m.report(); r.settled() || r.probed && !r.reachable {
			return
		}
		sleep(ctx, joinPoll)
	}
}
