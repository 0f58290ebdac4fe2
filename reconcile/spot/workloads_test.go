package spot

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

func workloadKind(t *testing.T, apiVersion, kind string) WorkloadKind {
	t.Helper()
	k, err := NewWorkloadKind(apiVersion, kind, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rolloutsAndCloneSets configures one kind that owns ReplicaSets, and one that owns pods.
func rolloutsAndCloneSets(t *testing.T) func(*Options) {
	return func(o *Options) {
		o.Kinds = []WorkloadKind{workloadKind(t, "argoproj.io/v1alpha1", "Rollout"), workloadKind(t, "apps.kruise.io/v1alpha1", "CloneSet")}
	}
}

func configuredObject(apiVersion, kind string, replicas int64, annotations map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"spec": map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "app", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}}}}}},
		"status": map[string]any{"replicas": replicas},
	}}
	obj.SetNamespace("shop")
	obj.SetName("web")
	obj.SetUID(types.UID(kind + "-web"))
	obj.SetLabels(labelled("true"))
	obj.SetAnnotations(annotations)
	return obj
}

// ofController is a ReplicaSet of something, or with an empty kind of nothing.
func ofController(apiVersion, kind string, replicas int32) *appsv1.ReplicaSet {
	set := replicaSet(replicas, -1)
	set.Annotations = nil
	if set.OwnerReferences[0].APIVersion, set.OwnerReferences[0].Kind = apiVersion, kind; kind == "" {
		set.OwnerReferences = nil
	}
	return set
}

func ownedBy(n int, apiVersion, kind, name, uid string) *PodRequest {
	request := incoming(n)
	request.Owner = OwnerRef{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
	return request
}

func TestEveryKindOfWorkloadIsPlacedWhetherTheCacheKnowsItOrNot(t *testing.T) {
	bare := ofController("", "", 10)
	bare.Labels, bare.Annotations = labelled("true"), mixed("70")
	for name, c := range map[string]struct {
		objects []client.Object
		owner   OwnerRef
		key     string
	}{
		"a ReplicaSet without a controller": {[]client.Object{bare}, OwnerRef{"apps/v1", "ReplicaSet", "web-1", "set-web-1"}, "ReplicaSet web-1"},
		"a Rollout through its ReplicaSet": {
			[]client.Object{configuredObject("argoproj.io/v1alpha1", "Rollout", 10, mixed("70")), ofController("argoproj.io/v1alpha1", "Rollout", 10)},
			OwnerRef{"apps/v1", "ReplicaSet", "web-1", "set-web-1"}, "Rollout.argoproj.io web",
		},
		"a CloneSet that owns its pods": {
			[]client.Object{configuredObject("apps.kruise.io/v1alpha1", "CloneSet", 10, mixed("70"))},
			OwnerRef{"apps.kruise.io/v1beta1", "CloneSet", "web", "CloneSet-web"}, "CloneSet.apps.kruise.io web",
		},
	} {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cached %v", name, cached), func(t *testing.T) {
				all := append([]client.Object{namespace("true", nil)}, c.objects...)
				s := newShell(t, rolloutsAndCloneSets(t), false, all...)
				if cached {
					s.cache(all...)
				}
				outcomes, costs := map[Outcome]int{}, 0
				for n := range 10 {
					placed := s.place(ownedBy(n, c.owner.APIVersion, c.owner.Kind, c.owner.Name, c.owner.UID))
					outcomes[placed.Outcome]++
					costs += strings.Count(string(placed.Patch), strings.ReplaceAll(policy.DeletionCost, "/", "~1")) + strings.Count(string(placed.Patch), `"`+policy.DeletionCost+`"`)
				}
				if want := map[Outcome]int{OutcomeSpot: 7, OutcomeOnDemand: 3}; !reflect.DeepEqual(outcomes, want) {
					t.Errorf("outcomes %v, want %v", outcomes, want)
				}
				if costs != 10 {
					t.Errorf("%d pods got a deletion cost, want all 10: these kinds look at it", costs)
				}
				if cached != (s.reads.Load() == 0) {
					t.Errorf("%d live reads", s.reads.Load())
				}
				dir := s.directory(testMember)
				s.publishAll()
				var keys []string
				for _, view := range dir.views("") {
					keys = append(keys, view.Kind+" "+view.Name)
				}
				if !reflect.DeepEqual(keys, []string{c.key}) {
					t.Errorf("workloads %v, want %s", keys, c.key)
				}
			})
		}
	}
}

