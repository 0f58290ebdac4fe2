package shortage_test

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// A pod waits for longer than its timeout: there is no spot capacity for what asks for as much or more. A pod of that size that
// gets a node ends it.
func ExampleTracker() {
	start := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	after := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	small, large := capacity.Requirements{CPU: 100}, capacity.Requirements{CPU: 4000}
	tracker := shortage.NewSpotTracker(shortage.DefaultSettings())
	show := func(minutes int) {
		_, forSmall := tracker.Dry(small, "shop")
		_, forLarge := tracker.Dry(large, "shop")
		fmt.Printf("after %d minutes: dry for small pods %t, for large ones %t\n", minutes, forSmall, forLarge)
	}

	pod := shortage.Pod{UID: "large", Namespace: "shop", Requirements: large, Timeout: time.Minute, UnschedulableSince: start}
	tracker.Observe(pod, start)
	tracker.Judge(start)
	show(0)
	tracker.Judge(after(1))
	show(1)

	pod.UnschedulableSince, pod.BoundAt = time.Time{}, after(9)
	tracker.Observe(pod, after(9))
	show(9)
	// Output:
	// after 0 minutes: dry for small pods false, for large ones false
	// after 1 minutes: dry for small pods false, for large ones true
	// after 9 minutes: dry for small pods false, for large ones false
}
