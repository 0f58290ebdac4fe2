package spot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
			t.Errorf("of a pod for %s the cache tells %q: %s", capacityType, got, capacity.JSONOf(kept.Spec))
		}
		return kept
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if first, second := keep(nil, capacityType), keep(map[string]string{spottest.SteerKey: "strange"}, capacityType); first.Spec.Affinity != second.Spec.Affinity {
			t.Errorf("two pods for %s hold an affinity each", capacityType)
		}
	}
}
