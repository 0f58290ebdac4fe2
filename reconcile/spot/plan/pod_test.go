package plan_test

import (
	"testing"
	"unsafe"

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
	if read.Slot != 3 || read.Hash != "abc" || read.Reservation != "r" || !read.Moved || read.DeletionCost.Number() != 5 || read.DoNotDisrupt || read.Released != nil {
		t.Errorf("read %+v", read)
	}
}

// TestTheFieldsThatPlansReadOfEveryPodShareACacheLine holds the order of the fields: a plan of 80,000 replicas takes 1.3 to 1.8 times
// as long where these are spread over the whole struct.
func TestTheFieldsThatPlansReadOfEveryPodShareACacheLine(t *testing.T) {
	const line = 64
	var p plan.Pod
	for name, end := range map[string]uintptr{
		"DoNotDisrupt": unsafe.Offsetof(p.DoNotDisrupt) + unsafe.Sizeof(p.DoNotDisrupt),
		"Slot":         unsafe.Offsetof(p.Slot) + unsafe.Sizeof(p.Slot),
		"Capacity":     unsafe.Offsetof(p.Capacity) + unsafe.Sizeof(p.Capacity),
		"Interruption": unsafe.Offsetof(p.Interruption) + unsafe.Sizeof(p.Interruption),
		"Released":     unsafe.Offsetof(p.Released) + unsafe.Sizeof(p.Released),
		"DeletionCost": unsafe.Offsetof(p.DeletionCost) + unsafe.Sizeof(p.DeletionCost),
	} {
		if end > line {
			t.Errorf("Pod.%s ends at byte %d of the struct; the fields that plans read of every pod end within %d", name, end, line)
		}
	}
}
