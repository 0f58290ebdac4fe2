package confine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// podWith is a pause pod with labels and annotations, with changes.
func podWith(labels, annotations map[string]string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "main", Image: "pause:1"}},
	}}
	for _, change := range changes {
		change(&pod.Spec)
	}
	return pod
}

func TestOnlyAPodThatEndsByADeadlineMayBeReleased(t *testing.T) {
	ends := func(seconds int64) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.ActiveDeadlineSeconds = &seconds }
	}
	before := func(changes ...func(*corev1.PodSpec)) *corev1.Pod {
		return podWith(map[string]string{"pod-template-hash": "abc"}, nil, changes...)
	}
	released := func(changes ...func(*corev1.PodSpec)) *corev1.Pod {
		return podWith(map[string]string{"pod-template-hash": "released-abc"}, map[string]string{policy.DefaultPrefix + "/released": "{}"}, changes...)
	}
	for name, test := range map[string]struct {
		asked
		refused string
	}{
		"with a deadline":                   {asked{old: before(), object: released(ends(21600))}, ""},
		"without one":                       {asked{old: before(), object: released()}, "ends by activeDeadlineSeconds"},
		"with one of less than an hour":     {asked{old: before(), object: released(ends(1))}, "no less than an hour"},
		"with one of its own":               {asked{old: before(ends(60)), object: released(ends(60))}, ""},
		"of a release before this rule was": {asked{old: released(), object: released()}, ""},
	} {
		test.operation, test.resource = "UPDATE", "pods"
		expect(t, name, test.refusals(t, account(), "pods"), test.refused)
	}
}

func TestProbesRunAsTheAccountThatAnyPodHas(t *testing.T) {
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "plimsoll", "app.kubernetes.io/name": spot.ProbePriorityClass, policy.DefaultPrefix + "/slot": "probe",
	}
	for name, test := range map[string]struct{ account, refused string }{
		"none is named":        {"", ""},
		"an API server named":  {"default", ""},
		"the hub's":            {"plimsoll-hub", "the account that any pod has"},
		"one of somebody else": {"powerful", "the account that any pod has"},
	} {
		probe := podWith(labels, nil, func(spec *corev1.PodSpec) { spec.ServiceAccountName = test.account })
		expect(t, name, asked{operation: "CREATE", resource: "pods", object: probe}.refusals(t, account(), "pods"), test.refused)
	}
}
