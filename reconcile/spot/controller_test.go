package spot

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

func TestAStatefulSetThatKeepsTwoRevisionsOnPurposeIsAtRest(t *testing.T) {
	partition := func(at int32) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &at}}
	}
	for name, test := range map[string]struct {
		strategy appsv1.StatefulSetUpdateStrategy
		updated  int32
		rolling  bool
	}{
		"a rolling update":                  {partition(0), 1, true},
		"one without settings":              {appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}, 1, true},
		"a partition that is being updated": {partition(5), 1, true},
		"a partition that is updated":       {partition(5), 5, false},
		"a partition above all ordinals":    {partition(12), 0, false},
		"update on deletion":                {appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}, 1, false},
	} {
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(10)), UpdateStrategy: test.strategy},
			Status: appsv1.StatefulSetStatus{CurrentRevision: "a", UpdateRevision: "b", UpdatedReplicas: test.updated}}
		cached := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(10))}}
		StatefulSetKind(spottest.DefaultKeys, spottest.MustLabels(t)).Keep(set, cached)
		for _, set := range []*appsv1.StatefulSet{set, cached} {
			if got := rollingSet(set); got != test.rolling {
				t.Errorf("%s: rolling %t, want %t", name, got, test.rolling)
			}
		}
		set.Generation = 1
		if !rollingSet(set) {
			t.Errorf("%s: a generation that was not observed counts as at rest", name)
		}
		set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: "b", UpdateRevision: "b"}
		if rollingSet(set) {
			t.Errorf("%s: a single revision counts as a rollout", name)
		}
	}
}

func TestARolloutThatIsPausedOrGivenUpIsStalled(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status, Reason: reason},
			{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "long"}}
	}
	for name, c := range map[string]struct {
		d    appsv1.Deployment
		want bool
	}{
		"paused":            {appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}, true},
		"given up":          {appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: condition(corev1.ConditionFalse, "ProgressDeadlineExceeded")}}, true},
		"going on":          {appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: condition(corev1.ConditionTrue, "ReplicaSetUpdated")}}, false},
		"failing otherwise": {appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: condition(corev1.ConditionFalse, "FailedCreate")}}, false},
	} {
		var cached appsv1.Deployment
		DeploymentKind(spottest.DefaultKeys).Keep(&c.d, &cached)
		if got := stalledRollout(&cached); got != c.want || len(cached.Status.Conditions) > 1 {
			t.Errorf("%s: stalled %v, cached conditions %v", name, got, cached.Status.Conditions)
		}
	}
	for name, path := range map[string][]string{"Rollout": pausedPath, "CloneSet": updatePausedPath} {
		kind, obj := workloadKind(t, "example.com/v1", name), configuredObject("example.com/v1", name, 1, nil)
		if err := unstructured.SetNestedField(obj.Object, true, path...); err != nil {
			t.Fatal(err)
		}
		cached := kind.object()
		if kind.cached(spottest.DefaultKeys, spottest.MustLabels(t)).Keep(obj, cached); !kind.stalled(cached) || kind.stalled(kind.object()) {
			t.Errorf("a paused %s is not stalled", name)
		}
	}
}

func TestAPlanMadeBeforeItsWorkloadIsSeenIsShownOnceItIs(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil))
	d := deployment(2, "true", mixed("50"))
	key := keyOf(KindDeployment, d)
	s.follower.directory.setView(report.Workload{Member: testMember, WorkloadKey: key, State: plan.StateConverged})
	if n := len(s.List(testMember, "")); n != 0 {
		t.Errorf("%d workloads are shown before one is known", n)
	}
	s.cache(d)
	if views := s.List(testMember, "shop"); len(views) != 1 || views[0].State != plan.StateConverged {
		t.Errorf("shows %+v, want the plan that was made", views)
	}
	s.follower.gone(d)
	if n := len(s.follower.directory.plans); n != 0 {
		t.Errorf("%d plans are kept of workloads that are gone", n)
	}
}

// Three replicas run on spot, and belong on-demand.
func TestTheSeriesOfAWorkloadSayWhatItsReconcileDid(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := deployment(3, "true", mixed("0"))
	objects := []client.Object{namespace("true", nil), d, counted(3)}
	for i := range 3 {
		objects = append(objects, running(fmt.Sprintf("web-%d", i), fmt.Sprint(i), "node-spot"))
	}
	r := newReleases(t, func(o *Options) { o.Registerer = registry }, objects...)
	r.round(t, d)
	if len(r.evicted) != 1 {
		t.Fatalf("evicted: %v", r.evicted)
	}
	for name, want := range map[string]map[string]float64{
		"plimsoll_plan_seconds": {"": 1}, "plimsoll_moves_total": {testMember: 1}, "plimsoll_replacements_total": {},
		"plimsoll_workload_replicas": {
			"spot/wanted/Deployment/" + testMember + "/web/shop": 0, "spot/actual/Deployment/" + testMember + "/web/shop": 3,
			"on-demand/wanted/Deployment/" + testMember + "/web/shop": 3, "on-demand/actual/Deployment/" + testMember + "/web/shop": 0,
		},
	} {
		if got := spottest.Series(t, registry, name); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
