package shortage

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// BenchmarkDrought is what shortages cost when every spot node of a member is lost: 200 pods of 20 shapes wait.
func BenchmarkDrought(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		d := NewSpotTracker(DefaultSettings())
		for i := range 200 {
			d.Observe(Pod{UID: types.UID(fmt.Sprint(i)), Requirements: capacity.Requirements{CPU: int64(100 + i%20)}, Timeout: time.Minute, UnschedulableSince: epoch}, epoch)
		}
		d.Step(epoch.Add(time.Minute))
	}
}
