package spot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func workloadOf(namespace, name string) WorkloadKey {
	return WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func TestATenantWithManyWorkloadsTakesTheSeriesOfNoOtherTenant(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, 10, func() map[string]int { return nil }, func(Capacity) map[string]int { return nil })
	if err != nil {
		t.Fatal(err)
	}
	show := func(member, namespace, name string) {
		m.planned(&WorkloadView{Member: member, WorkloadKey: workloadOf(namespace, name), SpotWanted: 2, SpotActual: 1, OnDemandWanted: 3, OnDemandActual: 5})
	}
	for i := range 1000 {
		show("one", "aaa", fmt.Sprintf("w%04d", i))
	}
	for i := range 3 {
		show("one", "shop", fmt.Sprintf("w%d", i))
		show("two", "shop", fmt.Sprintf("w%d", i))
	}
	found := map[string]int{} // workloads by member and namespace
	values := series(t, registry, "plimsoll_workload_replicas")
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
