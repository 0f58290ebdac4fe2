package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// TestReadingAPodAllocatesNothing reads a pod as a plan reads each of 80,000, with a prefix that is longer than most.
func TestReadingAPodAllocatesNothing(t *testing.T) {
	keys, err := policy.NewKeys("placement.of.all.workloads.example.com")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", ResourceVersion: "7", Labels: map[string]string{keys.Slot(): "3", plan.TemplateHash: "abc"},
			Annotations: map[string]string{keys.Reservation(): "r", keys.Moved(): policy.MovedValue, policy.DeletionCost: "5"},
		},
		Spec: corev1.PodSpec{NodeName: "node"},
	}
	ofPods := keys.OfPods()
	var read plan.Pod
	if allocations := testing.AllocsPerRun(100, func() { read = plan.PodOf(ofPods, pod, capacity.Spot) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	if read.Slot != 3 || read.Hash != "abc" || read.Reservation != "r" || !read.Moved || read.DeletionCost != "5" || read.DoNotDisrupt || read.Released != nil {
		t.Errorf("read %+v", read)
	}
}
