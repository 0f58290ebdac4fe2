package reconcile

import (
	"cmp"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
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
func (t *tuning) pace(statusObject bool) retry.Pace {
	p := retry.Pace{First: cmp.Or(t.backoffFirst, retry.First), Most: cmp.Or(t.backoffMost, retry.Most)}
	switch {
	case t.stalledRetry != nil:
		p.Stalled = *t.stalledRetry
	case statusObject:
		p.Stalled = defaultStalledRetry
	}
	return p
}

func (t *tuning) rateLimit() rateLimit { return rateLimit{perSecond: t.perSecond, burst: t.burst} }
