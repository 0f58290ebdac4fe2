package clusters

import (
	"context"

	"golang.org/x/time/rate"
)

const (
	// paceRate is how many bytes of events, in all watches of a member, are read a second, and paceBurst how many before that
	// counts. An event counts as eventCost bytes at least, for decoding a small one costs more than its bytes: these are 4,000 events a
	// second, and 16,000 at once.
	paceRate  = 16 << 20
	paceBurst = 64 << 20
	eventCost = 4 << 10
)

// pace makes the watches of one member wait for each other and for time to pass, so that a member whose events do not end
// leaves the processors to others. What it sends meanwhile stays on its side of the connection. Safe for concurrent use; the
// zero value lets all pass.
type pace struct{ limiter *rate.Limiter }

func newPace() pace { return pace{rate.NewLimiter(paceRate, paceBurst)} }

// wait returns when an event of so many bytes may be decoded, or with an error when ctx ends.
func (p pace) wait(ctx context.Context, bytes int) error {
	if p.limiter == nil {
		return nil
	}
	return p.limiter.WaitN(ctx, min(max(bytes, eventCost), paceBurst))
}
