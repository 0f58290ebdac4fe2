package report_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// What is shown of a workload is remembered until it is forgotten: the API answers from it.
func ExampleJournal() {
	var journal report.Journal
	cart := policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}}
	for hour := range 3 {
		journal.RecordMove(cart, report.Move{At: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC), Pod: fmt.Sprint("cart-", hour)})
	}
	for _, move := range journal.LastMoves(cart) {
		fmt.Println(move.Pod, move.At.Format(time.TimeOnly))
	}
	// Output:
	// cart-2 02:00:00
	// cart-1 01:00:00
	// cart-0 00:00:00
}
