package intake

import (
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAnObjectWeighsAboutWhatItTakes compares the estimate with what copies allocate, all of which they keep, for objects that take many
// times the bytes that a member sends for them. The size of the heap would not do: what tests before have left in the shared pool of bodies is
// freed at some time within a second.
func TestAnObjectWeighsAboutWhatItTakes(t *testing.T) {
	for name, object := range map[string]client.Object{
		"a pod": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9"}},
			Status: corev1.PodStatus{StartTime: new(metav1.Now())}},
		"empty containers":    &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 200)}},
		"empty tolerations":   &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: make([]corev1.Toleration, 1000)}}}},
		"a few labels":        &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: shortLabels(8)}},
		"many short labels":   &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: shortLabels(900)}},
		"empty maps":          &unstructured.Unstructured{Object: map[string]any{"spec": emptyMaps(500)}},
		"pointers to structs": &corev1.Pod{Spec: corev1.PodSpec{Volumes: emptyDirs(100)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			const copies = 1000
			kept := make([]client.Object, copies)
			before := allocated()
			for i := range kept {
				kept[i] = object.DeepCopyObject().(client.Object)
			}
			takes := float64(allocated()-before) / copies
			t.Logf("weighs %d, takes %.0f", weigh(kept[0])-entryBytes, takes)
			g.Expect(float64(weigh(kept[0]) - entryBytes)).To(And(BeNumerically(">", 0.6*takes), BeNumerically("<", 1.7*takes)))
		})
	}
}

func TestALongTextWeighsWhatItHas(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": ""}}}
	before := weigh(pod)
	pod.Annotations["note"] = strings.Repeat("x", 4096)
	NewWithT(t).Expect(weigh(pod) - before).To(BeEquivalentTo(4096))
}

// allocated is how many bytes this process has allocated since it began, freed or not.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func shortLabels(n int) map[string]string {
	labels := make(map[string]string, n)
	for i := range n {
		labels[string(rune('a'+i%26))+string(rune('a'+i/26))] = ""
	}
	return labels
}

func emptyMaps(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{}
	}
	return list
}

func emptyDirs(n int) []corev1.Volume {
	list := make([]corev1.Volume, n)
	for i := range list {
		list[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return list
}

func BenchmarkWeigh(b *testing.B) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", UID: "0b6c9f3e-6b1a-4a53-9f0e-0c4a0d7f8a11", Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9", "plimsoll.dev/slot": "3"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9"}},
	}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: make([]corev1.Container, 1)}}
	b.ReportAllocs()
	for b.Loop() {
		weigh(pod)
	}
}
