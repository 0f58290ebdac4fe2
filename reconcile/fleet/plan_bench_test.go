package fleet

import (
	"fmt"
	"testing"
	"time"
)

// benchFleet has members of ten domains with ordinary differences.
func benchFleet(n int) (*Fleet, Tier) {
	f, tier := &Fleet{}, Tier{}
	for i := range n {
		m := memberOf(fmt.Sprintf("member-%03d", i), fmt.Sprintf("region-%d", i%10))
		m.Spot.Life, m.Spot.Start = time.Duration(1+i%20)*time.Hour, 4*time.Minute
		if i%7 == 0 {
			m.Spot.DrySince, m.Spot.TryAt = epoch, epoch
		}
		f.Members = append(f.Members, m)
		tier = append(tier, Choice{Member: m.Name, Weight: 1 + i%3})
	}
	return f, tier
}

func BenchmarkPlan(b *testing.B) {
	f, tier := benchFleet(100)
	for _, replicas := range []int{60, 1000} {
		p := Placement{Name: "n/w", Policy: Policy{Replicas: replicas, SpotPercentage: 80, MinOnDemand: 4, ExtraSpot: 4, Tiers: []Tier{tier}}}
		b.Run(fmt.Sprintf("100 members, %d replicas", replicas), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Plan(f, &p, epoch)
			}
		})
	}
}

func BenchmarkPlanAll(b *testing.B) {
	f, tier := benchFleet(200)
	var all []Placement
	for i := range 1000 {
		all = append(all, Placement{Name: fmt.Sprintf("n/%04d", i), Policy: Policy{
			Replicas: 3 + i%40, SpotPercentage: 80, MinOnDemand: 1, ExtraSpot: 2, Tiers: []Tier{tier[:100], tier[100:]},
		}})
	}
	b.ReportAllocs()
	for b.Loop() {
		PlanAll(f, all, epoch)
	}
}
