package spot

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func BenchmarkReserve(b *testing.B) {
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprintf("0b5c2c3e-3f6f-4a52-9d1b-%012d", i)
	}
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprintf("growing to %d", n), func(b *testing.B) {
			b.ReportAllocs()
			a, now, i := NewAccounting(false), spottest.Epoch, 0
			for b.Loop() {
				now = now.Add(time.Microsecond)
				a.Reserve(Ask{ID: ids[i%1000], Wanted: n, Mix: policy.Mix{Percent: 70, Floor: 1, Managed: true}}, now)
				if i++; i%min(n, 1000) == 0 {
					a = NewAccounting(false)
				}
			}
		})
	}
	for _, n := range []int{100, 80_000} { // no pod of which is seen
		b.Run(fmt.Sprintf("at capacity of %d", n), func(b *testing.B) {
			b.ReportAllocs()
			a, now, i := NewAccounting(false), spottest.Epoch, 0
			m := policy.Mix{Percent: 70, Floor: n / 4, Managed: true}
			for range n {
				i++
				a.Reserve(Ask{ID: strconv.Itoa(i), Wanted: n, Mix: m}, now)
			}
			b.ResetTimer()
			for b.Loop() {
				now, i = now.Add(time.Microsecond), i+1
				a.Reserve(Ask{ID: strconv.Itoa(i), Wanted: n, Mix: m, Final: true}, now)
			}
		})
	}
}

// BenchmarkOrdinals is the admission of all pods of a StatefulSet, no pod of which is seen meanwhile.
func BenchmarkOrdinals(b *testing.B) {
	for _, n := range []int{100, 20_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := NewAccounting(true)
				for i := range n {
					a.Reserve(Ask{ID: strconv.Itoa(i), Ordinal: i, Wanted: n, Mix: policy.Mix{Percent: 70, Floor: 3, Managed: true}}, spottest.Epoch)
				}
			}
		})
	}
}

func BenchmarkAdmitPatch(b *testing.B) {
	p := MustPatcher(b)
	in := &Incoming{ReplicaSet: true, Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c"},
		Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}}}
	r := plan.Reservation{ID: "0b5c2c3e-3f6f-4a52-9d1b-000000000001", Slot: 57, Capacity: capacity.Spot}
	steering, dst := spottest.MustLabels(b).Configured(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = p.AppendPatch(dst[:0], in, steering, r)
	}
}

// BenchmarkPlan80000 is one plan of a very large workload.
func BenchmarkPlan80000(b *testing.B) {
	for name, pol := range map[string]policy.Policy{"converged": spottest.PolicyOf(70, 3), "moving": spottest.PolicyOf(30, 3)} {
		b.Run(name, func(b *testing.B) {
			o := plantest.ObservedOf(plantest.Replicas(80_000, policy.Mix{Percent: 70, Floor: 3, Managed: true}), 80_000)
			b.ReportAllocs()
			for b.Loop() {
				plan.Plan(o, pol, plantest.DefaultSettings, spottest.Epoch)
			}
		})
	}
}

func BenchmarkPlan100(b *testing.B) {
	for name, pol := range map[string]policy.Policy{"converged": spottest.PolicyOf(70, 1), "moving": spottest.PolicyOf(30, 1)} {
		b.Run(name, func(b *testing.B) {
			o := plantest.ObservedOf(plantest.Replicas(100, policy.Mix{Percent: 70, Floor: 1, Managed: true}), 100)
			b.ReportAllocs()
			for b.Loop() {
				plan.Plan(o, pol, plantest.DefaultSettings, spottest.Epoch)
			}
		})
	}
}
