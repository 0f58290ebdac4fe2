package lists

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// A list asks each replica for a few items, and each has that paid.
func TestAFilterIsNeverPaidForMoreThanTwice(t *testing.T) {
	filter, err := ObjectFilters.Compile("object.attempts > 1")
	if err != nil {
		t.Fatal(err)
	}
	var paid uint64
	filter.ChargeTo(func(cost uint64) error {
		paid += cost
		return nil
	})
	for n := range 1000 {
		if _, _, err := filter.Passes(t.Context(), &plimsollv1.ObjectState{Attempts: 2}); err != nil {
			t.Fatal(err)
		}
		if spent := filter.Spent(); paid < spent || paid > 2*spent {
			t.Fatalf("after %d items %d is spent and %d paid", n+1, spent, paid)
		}
	}
}

// A watch lasts: its filter sees the time at which it looks at an item, and not that at which the watch began.
func TestTheFilterOfAWatchSeesTheTimeOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter, err := ObjectFilters.Compile(`now - object.failing_since > duration("1h")`)
		if err != nil {
			t.Fatal(err)
		}
		object := &plimsollv1.ObjectState{FailingSince: timestamppb.Now()}
		for _, want := range []bool{false, true} {
			filter.Refill()
			if passes, ok, err := filter.Passes(t.Context(), object); passes != want || !ok || err != nil {
				t.Errorf("%v, %v, %v, want %v", passes, ok, err, want)
			}
			time.Sleep(2 * time.Hour)
		}
	})
}

// A filter has room for a hundred mistakes, each of which quotes it.
func TestOnlyTheFirstMistakesOfAFilterAreReported(t *testing.T) {
	_, err := ObjectFilters.Compile(strings.Repeat("object.x || ", 100) + "true")
	if err == nil || strings.Count(err.Error(), "undefined field") != maxFilterErrors {
		t.Errorf("want %d mistakes: %v", maxFilterErrors, err)
	}
}
