package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestASmallChangeMovesFew changes one thing of a fleet that is at rest, and compares the plans before and after. A replica that goes
// elsewhere changes two numbers. Where it is of the other type there, one more may have to be of the other type for it: that is four.
func TestASmallChangeMovesFew(t *testing.T) {
	for name, c := range smallChanges {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := drawFleet(t)
				for i := range f.Members {
					f.Members[i].UnreachableSince = time.Time{}
					f.Members[i].Spot.Room, f.Members[i].OnDemand.Room = Unbounded, Unbounded
					f.Members[i].Spot.TryAt = time.Time{}
				}
				p := Placement{Name: "n/w", Policy: drawPolicy(t, f)}
				p.Policy.ExtraSpot = 0 // how much insurance is worth may change with anything
				before := settle(t, f, &p)
				may := c(t, f, &p, rapid.IntRange(0, len(f.Members)-1).Draw(t, "member"))
				after := settle(t, f, &p)
				if before.Unplaced+after.Unplaced > 0 {
					return // what has no place is wherever it was
				}
				if changed := numbersChanged(&before, &after); changed > may {
					t.Fatalf("%d numbers change, and %d may:\n%v\n%v", changed, may, splitOf(&before), splitOf(&after))
				}
			})
		})
	}
}

// numbersOf is how many numbers may change for so many replicas that a change concerns: four for each, and as many more for what is
// evened out after it.
func numbersOf(concerned int) int { return 4*concerned + 4 }

// smallChanges change one thing about a member or the policy, and return how many numbers of the plan may change for it: none where
// nothing that runs is concerned.
var smallChanges = map[string]func(t *rapid.T, f *Fleet, p *Placement, member int) int{
	"a shape is dry in a member, and what ran there stays": func(_ *rapid.T, f *Fleet, _ *Placement, member int) int {
		f.Members[member].Spot.DrySince = epoch.Add(-time.Minute)
		return 0
	},
	"a shape is dry in a member, and what ran there is taken back": func(_ *rapid.T, f *Fleet, p *Placement, member int) int {
		f.Members[member].Spot.DrySince = epoch.Add(-time.Minute)
		run := runningIn(p, f.Members[member].Name)
		ran := run.Spot.Ready
		run.Spot = Count{Leaving: ran}
		return numbersOf(ran)
	},
	"a price": func(t *rapid.T, f *Fleet, p *Placement, member int) int {
		m := place{Member: &f.Members[member]}
		dear := m.dear()
		supply := m.of(rapid.SampledFrom([]Capacity{Spot, OnDemand}).Draw(t, "of"))
		supply.Price = float64(rapid.IntRange(0, 9).Draw(t, "price"))
		if m.dear() != dear {
			return numbersOf(p.Policy.Replicas) // its spot is of use, or no more: that is another fleet
		}
		return 0
	},
	"one more on-demand": func(_ *rapid.T, _ *Fleet, p *Placement, _ int) int { p.Policy.MinOnDemand++; return numbersOf(1) },
	"one less on-demand": func(_ *rapid.T, _ *Fleet, p *Placement, _ int) int { p.Policy.MinOnDemand--; return numbersOf(1) },
	"a replica more":     func(_ *rapid.T, _ *Fleet, p *Placement, _ int) int { p.Policy.Replicas++; return numbersOf(1) },
	"a replica less":     func(_ *rapid.T, _ *Fleet, p *Placement, _ int) int { p.Policy.Replicas--; return numbersOf(1) },
	"a member is lost": func(_ *rapid.T, f *Fleet, p *Placement, member int) int {
		f.Members[member].UnreachableSince = epoch.Add(-time.Hour)
		run := runningIn(p, f.Members[member].Name)
		return numbersOf(run.Spot.Ready + run.OnDemand.Ready)
	},
}

// settle applies plans until there is nothing to be done, and returns the last.
func settle(t *rapid.T, f *Fleet, p *Placement) Result {
	var r Result
	for range 200 {
		if r = Plan(f, p, epoch); len(r.Moves) == 0 {
			return r
		}
		*p = applied(*p, &r)
	}
	t.Fatalf("it never comes to rest: %v", r.Moves)
	return r
}

// runningIn is what a placement runs in a member.
func runningIn(p *Placement, member string) *Running {
	for i := range p.Running {
		if p.Running[i].Member == member {
			return &p.Running[i]
		}
	}
	return &Running{}
}

// numbersChanged is how far apart two splits are, replica by replica.
func numbersChanged(a, b *Result) int {
	was, changed := map[string]Wanted{}, 0
	for _, m := range a.Members {
		was[m.Member] = m
	}
	for _, m := range b.Members {
		changed += abs(m.Spot-was[m.Member].Spot) + abs(m.OnDemand-was[m.Member].OnDemand)
		delete(was, m.Member)
	}
	for _, m := range was {
		changed += m.Spot + m.OnDemand
	}
	return changed
}
