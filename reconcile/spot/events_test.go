package spot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
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

// A node selector may have tens of KiB.
func TestTheTextOfALongShapeIsClippedInEvents(t *testing.T) {
	var told []Event
	s := newShell(t, func(o *Options) { o.OnEvent = func(h Event) { told = append(told, h) } }, false)
	long := map[dryShape]time.Time{{capacity.Spot, "disk=" + strings.Repeat("a", 60<<10)}: time.Now()}
	s.reportDroughts(testMember, long, shortage.NewTrackers(shortage.DefaultSettings()), time.Now())
	if len(told) != 1 || len(told[0].Reason) > object.MaxText || len(told[0].Message) > object.MaxText || !strings.HasPrefix(told[0].Reason, "disk=aaa") {
		t.Errorf("%d events are reported, with a reason of %d bytes and a message of %d", len(told), len(told[0].Reason), len(told[0].Message))
	}
}
