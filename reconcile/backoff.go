package reconcile

import "time"

const (
	backoffFirst = time.Second
	backoffMost  = 5 * time.Minute
	// jitterShare is how far a delay may be from its middle: a tenth, so that doubled delays still always grow.
	jitterShare = 0.1
)

// backoff is the time to wait after the n-th failure in a row (n from 1): 1 s, 2 s, 4 s … 5 min, give or take a tenth.
// random is in [0, 1).
func backoff(n uint32, random float64) time.Duration {
	d := backoffMost
	if n < 10 { // 1 s << 9 is past the most
		d = min(backoffFirst<<(max(n, 1)-1), backoffMost)
	}
	return jitter(d, random)
}

// jitter moves d by up to a tenth either way. random is in [0, 1).
func jitter(d time.Duration, random float64) time.Duration {
	return d + time.Duration(float64(d)*jitterShare*(2*random-1))
}
