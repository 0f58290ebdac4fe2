package spot

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestAStatefulSetThatKeepsTwoRevisionsOnPurposeIsAtRest(t *testing.T) {
	partition := int32(2)
	for name, test := range map[string]struct {
		strategy appsv1.StatefulSetUpdateStrategy
		rolling  bool
	}{
		"a rolling update":   {appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}, true},
		"a partition":        {appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}}, false},
		"update on deletion": {appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}, false},
	} {
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{UpdateStrategy: test.strategy},
			Status: appsv1.StatefulSetStatus{CurrentRevision: "a", UpdateRevision: "b"}}
		if got := rollingSet(set); got != test.rolling {
			t.Errorf("%s: rolling %t, want %t", name, got, test.rolling)
		}
		set.Generation = 1
		if !rollingSet(set) {
			t.Errorf("%s: a generation that was not observed counts as at rest", name)
		}
	}
}
