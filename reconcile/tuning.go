package reconcile

import (
	"cmp"
	"time"
)

const (
	defaultFinalizeDeadline = 10 * time.Minute
	defaultStalledRetry     = time.Minute
)

// tuning is what a builder was told about times and rates; zero: the default.
type tuning struct {
	backoffFirst, backoffMost time.Duration
	perSecond                 float64 // 0: no limit
	burst                     int
	finalizeDeadline          time.Duration
	stalledRetry              *time.Duration
}

// pace is how fast keys are tried again; statusObject says whether they are of a kind whose status the framework keeps.
func (t *tuning) pace(statusObject bool) pace {
	p := pace{first: cmp.Or(t.backoffFirst, backoffFirst), most: cmp.Or(t.backoffMost, backoffMost)}
	switch {
	case t.stalledRetry != nil:
		p.stalled = *t.stalledRetry
	case statusObject:
		p.stalled = defaultStalledRetry
	}
	return p
}

func (t *tuning) rateLimit() rateLimit { return rateLimit{perSecond: t.perSecond, burst: t.burst} }
