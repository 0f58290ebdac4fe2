package reconcile

import (
	"math"
	"time"
)

// rateLimit bounds how many keys of one flow begin a second, after a burst; zero: no bound.
type rateLimit struct {
	perSecond float64
	burst     int
}

// A bucket holds what a flow may begin now under its rate limit. Guarded by Runtime.mu.
type bucket struct {
	limit rateLimit
	level float64
	at    int64 // the time that level is of
	armed bool  // a timer will look again
}

// newBucket makes a full one; nil when there is no limit.
func newBucket(limit rateLimit, now int64) *bucket {
	if limit.perSecond <= 0 {
		return nil
	}
	return &bucket{limit: limit, level: float64(limit.burst), at: now}
}

// empty tells whether nothing may begin now.
func (b *bucket) empty(now int64) bool {
	b.level = min(b.level+b.limit.perSecond*time.Duration(now-b.at).Seconds(), float64(b.limit.burst))
	b.at = now
	return b.level < 1
}

// take notes that one begins.
func (b *bucket) take() { b.level-- }

// wait is the time until one more may begin. It is rounded up, so that one may then.
func (b *bucket) wait() time.Duration {
	return time.Duration(math.Ceil((1-b.level)/b.limit.perSecond*float64(time.Second))) + time.Microsecond
}

// limited tells whether the flow's rate limit keeps it from beginning a key of a priority now, and sees to it that it is seated
// again when it does no more. What a person ordered is not limited.
func (l *flow) limited(b Priority) bool {
	if l.bucket == nil || b == PriorityOrdered || !l.bucket.empty(l.queue.rt.now()) {
		return false
	}
	if !l.bucket.armed {
		l.bucket.armed = true
		time.AfterFunc(l.bucket.wait(), l.refilled)
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
