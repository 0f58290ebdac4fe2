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

func TestAPlanMadeBeforeItsWorkloadIsSeenIsShownOnceItIs(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil))
	d := deployment(2, "true", mixed("50"))
	key := keyOf(KindDeployment, d)
	s.follower.directory.setView(WorkloadView{Member: testMember, WorkloadKey: key, State: StateConverged})
	if n := len(s.List(testMember, "")); n != 0 {
		t.Errorf("%d workloads are shown before one is known", n)
	}
	s.cache(d)
	if views := s.List(testMember, "shop"); len(views) != 1 || views[0].State != StateConverged {
		t.Errorf("shows %+v, want the plan that was made", views)
	}
	s.follower.gone(d)
	if n := len(s.follower.directory.plans); n != 0 {
		t.Errorf("%d plans are kept of workloads that are gone", n)
	}
}
