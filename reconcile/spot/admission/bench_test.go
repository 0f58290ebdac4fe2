package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/admissiontest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

func BenchmarkAdmitPatch(b *testing.B) {
	p := admissiontest.MustPatcher(b)
	in := &admission.Incoming{ReplicaSet: true, Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c"},
		Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}}}
	r := plan.Reservation{ID: "0b5c2c3e-3f6f-4a52-9d1b-000000000001", Slot: 57, Capacity: capacity.Spot}
	steering, dst := spottest.MustLabels(b).Configured(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = p.AppendPatch(dst[:0], in, steering, r)
	}
}
