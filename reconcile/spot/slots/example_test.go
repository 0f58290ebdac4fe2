package slots_test

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// The pods of a ReplicaSet of four, half of them on spot, with one on-demand at least. All of them are admitted before the first is seen.
func ExampleAccounting_Reserve() {
	replicaSet := slots.NewAccounting(false)
	mix := policy.Mix{Percent: 50, Floor: 1, Managed: true}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, request := range []string{"a", "b", "c", "d"} {
		answer := replicaSet.Reserve(slots.Ask{ID: request, Wanted: 4, Mix: mix}, now)
		fmt.Println(answer.Slot, answer.Capacity)
	}

	// The pod of the first one is stored, and seen.
	first, _ := replicaSet.Live("a")
	replicaSet.Observe(&plan.Pod{Name: "web-x", UID: "x", Version: 1, Slot: first.Slot, Capacity: first.Capacity, Reservation: "a"}, now)
	fmt.Println(replicaSet.Held(), "held,", replicaSet.Reservations(), "reserved")
	// Output:
	// 0 on-demand
	// 1 spot
	// 2 on-demand
	// 3 spot
	// 1 held, 3 reserved
}
