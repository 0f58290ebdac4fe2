package intake

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

const (
	// paceRate is how many bytes of events and of large answers a member may send a second, and paceBurst how many before that
	// counts.
	paceRate  = 16 << 20
	paceBurst = 64 << 20
	// eventRate is how many events it may send a second, and eventBurst how many before that counts: decoding a small one costs
	// more than its bytes. Caches are filled by lists, so a member that has just joined needs no more. The burst is small: 500
	// events at once keep a processor busy for 50 ms and more, while 500 in a row arrive half a second late at most.
	eventRate  = 1000
	eventBurst = 20
)

// Pace makes the watches and the large answers of one member wait for each other and for time to pass, so that a member whose
// events or lists do not end leaves the processors to others. What it sends meanwhile stays on its side of the connection. Safe
// for concurrent use; the zero value lets all pass.
type Pace struct{ limiter, events *rate.Limiter }

// NewPace returns the pace of one member.
func NewPace() Pace {
	return Pace{rate.NewLimiter(paceRate, paceBurst), rate.NewLimiter(eventRate, eventBurst)}
}

// wait returns when an event of so many bytes may be decoded, or with an error when ctx ends.
func (p Pace) wait(ctx context.Context, bytes int) error {
	if p.limiter == nil {
		return nil
	}
	if err := p.events.Wait(ctx); err != nil {
		return err
	}
	return p.limiter.WaitN(ctx, min(bytes, paceBurst))
}

// enter returns when a large answer may be read, whose bytes nobody knows yet: when those before it are paid for.
func (p Pace) enter(ctx context.Context) error {
	if p.limiter == nil {
		return nil
	}
	return p.limiter.WaitN(ctx, 1)
}

// charge has the next ones wait for a large answer of so many bytes.
func (p Pace) charge(bytes int) {
	if p.limiter != nil {
		p.limiter.ReserveN(time.Now(), min(bytes, paceBurst))
	}
}
