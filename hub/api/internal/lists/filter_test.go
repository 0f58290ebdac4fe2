package lists

import (
	"testing"

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
