package fleet_test

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
)

// Ten replicas over two members, seven of them on spot. One member's spot capacity has no room left.
func ExamplePlan() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	plenty := fleet.Supply{Room: fleet.Unbounded}
	members := &fleet.Fleet{Members: []fleet.Member{
		{Name: "prod-eu", Spot: fleet.Supply{DrySince: now.Add(-time.Minute)}, OnDemand: plenty},
		{Name: "prod-us", Spot: plenty, OnDemand: plenty},
	}}
	web := &fleet.Placement{Name: "shop/web", Policy: fleet.Policy{
		Replicas: 10, MinOnDemand: 2, SpotPercentage: 70,
		Tiers: []fleet.Tier{{{Member: "prod-eu"}, {Member: "prod-us"}}},
	}}
	result := fleet.Plan(members, web, now)
	for _, m := range result.Members {
		fmt.Println(m.Member, m.Spot, "on spot", m.OnDemand, "on-demand")
	}
	fmt.Println(result.Unplaced, "without a place")
	// Output:
	// prod-eu 0 on spot 2 on-demand
	// prod-us 7 on spot 1 on-demand
	// 0 without a place
}
