package reconcile

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// rateLimit bounds how many keys of one flow begin a second, after a burst; zero: no bound.
type rateLimit struct {
	perSecond float64
	burst     int
}

// A bucket holds what a flow may begin now under its rate limit. Guarded by Runtime.mu. Its times are those of Runtime.now.
type bucket struct {
	limiter *rate.Limiter
	armed   bool // a timer will look again
}

// newBucket creates a full one; nil when there is no limit.
func newBucket(limit rateLimit) *bucket {
	if limit.perSecond <= 0 {
		return nil
	}
	return &bucket{limiter: rate.NewLimiter(rate.Limit(limit.perSecond), limit.burst)}
}

func (b *bucket) level(now int64) float64 { return b.limiter.TokensAt(time.Unix(0, now)) }

// empty reports whether nothing may begin now.
func (b *bucket) empty(now int64) bool { return b.level(now) < 1 }

// take notes that one begins.
func (b *bucket) take(now int64) { b.limiter.ReserveN(time.Unix(0, now), 1) }

// wait is the time until one more may begin. It is rounded up, so that one may then.
func (b *bucket) wait(now int64) time.Duration {
	return time.Duration(math.Ceil((1-b.level(now))/float64(b.limiter.Limit())*float64(time.Second))) + time.Microsecond
}

// limited reports whether the flow's rate limit keeps it from beginning a key of a priority now, and sees to it that it is seated
// again when it does no more. What a person ordered is not limited.
func (l *flow) limited(b Priority) bool {
	if l.bucket == nil || b == PriorityOrdered || !l.bucket.empty(l.queue.rt.now()) {
		return false
	}
	if !l.bucket.armed {
		l.bucket.armed = true
		time.AfterFunc(l.bucket.wait(l.queue.rt.now()), l.refilled)
	}
	return true
}

func (l *flow) refilled() {
	rt := l.queue.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	l.bucket.armed = false
	if !l.gone {
		l.reseat()
		l.queue.handOut()
	}
}
