package fleet

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is to be stopped in a member is what a workload that shrinks gives up: nothing that is further than something that stays, and
// nothing while others are started there.
func TestAShrinkingMemberGivesUpWhatIsMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		p := drawPlacement(t, f)
		r := Plan(f, &p, epoch)
		for i, run := range p.Running {
			var more, less int
			for _, m := range r.Moves {
				if m.Member == run.Member {
					more, less = max(more, m.By), min(less, m.By)
				}
			}
			if more > 0 && less < 0 {
				t.Fatalf("%s: one type is started and the other stopped: %+v", run.Member, r.Moves)
			}
			var now Wanted
			for _, m := range r.Members {
				if m.Member == run.Member {
					now = m
				}
			}
			// The workload takes the least far first, whatever their types: as many of each type must be left as the plan says.
			gone := run.Spot.have() + run.OnDemand.have() - now.SpotNow - now.OnDemandNow
			if less == 0 || !reachable(f, run.Member) {
				continue
			}
			stopSpot, stopOnDemand := run.Spot.have()-now.SpotNow, run.OnDemand.have()-now.OnDemandNow
			for _, each := range [][2]int{{run.Spot.Waiting, run.OnDemand.Waiting}, {run.Spot.Starting, run.OnDemand.Starting}, {run.Spot.Ready, run.OnDemand.Ready}} {
				all := each[0] + each[1]
				if gone < all { // among equals the deletion cost decides
					break
				}
				gone, stopSpot, stopOnDemand = gone-all, stopSpot-each[0], stopOnDemand-each[1]
			}
			if stopSpot < 0 || stopOnDemand < 0 {
				t.Fatalf("%s (%d): %+v is to become %+v, and what is least far is not what is to go", run.Member, i, run, now)
			}
		}
	})
}

// Placements that are planned in one go do not give out the same room twice.
func TestPlacementsThatArePlannedTogetherShareTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		var all []Placement
		for i := range rapid.IntRange(2, 6).Draw(t, "placements") {
			p := Placement{Name: fmt.Sprintf("n/%d", i), Policy: drawPolicy(t, f)}
			all = append(all, p)
		}
		var started [2]map[string]int
		started[Spot], started[OnDemand] = map[string]int{}, map[string]int{}
		for _, r := range PlanAll(f, all, epoch) {
			for _, m := range r.Members {
				started[Spot][m.Member] += m.Spot
				started[OnDemand][m.Member] += m.OnDemand
			}
		}
		for i := range f.Members {
			for c := range started {
				if room := f.Members[i].of(Capacity(c)).Room; started[c][f.Members[i].Name] > room {
					t.Fatalf("%s has room for %d on %s, and gets %d", f.Members[i].Name, room, Capacity(c), started[c][f.Members[i].Name])
				}
			}
		}
	})
}

// A member that is taken away and comes back leaves the plan where it was.
func TestAMemberThatComesBackIsUsedAsBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for i := range f.Members {
			f.Members[i].UnreachableSince = time.Time{}
			f.Members[i].Spot.Room, f.Members[i].OnDemand.Room = Unbounded, Unbounded
		}
		p := Placement{Name: "n/w", Policy: drawPolicy(t, f)}
		p.Policy.ExtraSpot = 0
		rest := func() Result {
			for range 200 {
				r := Plan(f, &p, epoch)
				if len(r.Moves) == 0 {
					return r
				}
				p = applied(p, &r)
			}
			t.Fatal("it never comes to rest")
			return Result{}
		}
		total := func(r Result) (n int) {
			for _, m := range r.Members {
				if reachable(f, m.Member) {
					n += m.Spot + m.OnDemand
				}
			}
			return n
		}
		before := rest()
		away := rapid.IntRange(0, len(f.Members)-1).Draw(t, "member")
		f.Members[away].UnreachableSince = epoch.Add(-time.Hour)
		without := rest()
		if total(without)+without.Unplaced != p.Policy.Replicas+without.Insurance {
			t.Fatalf("%d replicas and %d unplaced without %s, of %d and %d more", total(without), without.Unplaced, f.Members[away].Name, p.Policy.Replicas, without.Insurance)
		}
		f.Members[away].UnreachableSince = time.Time{}
		after := rest()
		if total(after) != total(before) {
			t.Fatalf("%d replicas before and %d after", total(before), total(after))
		}
	})
}
