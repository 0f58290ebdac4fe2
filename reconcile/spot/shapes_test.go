package spot

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAPodIsCachedWithItsShapeOnlyWhileNoNodeHasIt(t *testing.T) {
	keys, capacityType := policy.Keys{Prefix: policy.DefaultPrefix}, capacity.Labels{}
	kind := podKind(keys, capacityType)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{keys.Slot(): "3", plan.TemplateHash: "abc", "app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, {Type: corev1.PodInitialized}}},
	}
	var cached corev1.Pod
	cached.Namespace = pod.Namespace
	for range 3 { // once for every controller that declares the kind
		kind.Keep(pod, &cached)
	}
	if shape, ok := shapeOf(&cached); !ok || shape.CPU != 250 {
		t.Errorf("the shape is %v", shape)
	}
	if len(cached.Labels) != 2 || len(cached.Spec.Containers) != 0 || len(cached.Status.Conditions) != 1 {
		t.Errorf("more is cached than is read: %+v", cached)
	}
	pod.Spec.NodeName = "n"
	var bound corev1.Pod
	kind.Keep(pod, &bound)
	if _, ok := shapeOf(&bound); ok || len(bound.Status.Conditions) != 0 {
		t.Errorf("of a bound pod more is cached than is read: %+v", bound)
	}
}

// Steering multiplies a pod's alternatives, and adds what it needs on the nodes of providers.
func TestASteeredPodHasTheShapeOfItsTemplate(t *testing.T) {
	labels := spottest.MustLabels(t)
	zones := spottest.Required(spottest.Term(spottest.Requirement("zone", corev1.NodeSelectorOpIn, "a")), spottest.Term(spottest.Requirement("zone", corev1.NodeSelectorOpIn, "b")))
	for name, own := range map[string]*corev1.Affinity{
		"none":         nil,
		"one term":     {NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: spottest.Required(zones.NodeSelectorTerms[0])}},
		"alternatives": {NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: zones}},
	} {
		for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
			template := corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}, Affinity: own.DeepCopy()}
			pod := *template.DeepCopy()
			steered(t, labels, map[string]string{labelAKSPool: "a"}, map[string]string{labelEKS: "SPOT"}).Steer(&pod, capacityType, nil)
			if diff := cmp.Diff(capacity.RequirementsOf(&template, "shop", "", labels), capacity.RequirementsOf(&pod, "shop", "", labels)); diff != "" {
				t.Errorf("%s, %s: %s", name, capacityType, diff)
			}
		}
	}
}

func TestAShapeThatIsTooLongToBeReadIsNotKept(t *testing.T) {
	var cached appsv1.ReplicaSet
	var template corev1.PodTemplateSpec
	for n := range 2000 {
		template.Spec.Tolerations = append(template.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("example.com/", n, strings.Repeat("a", 40))})
	}
	keepTemplate(&cached, &template, &cached.Spec.Template, capacity.Labels{})
	if shape, known := shapeOf(&cached); known || len(cached.Annotations) != 0 {
		t.Errorf("%d annotations are kept, of %d tolerations", len(cached.Annotations), len(shape.Tolerations))
	}
}

// The budgets of caches count the texts of shapes. What they say takes several times as much, and is not kept for every owner.
func TestOwnersKeepShapesAsTextOnly(t *testing.T) {
	const owners, values = 400, 6000
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	sets := make([]*appsv1.ReplicaSet, owners)
	texts := 0
	for n := range sets {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", n), UID: types.UID(fmt.Sprint("set-", n))}}
		need := corev1.NodeSelectorRequirement{Key: fmt.Sprint("key-", n), Operator: corev1.NodeSelectorOpNotIn}
		for v := range values {
			need.Values = append(need.Values, fmt.Sprint(v))
		}
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: spottest.Required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{need}})}}}}
		keepTemplate(set, &template, &set.Spec.Template, capacity.Labels{})
		sets[n] = set
		texts += len(set.Annotations[annotationShape])
	}
	before := inUse()
	for _, set := range sets {
		d.setReplicaSet(set, false, time.Now())
	}
	took := inUse() - before
	for _, set := range sets {
		if got := d.owner(ownerKey{"shop", set.UID}).template.needs(); len(got) != 1 || len(got[0][0].MatchExpressions[0].Values) != values {
			t.Fatalf("%s asks for %d needs", set.Name, len(got))
		}
	}
	if took > texts {
		t.Errorf("%d owners take %d MiB beside their %d MiB of text", owners, took>>20, texts>>20)
	}
	runtime.KeepAlive(sets)
}

// inUse is how much of the heap is reachable, in bytes.
func inUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
