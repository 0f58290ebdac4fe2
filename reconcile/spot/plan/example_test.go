package plan_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Four replicas run on-demand when their policy becomes 50 % on spot. One replica moves at a time.
func ExamplePlan() {
	now := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)
	keys := policy.Keys{Prefix: policy.DefaultPrefix}
	p := policy.Parse(keys, map[string]string{keys.SpotPercentage(): "50"}, nil, policy.Defaults{})

	o := plan.Observed{Replicas: 4, Owners: []plan.Owner{{UID: "set", Name: "web", Replicas: 4}}}
	for slot := range 4 {
		o.Pods = append(o.Pods, plan.Pod{
			Name: fmt.Sprint("web-", slot), UID: types.UID(fmt.Sprint(slot)), Owner: "set", Slot: slot, DeletionCost: policy.ParseCost(p.Mix().Cost(slot)),
			Capacity: capacity.OnDemand, Created: now.Add(-time.Hour), UnreadySince: now.Add(-time.Hour), Bound: true, Ready: true,
		})
	}
	r := plan.Plan(o, p, plan.Settings{MaxMoves: policy.MoveLimit{Count: 1}, Cooldown: 10 * time.Second}, now)
	fmt.Println("wanted:", r.SpotWanted, "spot,", r.OnDemandWanted, "on-demand")
	for _, e := range r.Evictions {
		fmt.Println("evict", e.Name, "for", e.For)
	}
	// Output:
	// wanted: 2 spot, 2 on-demand
	// evict web-3 for move
}
