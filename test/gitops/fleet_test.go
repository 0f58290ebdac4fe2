package gitops

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// placesOverTheFleet follows a workload that production's members run together: Git has its replicas and its floor in one place, and
// which member runs how many is nobody's but the hub's.
func placesOverTheFleet(t *testing.T, ctx context.Context, s *Site, _ *Hub) {
	must(t, s.awaitOverFleet(ctx, 9, 3, map[string]int{"prod-eu": 8, "prod-us": 4}))
	must(t, s.follow(ctx, "minOnDemand: 6"))
	must(t, s.awaitOverFleet(ctx, 6, 6, map[string]int{"prod-eu": 8, "prod-us": 4}))
	must(t, s.Repo.Replace("placements/catalog.yaml", "weight: 2", "weight: two", "weight: 1", "weight: 2", "weight: two", "weight: 1"))
	must(t, s.Repo.Commit(ctx, "More of it in prod-us"))
	must(t, s.awaitOverFleet(ctx, 6, 6, map[string]int{"prod-eu": 4, "prod-us": 8}))
	// Flux applies the workload once more, and takes nothing back of what the hub has set.
	must(t, s.Repo.Replace("apps/base/catalog/deployment.yaml", "  labels:\n    app: catalog\n", "  annotations: {applied: again}\n  labels:\n    app: catalog\n"))
	must(t, s.Repo.Commit(ctx, "Apply it again"))
	for _, member := range []string{"prod-eu", "prod-us"} {
		must(t, s.AwaitApplied(ctx, "apps-"+member))
	}
	must(t, s.Repo.Revert(ctx, 3))
	must(t, s.awaitOverFleet(ctx, 9, 3, map[string]int{"prod-eu": 8, "prod-us": 4}))
}

// awaitOverFleet waits until the example's FleetPlacement is ready, with so many replicas of each capacity type in all and so many in
// each member.
func (s *Site) awaitOverFleet(ctx context.Context, spot, onDemand int, in map[string]int) error {
	return fleet.Await(ctx, fmt.Sprintf("%d spot and %d on-demand replicas over the fleet, %v", spot, onDemand, in), func(ctx context.Context) (bool, error) {
		has, all := map[string]int{}, fleet.Mix{}
		for _, m := range s.Fleet.Members {
			if in[m.Name] == 0 {
				continue
			}
			mix, err := (&fleet.Workload{Member: m, Kind: "Deployment", Namespace: "shop", Name: "catalog"}).Mix(ctx)
			if err != nil {
				return false, err
			}
			has[m.Name] = mix.Ready
			all.Spot, all.OnDemand, all.Unknown, all.Ready = all.Spot+mix.Spot, all.OnDemand+mix.OnDemand, all.Unknown+mix.Unknown, all.Ready+mix.Ready
		}
		for member, want := range in {
			if has[member] != want {
				return false, fmt.Errorf("there are %v: %s", has, all)
			}
		}
		if want := (fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: spot + onDemand}); all != want {
			return false, fmt.Errorf("there are %s", all)
		}
		placement := typed("fleet.plimsoll.dev/v1alpha1", "FleetPlacement")
		if err := s.Fleet.Hub.Client().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "catalog"}, placement); err != nil {
			return false, err
		}
		status, _ := placement.Object["status"].(map[string]any)
		if !isReady(status) {
			return false, fmt.Errorf("its conditions are %v", status["conditions"])
		}
		return status["observedGeneration"] == placement.GetGeneration(), nil
	})
}

// isReady reports whether the condition Ready of a status is true.
func isReady(status map[string]any) bool {
	conditions, _ := status["conditions"].([]any)
	for _, one := range conditions {
		if condition, _ := one.(map[string]any); condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}
	return false
}
