package figures

import "time"

// Quantile is the least of the sorted values that the share q of them does not exceed. There must be at least one.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]
}

// Milliseconds is a duration as figures have it.
func Milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
