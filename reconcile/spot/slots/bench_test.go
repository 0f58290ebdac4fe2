package slots

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
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
