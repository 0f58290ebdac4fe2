package admissiontest

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// SpotToleration is the one that pods for spot nodes get.
var SpotToleration = corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}

// MustPatcher returns a patcher with [SpotToleration].
func MustPatcher(t testing.TB) *admission.Patcher {
	t.Helper()
	return admission.NewPatcher(spottest.DefaultKeys, []corev1.Toleration{SpotToleration})
}

// IncomingOf reads off a pod what admission knows of it.
func IncomingOf(pod *corev1.Pod) *admission.Incoming {
	in := &admission.Incoming{Labels: pod.Labels, Annotations: pod.Annotations, NodeSelector: pod.Spec.NodeSelector,
		Tolerations: pod.Spec.Tolerations, ReplicaSet: true}
	in.Affinity = pod.Spec.Affinity != nil
	in.NodeAffinity = in.Affinity && pod.Spec.Affinity.NodeAffinity != nil
	if in.NodeAffinity {
		in.Required = pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		in.Spreads = append(in.Spreads, admission.Spread{Key: c.TopologyKey, Must: c.WhenUnsatisfiable == corev1.DoNotSchedule,
			Affinity: capacity.InclusionPolicy(c.NodeAffinityPolicy), Taints: capacity.InclusionPolicy(c.NodeTaintsPolicy)})
	}
	return in
}

// Patched applies a patch the way an API server does.
func Patched(t spottest.TB, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	if len(patch) == 0 {
		return pod.DeepCopy()
	}
	if !json.Valid(patch) {
		t.Fatalf("not JSON: %s", patch)
	}
	before := pod.DeepCopy()
	before.Name, before.Namespace = "pod", "default"
	c := fake.NewClientBuilder().WithObjects(before).Build()
	got := before.DeepCopy()
	if err := c.Patch(context.Background(), got, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return got
}