// publishAll pretends that each workload of the directory was planned.
func (s *shell) publishAll() {
	dir := s.directory(testMember)
	dir.mu.RLock()
	var keys []policy.WorkloadKey
	for key := range dir.workloads {
		keys = append(keys, key)
	}
	dir.mu.RUnlock()
	for _, key := range keys {
		dir.setView(report.Workload{WorkloadKey: key})
	}
}

func TestAReplicaSetOfAnUnknownControllerIsReadOnce(t *testing.T) {
	s := newShell(t, nil, false, namespace("true", nil), ofController("argoproj.io/v1alpha1", "Rollout", 3))
	for n := range 3 {
		if p := s.place(incoming(n)); p.Outcome != OutcomeNotOwned {
			t.Errorf("outcome %s", p.Outcome)
		}
	}
	if reads := s.reads.Load(); reads != 2 {
		t.Errorf("%d live reads, want one of the namespace and one of the ReplicaSet", reads)
	}
}

func TestAReplicaSetThatIsAdoptedIsNoWorkloadAnyMore(t *testing.T) {
	s := newShell(t, nil, false)
	bare := ofController("", "", 4)
	bare.Labels, bare.Annotations = labelled("true"), mixed("70")
	s.cache(namespace("true", nil), bare)
	s.publishAll()
	dir := s.directory(testMember)
	if n := len(dir.views("")); n != 1 {
		t.Fatalf("%d workloads", n)
	}
	s.cache(deployment(4, "true", mixed("50")), replicaSet(4, 4))
	s.publishAll()
	if views := dir.views(""); len(views) != 1 || views[0].Kind != KindDeployment {
		t.Errorf("workloads %+v", views)
	}
	s.follower.gone(bare)
	s.cache(bare)
	s.follower.gone(bare)
	if dir.owner(ownerKey{"shop", "set-web-1"}) != nil {
		t.Error("an owner that is gone is remembered")
	}
}

func TestPodsInNamespacesOfOtherTenantsAreNotReadAbout(t *testing.T) {
	s := newShell(t, nil, false, namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	s.follower.directory.only = []string{"cart"}
	if p := s.place(incoming(1)); p.Outcome != OutcomeNotOwned || s.reads.Load() != 0 {
		t.Errorf("outcome %s after %d reads", p.Outcome, s.reads.Load())
	}
}

func TestPodsAreMappedToTheWorkloadBehindTheirController(t *testing.T) {
	s := newShell(t, rolloutsAndCloneSets(t), false)
	bare, rollout := ofController("", "", 1), ofController("argoproj.io/v1beta9", "Rollout", 1)
	bare.Name, bare.UID = "bare", "bare"
	rollout.Name, rollout.UID = "canary", "canary"
	unknown := ofController("example.com/v1", "Rollout", 1)
	unknown.Name, unknown.UID = "unknown", "unknown"
	cache := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(bare, rollout, unknown, replicaSet(1, 1)).Build()
	member := &reconcile.Member{Name: testMember, Reader: cache}
	for _, c := range []struct{ apiVersion, kind, name, uid, wantKind, wantName string }{
		{"apps/v1", "ReplicaSet", "bare", "bare", KindReplicaSet, "bare"},
		{"apps/v1", "ReplicaSet", "canary", "canary", "Rollout.argoproj.io", "web"},
		{"apps/v1", "ReplicaSet", "web-1", "set-web-1", KindDeployment, "web"},
		{"apps/v1", "ReplicaSet", "web-1", "another", "", ""},
		{"apps/v1", "ReplicaSet", "unknown", "unknown", "", ""},
		{"apps/v1", "StatefulSet", "db", "db", KindStatefulSet, "db"},
		{"apps.kruise.io/v1beta1", "CloneSet", "web", "c", "CloneSet.apps.kruise.io", "web"},
		{"apps/v1", "CloneSet", "web", "c", "", ""},
		{"batch/v1", "Job", "job", "j", "", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: c.apiVersion, Kind: c.kind, Name: c.name, UID: types.UID(c.uid), Controller: new(true)}}}}
		found := map[string]string{}
		for _, placed := range s.Placed() {
			for _, key := range s.workloadsOfPod(placed.Name)(context.Background(), member, pod) {
				found[placed.Name] = key.Name
			}
		}
		want := map[string]string{}
		if c.wantKind != "" {
			want[c.wantKind] = c.wantName
		}
		if !reflect.DeepEqual(found, want) {
			t.Errorf("a pod of %s %s: %v, want %v", c.kind, c.name, found, want)
		}
	}
}

