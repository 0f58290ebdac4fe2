package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is known of a supply is measured, and measured again it is another number. Insurance that is started for one of them is not
// stopped for the next.
func TestInsuranceRestsWhileWhatIsMeasuredWobbles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for i := range f.Members {
			m := &f.Members[i]
			m.UnreachableSince, m.Spot.DrySince, m.OnDemand.DrySince = time.Time{}, time.Time{}, time.Time{}
			m.Spot.Room, m.OnDemand.Room = Unbounded, Unbounded
			m.Spot.Price, m.Spot.Notice = 1, 30*time.Second
		}
		p := Placement{Name: "n/w", Policy: drawPolicy(t, f)}
		p.Policy.ExtraSpot = rapid.IntRange(1, 4).Draw(t, "insurance")
		if settle(t, f, &p).Unplaced > 0 {
			return
		}
		up, down := 0, 0
		for range 12 {
			wobbles := &Fleet{}
			for _, m := range f.Members {
				m.Spot, m.OnDemand = wobbled(t, m.Spot), wobbled(t, m.OnDemand)
				wobbles.Members = append(wobbles.Members, m)
			}
			for range 8 {
				r := Plan(wobbles, &p, epoch)
				for _, m := range r.Moves {
					up, down = up+max(m.By, 0), down+max(-m.By, 0)
				}
				p = applied(p, &r)
			}
		}
		if up > 0 && down > 0 {
			t.Fatalf("%d replicas are started and %d stopped", up, down)
		}
	})
}

// wobbled is a supply as it may be measured as well, within 2 percent.
func wobbled(t *rapid.T, s Supply) Supply {
	by := func(what string) float64 { return 1 + float64(rapid.IntRange(-2, 2).Draw(t, what))/100 }
	s.Price *= by("price")
	s.Start = time.Duration(float64(s.Start) * by("start"))
	s.Life = time.Duration(float64(s.Life) * by("life"))
	return s
}
