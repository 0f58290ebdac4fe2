package retry

import "time"

const (
	// First is the back-off after the first failure in a row.
	First = time.Second
	// Most is the longest back-off.
	Most = 5 * time.Minute
	// JitterShare is how far a delay may be from its middle: a tenth, so that doubled delays still always grow.
	JitterShare = 0.1
)

// Pace is how fast the keys of a controller are tried again.
type Pace struct {
	First, Most time.Duration // back-off after the first failure, and at most
	Stalled     time.Duration // after a terminal error; 0: never
}

// Usual is the pace of a controller that sets none.
var Usual = Pace{First: First, Most: Most}

// Backoff is the time to wait after the n-th failure in a row (n from 1): 1 s, 2 s, 4 s … 5 min, give or take a tenth,
// unless the controller sets another. random is in [0, 1).
func (p Pace) Backoff(n uint32, random float64) time.Duration {
	d := p.First
	for i := uint32(1); i < n && d < p.Most; i++ {
		d *= 2
	}
	return Jitter(min(d, p.Most), random)
}

// Backoff is that of the usual pace.
func Backoff(n uint32, random float64) time.Duration { return Usual.Backoff(n, random) }

// Jitter moves d by up to a tenth either way. random is in [0, 1).
func Jitter(d time.Duration, random float64) time.Duration {
	return d + time.Duration(float64(d)*JitterShare*(2*random-1))
}
