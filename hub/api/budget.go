package api

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

const (
	// filterRate is what the filters of all watches of a caller may cost in a second, in CEL's units, and filterBurst what they may cost
	// at once: about a fifth of a processor, and about a second of it.
	filterRate, filterBurst = 2_000_000, 10_000_000
	// maxFilterWait is how long a watch waits for that in all before it has told its reader everything.
	maxFilterWait = 30 * time.Second
	// budgetFor is how long the budget of a caller without watches is remembered: by then it is full again.
	budgetFor = 2 * filterBurst / filterRate * time.Second
)

// budgets bound what the filters of watches cost, for each caller. Nil bounds nothing. Safe for concurrent use.
type budgets struct {
	rate    rate.Limit
	burst   int
	callers *cache[string, *rate.Limiter]
}

func newBudgets(perSecond rate.Limit, burst int) *budgets {
	return &budgets{rate: perSecond, burst: burst, callers: newCache[string, *rate.Limiter](maxPaced)}
}

// pay waits until a caller has what a filter has cost, and returns how long that took.
func (b *budgets) pay(ctx context.Context, whose string, cost uint64) (waited time.Duration, err error) {
	if b == nil || cost == 0 {
		return 0, nil
	}
	limiter, ok := b.callers.keep(whose, budgetFor)
	if !ok {
		limiter, _ = b.callers.add(whose, rate.NewLimiter(b.rate, b.burst), budgetFor)
	}
	wait := limiter.ReserveN(time.Now(), int(min(cost, uint64(b.burst)))).Delay()
	if wait <= 0 {
		return 0, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return wait, nil
	case <-ctx.Done():
		return wait, context.Cause(ctx)
	}
}
