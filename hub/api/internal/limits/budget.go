package limits

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

const (
	// FilterRate is what the lists of a caller may cost on a replica in a second, in CEL's units, each about a ten-millionth of a second of a
	// processor: about a fifth of a processor. The filters of their watches may cost as much again, and so may their lists that other replicas pass
	// on: a caller has three fifths of a processor of a replica at most, on average.
	FilterRate = 2_000_000
	// FilterBurst is what each of these may cost at once: about a second of a processor. Lists may cost more: see [Budgets.MayList].
	FilterBurst = 10_000_000
	// PeerDebt is how many bursts a caller may owe on a replica for lists that another replica passes on. That one asks about each member by itself,
	// and would lose a list in the middle where the members before have taken the caller below zero. It charges only for the items that it gets, so
	// this debt is what bounds a caller who lists members of other replicas; it is paid off at the same rate.
	PeerDebt = 3
	// MaxFilterWait is how long a watch waits for that in all before its reader has everything.
	MaxFilterWait = 30 * time.Second
	// budgetFor is how long the budget of a caller who lists and filters nothing is remembered: by then it is full again, also where they owe
	// for lists that began at the same time, ten times the burst.
	budgetFor = 12 * FilterBurst / FilterRate * time.Second
	// FilterBudget is the reason of lists of a caller who has less left than they or their filters cost.
	FilterBudget = "FILTER_BUDGET_SPENT"
)

// Budgets bound what lists and filters cost, for each caller. Nil bounds nothing. Safe for concurrent use.
type Budgets struct {
	rate    rate.Limit
	burst   int
	callers *cache.Cache[string, *rate.Limiter]
}

// NewBudgets gives every caller so much a second, in CEL's units, and burst at once.
func NewBudgets(perSecond rate.Limit, burst int) *Budgets {
	return &Budgets{rate: perSecond, burst: burst, callers: cache.New[string, *rate.Limiter](maxPaced)}
}

// of is what a caller has left.
func (b *Budgets) of(whose string) *rate.Limiter {
	limiter, ok := b.callers.Keep(whose, budgetFor)
	if !ok {
		limiter, _ = b.callers.Add(whose, rate.NewLimiter(b.rate, b.burst), budgetFor)
	}
	return limiter
}

// Owe takes what a list or a filter has cost, also where its caller has less, and returns how long they have to wait for that.
func (b *Budgets) Owe(whose string, cost uint64) (wait time.Duration) {
	if b == nil || cost == 0 {
		return 0
	}
	return b.of(whose).ReserveN(time.Now(), int(min(cost, uint64(b.burst)))).Delay()
}

// Charged returns what takes the cost of the filter of one call: its error is RESOURCE_EXHAUSTED when the caller has no more, with when they
// have all of it again.
func (b *Budgets) Charged(whose string) (pay func(cost uint64) error) {
	if b == nil {
		return func(uint64) error { return nil }
	}
	left := b.of(whose)
	return func(cost uint64) error {
		now := time.Now()
		if left.AllowN(now, int(min(cost, uint64(b.burst)))) {
			return nil
		}
		full := time.Duration((float64(b.burst) - left.TokensAt(now)) / float64(b.rate) * float64(time.Second))
		return apierror.WithDelay(status.New(codes.ResourceExhausted,
			"your filters have cost more than a caller's may in so short a time: ask again later, name a cluster or a namespace, or use fewer loops and patterns"),
			FilterBudget, full).Err()
	}
}

// MayList returns an error when a caller owes more than so many bursts for earlier lists: RESOURCE_EXHAUSTED, with when they have paid everything. A
// list that may begin is done, however much it costs.
func (b *Budgets) MayList(whose string, bursts int) error {
	return b.solvent(whose, bursts, FilterBudget,
		"your lists have taken more of a processor than a caller's may in so short a time: ask again later, name a cluster, or use larger pages and no order_by")
}

// solvent returns an error with a reason and a text when a caller owes more than so many bursts for what they have had.
func (b *Budgets) solvent(whose string, bursts int, reason, text string) error {
	if b == nil {
		return nil
	}
	left := b.of(whose).TokensAt(time.Now())
	if left >= -float64(bursts*b.burst) {
		return nil
	}
	again := time.Duration(-left / float64(b.rate) * float64(time.Second))
	return apierror.WithDelay(status.New(codes.ResourceExhausted, text), reason, again).Err()
}

// Sleep waits, or returns why ctx has ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
