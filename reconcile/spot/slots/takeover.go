package slots

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// StoreTime is how long after its admission a pod may be stored: other webhooks and the store come after us.
const StoreTime = 500 * time.Millisecond

// TakeOver says that until at another process may have decided for the owner, or this one with another view of the member: it
// may have promised slots that we do not know of, and the cache may not show yet what it did. Until a live list that was asked
// for at [Accounting.ProvenBy] or later was given to [Accounting.Sync], or [plan.SettleTime] has passed, which is the longest that a
// cache lags behind, no answer relies on what is known: see [DoubtUnproven]. The same time may be reported again.
func (a *Accounting) TakeOver(at time.Time) {
	if at.After(a.taken) {
		a.taken, a.proven = at, false
	}
}

// ProvenBy returns the time from which on a live list shows every pod that was admitted before the last takeover.
func (a *Accounting) ProvenBy() time.Time { return a.taken.Add(StoreTime) }

// unprovenUntil returns when what is known can be relied on without a live list; zero: it can.
func (a *Accounting) unprovenUntil(now time.Time) time.Time {
	if until := a.taken.Add(plan.SettleTime); !a.proven && now.Before(until) {
		return until
	}
	return time.Time{}
}

// prove changes a decision that relies on what is not proven. On-demand is safe whatever is live, and where there is no floor
// so is spot.
func (a *Accounting) prove(d *decision, ask *Ask, now time.Time) {
	if d.capacity != capacity.Spot || a.unprovenUntil(now).IsZero() {
		return
	}
	d.doubt = DoubtUnproven
	if ask.Final && ask.Mix.Floor > 0 {
		d.capacity, d.reason = capacity.OnDemand, ReasonUnproven
	}
}
