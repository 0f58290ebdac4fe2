package spot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestEqualShapesAreHeldOnce(t *testing.T) {
	in := interned{texts: map[string]string{}}
	for range maxInterned {
		in.text("the same")
	}
	if len(in.texts) != 1 {
		t.Errorf("%d are held", len(in.texts))
	}
	for n := range 2 * maxInterned {
		in.text(string(rune(n)) + "another")
	}
	if len(in.texts) > maxInterned {
		t.Errorf("%d are held", len(in.texts))
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

// No budget counts these texts, and they stay when the objects have gone.
func TestLargeShapesWithoutEndTakeLittle(t *testing.T) {
	in := interned{texts: map[string]string{}}
	for n := range 1000 {
		in.text(fmt.Sprint(n) + strings.Repeat("a", capacity.MaxText-10))
		in.text(fmt.Sprint(n) + strings.Repeat("a", capacity.MaxText))
	}
	bytes := 0
	for text := range in.texts {
		bytes += len(text)
	}
	if bytes == 0 || bytes > maxInternedBytes || bytes != in.bytes {
		t.Errorf("%d bytes are held, and %d are counted", bytes, in.bytes)
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
