package policy_test

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A Deployment asks for 70 % on spot capacity and for two on-demand replicas at least.
func ExampleParse() {
	keys := policy.Keys{Prefix: policy.DefaultPrefix}
	p := policy.Parse(keys, map[string]string{keys.SpotPercentage(): "70", keys.MinOnDemand(): "2"}, nil, policy.Defaults{})
	for _, replicas := range []int{2, 4, 10} {
		spot, onDemand := policy.Split(replicas, p)
		fmt.Println(replicas, "replicas:", spot, "spot,", onDemand, "on-demand")
	}

	// What cannot be read counts as nothing on spot capacity, and says why.
	p = policy.Parse(keys, map[string]string{keys.SpotPercentage(): "most"}, nil, policy.Defaults{})
	fmt.Println(p.Valid(), len(p.Problems))
	fmt.Println(policy.Split(10, p))
	// Output:
	// 2 replicas: 0 spot, 2 on-demand
	// 4 replicas: 2 spot, 2 on-demand
	// 10 replicas: 7 spot, 3 on-demand
	// false 1
	// 0 10
}

// Moves are allowed from 2:00 to 6:00 in Zürich.
func ExampleParseWindow() {
	window, err := policy.ParseWindow("0 2 * * *", "4h", "Europe/Zurich")
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(window.Contains(noon), window.Contains(noon.Add(13*time.Hour)))
	fmt.Println(window.Next(noon).UTC().Format(time.RFC3339))
	// Output:
	// false true
	// 2026-07-02T00:00:00Z
}
