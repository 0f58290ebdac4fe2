package spot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

func TestDroughtsThatEndAtOnceAreToldInOneOrder(t *testing.T) {
	var told []string
	s := newShell(t, func(o *Options) {
		o.OnEvent = func(h Event) { told = append(told, h.Subject+" "+h.Reason) }
	}, false)
	known := map[dryShape]time.Time{}
	for i := range 20 {
		known[dryShape{capacity.Spot, fmt.Sprintf("cpu=%02d", i)}] = time.Now()
		known[dryShape{capacity.OnDemand, fmt.Sprintf("cpu=%02d", i)}] = time.Now()
	}
	s.reportDroughts(testMember, known, shortage.NewTrackers(shortage.DefaultSettings()), time.Now())
	if len(told) != 40 || !slices.IsSorted(told) {
		t.Errorf("%d are reported, in the order %v", len(told), told)
	}
}
