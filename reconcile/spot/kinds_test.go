package spot

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// A cache of 80,000 pods must not hold 80,000 affinities.
func TestTheCacheKeepsTheCapacityTypeOfAnAffinityAndNotTheAffinity(t *testing.T) {
	c := spottest.MustLabels(t)
	kind := podKind(spottest.DefaultKeys, c)
	keep := func(selector map[string]string, capacityType capacity.Type) *corev1.Pod {
		t.Helper()
		pod, kept := spottest.PodWith(nil, nil, selector), spottest.PodWith(nil, nil, nil)
		steered(t, c, map[string]string{labelAKSPool: "a"}).Steer(&pod.Spec, capacityType, nil)
		kind.Keep(pod, kept)
		if got := c.OfPod(kept, nil); got != capacityType {
			t.Errorf("of a pod for %s the cache shows %q: %s", capacityType, got, capacity.JSONOf(kept.Spec))
		}
		return kept
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if first, second := keep(nil, capacityType), keep(map[string]string{spottest.SteerKey: "strange"}, capacityType); first.Spec.Affinity != second.Spec.Affinity {
			t.Errorf("two pods for %s hold an affinity each", capacityType)
		}
	}
}

// A controller that Owns ReplicaSets indexes them by their controller as well: the cache of a member keeps that index once.
func TestReplicaSetsHaveTheIndexOfControllersThatOwnThem(t *testing.T) {
	owned := clusters.Kind{Object: &appsv1.ReplicaSet{}, Indexes: map[string]client.IndexerFunc{object.ControllerIndex: object.ControllerUID}}
	merged, err := clusters.MergeKinds([]clusters.Kind{replicaSetKind(spottest.DefaultKeys, spottest.MustLabels(t))}, []clusters.Kind{owned})
	if err != nil {
		t.Fatal(err)
	}
	if len(merged) != 1 || len(merged[0].Indexes) != 1 {
		t.Errorf("%d kinds, indexes of the first: %v", len(merged), slices.Sorted(maps.Keys(merged[0].Indexes)))
	}
}
