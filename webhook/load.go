package webhook

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	// What the calls about pods that are being read may have in bytes, of one member and of all.
	maxPodBytesOfMember, maxPodBytes = 8 << 20, 64 << 20
	// Large calls of a member have largeRate bytes a second, and largeBurst at once.
	largeRate, largeBurst = 4 << 20, 8 << 20
)

// reserve adds to what is being read and returns true, unless that is more than allowed.
func reserve(read *atomic.Int64, bytes, most int64) bool {
	if read.Add(bytes) <= most {
		return true
	}
	read.Add(-bytes)
	return false
}

// largeCalls bounds the bytes of large calls of one member, so that reading and refusing them leaves the processors to others.
// The zero value may be used, by several goroutines at once.
type largeCalls struct {
	once    sync.Once
	limiter *rate.Limiter
}

// allow takes account of a call, and refuses it when there were too many.
func (l *largeCalls) allow(bytes int64) bool {
	if bytes <= calls.LargeCall {
		return true
	}
	l.once.Do(func() { l.limiter = rate.NewLimiter(largeRate, largeBurst) })
	return l.limiter.AllowN(time.Now(), int(bytes))
}
