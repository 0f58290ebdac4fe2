package limits

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// filterItemCost is what a filter may cost for one item.
const filterItemCost = 10_000

// A filter that costs much makes its own watch slow, and ends it where that takes too long; the same filter on less is served.
func TestTheFiltersOfACallersWatchesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudgets(FilterRate, FilterBurst)
		var all sync.WaitGroup
		began := time.Now()
		for range 8 { // watches of one caller share it
			all.Go(func() {
				for range 1000 {
					time.Sleep(b.Owe("greedy", filterItemCost))
				}
			})
		}
		all.Wait()
		const want = (8*1000*filterItemCost - FilterBurst) / FilterRate * time.Second
		if took := time.Since(began); took < want-time.Second {
			t.Errorf("filters that cost %s of the budget took %s", want, took)
		}
		if wait := b.Owe("modest", filterItemCost); wait > 0 {
			t.Errorf("another caller waits %s", wait)
		}
		errEnded := errors.New("the watch has ended")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errEnded)
		if err := Sleep(ended, time.Hour); !errors.Is(err, errEnded) {
			t.Errorf("a watch that ends meanwhile: %v", err)
		}
	})
}