func TestAConfiguredKindIsCheckedWithReason(t *testing.T) {
	for want, c := range map[string][4]string{
		"want group/version":               {"a/b/c", "Rollout", "", ""},
		"built-in":                         {"apps/v1", "Deployment", "", ""},
		"want the kind as in manifests":    {"argoproj.io/v1", "rollout", "", ""},
		"want a path of names such as .sp": {"argoproj.io/v1", "Rollout", "spec.replicas", ""},
		"such as .status.replicas":         {"argoproj.io/v1", "Rollout", "", ".spec.replicas"},
		"too long together":                {"a-very-long-group-that-nobody-would-want.example.com/v1", "AndAVeryLongKind", "", ""},
		"its group":                        {"Argo_/v1", "Rollout", "", ""},
	} {
		if _, err := NewWorkloadKind(c[0], c[1], c[2], c[3]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c, err, want)
		}
	}
	twice := []WorkloadKind{workloadKind(t, "argoproj.io/v1alpha1", "Rollout"), workloadKind(t, "argoproj.io/v1", "Rollout")}
	if _, err := newKindTable(twice); err == nil || !strings.Contains(err.Error(), "Rollout.argoproj.io: specified twice") {
		t.Errorf("named twice: %v", err)
	}
}

func TestWhatIsCachedOfAConfiguredKindIsWhatIsReadOfIt(t *testing.T) {
	kind, err := NewWorkloadKind("argoproj.io/v1alpha1", "Rollout", ".spec.size", ".status.HPAReplicas")
	if err != nil {
		t.Fatal(err)
	}
	keys := policy.Keys{Prefix: policy.DefaultPrefix}
	capacityType, err := capacity.NewLabels()
	if err != nil {
		t.Fatal(err)
	}
	from := configuredObject("argoproj.io/v1alpha1", "Rollout", 3, map[string]string{keys.SpotPercentage(): "50", "note": "long"})
	_ = unstructured.SetNestedField(from.Object, int64(7), "spec", "size")
	_ = unstructured.SetNestedField(from.Object, int64(6), "status", "HPAReplicas")
	_ = unstructured.SetNestedField(from.Object, "4", "status", "observedGeneration")
	from.SetGeneration(5)
	into := kind.object()
	into.SetGeneration(5)
	kind.cached(keys, capacityType).Keep(from, into)
	if kind.wanted(into) != 7 || kind.counted(into) != 6 || !kind.rolling(into) {
		t.Errorf("%d wanted, %d counted, rolling %v", kind.wanted(into), kind.counted(into), kind.rolling(into))
	}
	if kind.selector(into).MatchLabels["app"] != "web" || kind.template(into) == nil || kind.template(into).labels["app"] != "web" {
		t.Errorf("selector %v, template %v", kind.selector(into), kind.template(into))
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(into.Object, "spec", "template", "spec"); has || into.GetAnnotations()["note"] != "" {
		t.Errorf("more is cached than is read: %v", into.Object)
	}
	again := kind.object()
	kind.cached(keys, capacityType).Keep(into, again)
	if !reflect.DeepEqual(again.GetAnnotations(), into.GetAnnotations()) {
		t.Error("what was trimmed once loses something when it is trimmed again")
	}
}

func TestAConfiguredKindIsRollingWhileItsControllerSaysSo(t *testing.T) {
	kind := workloadKind(t, "apps.kruise.io/v1alpha1", "CloneSet")
	for name, c := range map[string]struct {
		status map[string]any
		want   bool
	}{
		"nothing is known":           {map[string]any{}, false},
		"the spec was not seen":      {map[string]any{"observedGeneration": int64(4)}, true},
		"it was":                     {map[string]any{"observedGeneration": int64(5)}, false},
		"an old Argo shows a hash":   {map[string]any{"observedGeneration": "58c975674b"}, false},
		"pods are to be updated":     {map[string]any{"updatedReplicas": int64(2), "expectedUpdatedReplicas": int64(3)}, true},
		"a partition leaves others":  {map[string]any{"updatedReplicas": int64(3), "expectedUpdatedReplicas": int64(3)}, false},
		"what is expected is untold": {map[string]any{"updatedReplicas": int64(0)}, false},
	} {
		obj := kind.object()
		obj.SetGeneration(5)
		obj.Object["status"] = c.status
		if got := kind.rolling(obj); got != c.want {
			t.Errorf("%s: rolling %v", name, got)
		}
	}
}
