package spot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A cache of 80,000 pods must not hold 80,000 affinities.
func TestTheCacheKeepsTheCapacityTypeOfAnAffinityAndNotTheAffinity(t *testing.T) {
	c := mustLabels(t)
	kind := podKind(testKeys, c)
	keep := func(selector map[string]string, capacity Capacity) *corev1.Pod {
		t.Helper()
		pod, kept := podOf(nil, nil, selector), podOf(nil, nil, nil)
		steered(t, c, map[string]string{labelAKSPool: "a"}).Steer(&pod.Spec, capacity, nil)
		kind.Keep(pod, kept)
		if got := c.OfPod(kept, nil); got != capacity {
			t.Errorf("of a pod for %s the cache tells %q: %s", capacity, got, textOf(kept.Spec))
		}
		return kept
	}
	for _, capacity := range []Capacity{Spot, OnDemand} {
		if first, second := keep(nil, capacity), keep(map[string]string{steerKey: "strange"}, capacity); first.Spec.Affinity != second.Spec.Affinity {
			t.Errorf("two pods for %s hold an affinity each", capacity)
		}
	}
}
