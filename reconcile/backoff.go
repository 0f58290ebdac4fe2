package reconcile

import "time"

const (
	backoffFirst = time.Second
	backoffMost  = 5 * time.Minute
	// jitterShare is how far a delay may be from its middle: a tenth, so that doubled delays still always grow.
	jitterShare = 0.1
)

// pace is how fast the keys of a controller are tried again.
type pace struct {
	first, most time.Duration // back-off after the first failure, and at most
	stalled     time.Duration // after a terminal error; 0: never
}

var usualPace = pace{first: backoffFirst, most: backoffMost}

// backoff is the time to wait after the n-th failure in a row (n from 1): 1 s, 2 s, 4 s … 5 min, give or take a tenth,
// unless the controller was told otherwise. random is in [0, 1).
func (p pace) backoff(n uint32, random float64) time.Duration {
	d := p.first
	for i := uint32(1); i < n && d < p.most; i++ {
		d *= 2
	}
	return jitter(min(d, p.most), random)
}

// backoff is that of the usual pace.
func backoff(n uint32, random float64) time.Duration { return usualPace.backoff(n, random) }

// jitter moves d by up to a tenth either way. random is in [0, 1).
func jitter(d time.Duration, random float64) time.Duration {
	return d + time.Duration(float64(d)*jitterShare*(2*random-1))
}
