package intake

import (
	"context"
	"sync"
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
	// eventTurn is how many events a watch that has to wait may read after each wait. A wait costs about as much of a processor as
	// reading a small event, so a turn for each would double what a member can take.
	eventTurn = 8
	// eventShare is the rate that a member has however busy the processors are, eventStep what it gets more after an eventPeriod
	// in which they were free, and wakeUp how long after its time a goroutine may run that waited, if they are.
	eventShare  = 500
	eventStep   = 50
	eventPeriod = 100 * time.Millisecond
	wakeUp      = 2 * time.Millisecond // timers of an idle process are up to 1 ms late
)

// Pace makes the watches and the large answers of one member wait for each other and for time to pass, so that a member whose
// events or lists do not end leaves the processors to others. What it sends meanwhile stays on its side of the connection. Safe
// for concurrent use; the zero value lets all pass.
type Pace struct {
	limiter *rate.Limiter
	events  *eventPace
	waited  func(time.Duration)
}

// NewPace returns the pace of one member, which calls waited after each wait. What does not have to wait costs no call.
func NewPace(waited func(time.Duration)) Pace {
	return Pace{rate.NewLimiter(paceRate, paceBurst), newEventPace(sleep, waited), waited}
}

// enter returns when a large answer may be read, whose bytes nobody knows yet: when those before it are paid for.
func (p Pace) enter(ctx context.Context) error {
	return p.take(ctx, 1)
}

// take returns when so many bytes may be read.
func (p Pace) take(ctx context.Context, bytes int) error {
	if p.limiter == nil {
		return nil
	}
	began := time.Now()
	if p.limiter.AllowN(began, bytes) {
		return nil
	}
	defer func() { p.waited(time.Since(began)) }()
	return p.limiter.WaitN(ctx, bytes)
}

// charge has the next ones wait for a large answer of so many bytes.
func (p Pace) charge(bytes int) {
	if p.limiter != nil {
		p.limiter.ReserveN(time.Now(), min(bytes, paceBurst))
	}
}

// watchPace is the pace of one watch of a member. Not safe for concurrent use.
type watchPace struct {
	Pace
	left int // events of its turn
}

// wait returns when an event of so many bytes may be decoded, or with an error when ctx ends.
func (p *watchPace) wait(ctx context.Context, bytes int) error {
	if p.limiter == nil {
		return nil
	}
	if p.left == 0 {
		turn, err := p.events.wait(ctx)
		if err != nil {
			return err
		}
		p.left = turn
	}
	p.left--
	return p.take(ctx, min(bytes, paceBurst))
}

// eventPace lets events pass at a rate between eventShare and eventRate: the higher one is for processors that nobody else
// needs. Whether somebody does shows in its own waits, which end late then.
type eventPace struct {
	limiter *rate.Limiter
	sleep   func(context.Context, time.Duration) error
	waited  func(time.Duration)

	mu    sync.Mutex
	since time.Time // when the period began
	late  bool      // whether a wait of the period ended late
}

func newEventPace(sleep func(context.Context, time.Duration) error, waited func(time.Duration)) *eventPace {
	return &eventPace{limiter: rate.NewLimiter(eventShare, eventBurst), sleep: sleep, waited: waited}
}

// wait returns how many events may be decoded now: one where nothing has to wait, and else a turn.
func (p *eventPace) wait(ctx context.Context) (int, error) {
	began := time.Now()
	if p.limiter.AllowN(began, 1) {
		return 1, nil
	}
	turn := p.limiter.ReserveN(began, eventTurn)
	delay := turn.DelayFrom(began)
	err := p.sleep(ctx, delay)
	now := time.Now()
	p.waited(now.Sub(began))
	if err != nil {
		turn.CancelAt(now)
		return 0, err
	}
	p.woken(now, now.Sub(began)-delay)
	return eventTurn, nil
}

// woken takes account of a wait that ended so much after its time.
func (p *eventPace) woken(now time.Time, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = p.late || late > wakeUp
	if now.Sub(p.since) < eventPeriod {
		return
	}
	p.limiter.SetLimitAt(now, nextRate(p.limiter.Limit(), p.late))
	p.since, p.late = now, false
}

// nextRate is the rate after a period in which waits ended late, or in time.
func nextRate(rate rate.Limit, late bool) rate.Limit {
	if late {
		return max(rate/2, eventShare)
	}
	return min(rate+eventStep, eventRate)
}

// sleep returns after d, or with an error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
