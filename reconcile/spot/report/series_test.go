package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func workloadOf(namespace, name string) policy.WorkloadKey {
	return policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func TestATenantWithManyWorkloadsTakesTheSeriesOfNoOtherTenant(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, 10, func() map[string]int { return nil }, func(capacity.Type) map[string]int { return nil })
	if err != nil {
		t.Fatal(err)
	}
	show := func(member, namespace, name string) {
		m.ShowWorkload(&Workload{Member: member, WorkloadKey: workloadOf(namespace, name), SpotWanted: 2, SpotActual: 1, OnDemandWanted: 3, OnDemandActual: 5})
	}
	for i := range 1000 {
		show("one", "aaa", fmt.Sprintf("w%04d", i))
	}
	for i := range 3 {
		show("one", "shop", fmt.Sprintf("w%d", i))
		show("two", "shop", fmt.Sprintf("w%d", i))
	}
	found := map[string]int{} // workloads by member and namespace
	values := spottest.Series(t, registry, "plimsoll_workload_replicas")
	for labels := range values {
		parts := strings.Split(labels, "/") // capacity, count, kind, member, name, namespace
		found[parts[3]+"/"+parts[5]]++
	}
	if diff := cmp.Diff(map[string]int{"one/aaa": 28, "one/shop": 12, "one/_other": 4, "two/shop": 12}, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// 993 of 1003 have no series of their own, and what they have too many of hides nothing that others lack.
	for labels, want := range map[string]float64{
		"spot/wanted/_other/one/_other/_other": 2 * 993, "spot/actual/_other/one/_other/_other": 993,
		"on-demand/wanted/_other/one/_other/_other": 3 * 993, "on-demand/actual/_other/one/_other/_other": 3 * 993,
	} {
		if values[labels] != want {
			t.Errorf("%s is %v, not %v", labels, values[labels], want)
		}
	}
}

// An alert on these pages somebody at night: they count what the hub should have corrected and has not.
func TestTheSeriesOfAFloorCountWhatTheHubShouldHavePutRight(t *testing.T) {
	pol := func(percentage, floor int, modes policy.Modes) policy.Policy {
		return policy.Policy{Percentage: &percentage, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceWorkload, Modes: modes}
	}
	invalid := pol(70, 3, policy.Modes{})
	invalid.Problems = []policy.Problem{{Severity: policy.SeverityPlacement}}
	for name, c := range map[string]struct {
		view             Workload
		floor, misplaced int
	}{
		"as wanted":                 {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 7, OnDemandWanted: 3, OnDemandActual: 3}, 0, 0},
		"above the floor":           {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 8, OnDemandWanted: 3, OnDemandActual: 2}, 0, 1},
		"below the floor":           {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 9, OnDemandWanted: 3, OnDemandActual: 1}, 1, 2},
		"too many on-demand":        {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 4, OnDemandWanted: 3, OnDemandActual: 6}, 0, 3},
		"missing altogether":        {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 4, OnDemandWanted: 3, OnDemandActual: 3}, 0, 0},
		"fewer replicas than floor": {Workload{Replicas: 2, Policy: pol(70, 5, policy.Modes{}), OnDemandWanted: 2, OnDemandActual: 1, SpotActual: 1}, 1, 1},
		"a shut window":             {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 9, OnDemandWanted: 3, OnDemandActual: 1, Waits: []plan.Wait{{Kind: plan.WaitWindow}}}, 0, 0},
		"none in a shut window":     {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 8, OnDemandWanted: 3, Waits: []plan.Wait{{Kind: plan.WaitWindow}}}, 1, 0},
		"paused":                    {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{Paused: policy.SourceNamespace}), SpotWanted: 7, SpotActual: 10, OnDemandWanted: 3}, 0, 0},
		"read-only":                 {Workload{Replicas: 10, Policy: pol(70, 2, policy.Modes{}), SpotWanted: 7, SpotActual: 10, OnDemandWanted: 3, Waits: []plan.Wait{{Kind: plan.WaitReadOnly, Subject: "the hub"}}}, 0, 0},
		"an invalid policy":         {Workload{Replicas: 10, Policy: invalid, OnDemandWanted: 10, OnDemandActual: 1, SpotActual: 9}, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			if counts := countsOf(&c.view); counts.floorMissing != c.floor || counts.misplaced != c.misplaced {
				t.Errorf("%d missing of the floor and %d misplaced, not %d and %d", counts.floorMissing, counts.misplaced, c.floor, c.misplaced)
			}
		})
	}
}
