package plan_test

import (
	"fmt"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// BenchmarkPlan is one plan of a workload of so many pods, all of which have a budget, in each of the things that it may be at.
func BenchmarkPlan(b *testing.B) {
	m := policy.Mix{Percent: 70, Floor: 1, Managed: true}
	for _, n := range []int{20, 1000, 5000} {
		for _, c := range []struct {
			name    string
			percent int
			change  func(o *plan.Observed, s *plan.Settings)
		}{
			{"converged", 70, func(*plan.Observed, *plan.Settings) {}},
			{"moving", 10, func(*plan.Observed, *plan.Settings) {}},
			{"releasing", 10, func(_ *plan.Observed, s *plan.Settings) { s.Strategy = policy.StrategyRelease }},
			{"unassigned", 70, func(o *plan.Observed, _ *plan.Settings) {
				for i := range o.Pods {
					o.Pods[i].Slot = plan.NoSlot
				}
			}},
			{"interrupted", 70, func(o *plan.Observed, _ *plan.Settings) {
				plantest.InterruptSlots(o.Pods, plan.Interruption{Node: "n"}, spottest.UpTo(len(o.Pods)/2)...)
			}},
			{"dry", 70, func(o *plan.Observed, _ *plan.Settings) {
				o.Owners[0].DrySince = spottest.Epoch
				for i := range o.Pods {
					if o.Pods[i].Capacity == capacity.Spot {
						o.Pods[i].Bound, o.Pods[i].Ready, o.Pods[i].UnschedulableSince = false, false, spottest.Epoch
					}
				}
			}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				o, s := plantest.ObservedOf(plantest.Replicas(n, m), n), plantest.DefaultSettings
				o.Budgets = []plan.Budget{{Name: "web", Allowed: n}}
				room := []int{0}
				for i := range o.Pods {
					o.Pods[i].Hash, o.Pods[i].Budgets = "abc", room
				}
				c.change(&o, &s)
				b.ReportAllocs()
				for b.Loop() {
					plan.Plan(o, spottest.PolicyOf(c.percent, 1), s, spottest.Epoch)
				}
			})
		}
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
