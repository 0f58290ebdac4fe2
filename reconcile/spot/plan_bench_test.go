package spot

import (
	"fmt"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// BenchmarkPlan is one plan of a workload of so many pods, all of which have a budget, in each of the things that it may be at.
func BenchmarkPlan(b *testing.B) {
	m := policy.Mix{Percent: 70, Floor: 1, Managed: true}
	for _, n := range []int{20, 1000, 5000} {
		for _, c := range []struct {
			name    string
			percent int
			change  func(o *Observed, s *Settings)
		}{
			{"converged", 70, func(*Observed, *Settings) {}},
			{"moving", 10, func(*Observed, *Settings) {}},
			{"releasing", 10, func(_ *Observed, s *Settings) { s.Strategy = policy.StrategyRelease }},
			{"unstamped", 70, func(o *Observed, _ *Settings) {
				for i := range o.Pods {
					o.Pods[i].Slot = NoSlot
				}
			}},
			{"doomed", 70, func(o *Observed, _ *Settings) { DoomSlots(o.Pods, Doom{Node: "n"}, UpTo(len(o.Pods)/2)...) }},
			{"dry", 70, func(o *Observed, _ *Settings) {
				o.Owners[0].DrySince = Epoch
				for i := range o.Pods {
					if o.Pods[i].Capacity == capacity.Spot {
						o.Pods[i].Bound, o.Pods[i].Ready, o.Pods[i].UnschedulableSince = false, false, Epoch
					}
				}
			}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				o, s := ObservedOf(Replicas(n, m), n), DefaultSettings
				o.Budgets = []Budget{{Name: "web", Allowed: n}}
				room := []int{0}
				for i := range o.Pods {
					o.Pods[i].Hash, o.Pods[i].Budgets = "abc", room
				}
				c.change(&o, &s)
				b.ReportAllocs()
				for b.Loop() {
					Plan(o, PolicyOf(c.percent, 1), s, Epoch)
				}
			})
		}
	}
}
