package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawSupply(t *rapid.T, name string) Supply {
	s := Supply{
		Room:  rapid.SampledFrom([]int{0, 1, 3, Unbounded, Unbounded}).Draw(t, name+" room"),
		Price: float64(rapid.IntRange(0, 3).Draw(t, name+" price")),
		Start: time.Duration(rapid.IntRange(0, 5).Draw(t, name+" start")) * time.Minute,
		Life:  time.Duration(rapid.IntRange(0, 20).Draw(t, name+" life")) * time.Hour,
	}
	if rapid.IntRange(0, 3).Draw(t, name+" dry") == 0 {
		s.DrySince = epoch.Add(-time.Minute)
	}
	return s
}

func drawFleet(t *rapid.T) *Fleet {
	f := &Fleet{}
	for i := range rapid.IntRange(1, 7).Draw(t, "members") {
		m := Member{Name: fmt.Sprintf("m%d", i), Domain: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "domain")}
		m.Spot, m.OnDemand = drawSupply(t, "spot"), drawSupply(t, "on-demand")
		m.OnDemand.Price += 3
		if rapid.IntRange(0, 9).Draw(t, "away") == 0 {
			m.UnreachableSince = epoch.Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, "for")) * time.Second)
		}
		f.Members = append(f.Members, m)
	}
	return f
}

func drawPolicy(t *rapid.T, f *Fleet) Policy {
	p := Policy{
		Replicas:       rapid.IntRange(0, 20).Draw(t, "replicas"),
		MinOnDemand:    rapid.IntRange(0, 8).Draw(t, "floor"),
		SpotPercentage: rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "percent"),
		ExtraSpot:      rapid.IntRange(0, 4).Draw(t, "extra"),
		Spread:         Spread{Member: rapid.SampledFrom([]int{0, 0, 40}).Draw(t, "in a member"), Domain: rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "in a domain")},
		Tiers:          make([]Tier, rapid.IntRange(1, 3).Draw(t, "tiers")),
		Pace:           Pace{Moves: rapid.IntRange(1, 5).Draw(t, "pace")},
	}
	for _, m := range f.Members {
		tier := rapid.IntRange(0, len(p.Tiers)).Draw(t, "tier")
		if tier == len(p.Tiers) {
			continue
		}
		c := Choice{Member: m.Name, Weight: rapid.IntRange(0, 4).Draw(t, "weight")}
		if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
			c.Max = rapid.IntRange(1, 6).Draw(t, "max")
			c.Min = rapid.IntRange(0, c.Max).Draw(t, "min")
		}
		p.Tiers[tier] = append(p.Tiers[tier], c)
	}
	return p
}

func drawCount(t *rapid.T, name string) Count {
	n := func(what string) int { return rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, name+" "+what) }
	return Count{Ready: n("ready"), Starting: n("starting"), Waiting: n("waiting"), Leaving: n("leaving")}
}

func drawPlacement(t *rapid.T, f *Fleet) Placement {
	p := Placement{Name: "n/w", Policy: drawPolicy(t, f)}
	for _, m := range f.Members {
		p.Running = append(p.Running, Running{Member: m.Name, Spot: drawCount(t, "spot"), OnDemand: drawCount(t, "on-demand")})
	}
	return p
}

// reachable reports whether a member's replicas can be changed.
func reachable(f *Fleet, name string) bool {
	for _, m := range f.Members {
		if m.Name == name {
			return m.UnreachableSince.IsZero()
		}
	}
	return false
}

func TestBoundsAndFloorHoldInEveryPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		p := drawPlacement(t, f)
		r := Plan(f, &p, epoch)
		checkBounds(t, f, &p, &r)
		checkNothingGoesTooEarly(t, f, &p, &r)
		if again := Plan(f, &p, epoch); cmp.Diff(r, again) != "" {
			t.Fatal("equal inputs have other plans")
		}
	})
}

func checkBounds(t *rapid.T, f *Fleet, p *Placement, r *Result) {
	spot, onDemand, away := 0, 0, 0
	byName := map[string]Wanted{}
	for _, m := range r.Members {
		byName[m.Member] = m
		if !reachable(f, m.Member) {
			away += m.Spot + m.OnDemand
			continue
		}
		spot, onDemand = spot+m.Spot, onDemand+m.OnDemand
	}
	n := p.Policy.Replicas
	if away == 0 && spot+onDemand != n-r.Unplaced+r.Insurance {
		t.Fatalf("%d and %d of %d, %d unplaced, %d insurance", spot, onDemand, n, r.Unplaced, r.Insurance)
	}
	if r.Insurance > p.Policy.ExtraSpot {
		t.Fatalf("%d extra replicas", r.Insurance)
	}
	if floor := min(p.Policy.MinOnDemand, n); away == 0 && r.Unplaced == 0 && onDemand < floor {
		t.Fatalf("%d on-demand, and the floor is %d", onDemand, floor)
	}
	inDomain := map[string]int{}
	for _, tier := range p.Policy.Tiers {
		for _, c := range tier {
			m := byName[c.Member]
			if !reachable(f, c.Member) {
				continue
			}
			inDomain[memberNamed(f, c.Member).Domain] += m.Spot + m.OnDemand
			most := n + p.Policy.ExtraSpot
			if c.Max > 0 {
				most = c.Max
			}
			if s := p.Policy.Spread.Member; s > 0 {
				most = min(most, max(n*s/100, 1))
			}
			if m.Spot+m.OnDemand > most {
				t.Fatalf("%s has %d and %d of at most %d", c.Member, m.Spot, m.OnDemand, most)
			}
		}
	}
	for domain, has := range inDomain {
		if s := p.Policy.Spread.Domain; s > 0 && domain != "" && has > max(n*s/100, 1) {
			t.Fatalf("domain %s has %d, and at most %d %% of %d may be there", domain, has, s, n)
		}
	}
}

// checkNothingGoesTooEarly: what the moves leave serves as many as are wanted, or as many as did before.
func checkNothingGoesTooEarly(t *rapid.T, f *Fleet, p *Placement, r *Result) {
	before, onDemandBefore, gone, onDemandGone := 0, 0, 0, 0
	running := map[string]Running{}
	for _, run := range p.Running {
		running[run.Member] = run
		if reachable(f, run.Member) {
			before += run.Spot.Ready + run.OnDemand.Ready
			onDemandBefore += run.OnDemand.Ready
		} else if away := epoch.Sub(memberNamed(f, run.Member).UnreachableSince); away < DefaultGrace {
			before += run.Spot.Ready + run.OnDemand.Ready
			onDemandBefore += run.OnDemand.Ready
		}
	}
	for _, m := range r.Moves {
		if !reachable(f, m.Member) {
			t.Fatalf("%s is out of reach: %+v", m.Member, m)
		}
		run := running[m.Member]
		notReady := run.Spot.Starting + run.Spot.Waiting
		if m.Capacity == OnDemand {
			notReady = run.OnDemand.Starting + run.OnDemand.Waiting
		}
		if m.By < 0 {
			n := max(-m.By-notReady, 0)
			if gone += n; m.Capacity == OnDemand {
				onDemandGone += n
			}
		}
	}
	if gone > 0 && before-gone < p.Policy.Replicas {
		t.Fatalf("%d of %d go, and %d are wanted", gone, before, p.Policy.Replicas)
	}
	if floor := min(p.Policy.MinOnDemand, p.Policy.Replicas); onDemandGone > 0 && onDemandBefore-onDemandGone < floor {
		t.Fatalf("%d of %d on-demand go, and the floor is %d", onDemandGone, onDemandBefore, floor)
	}
}

func memberNamed(f *Fleet, name string) Member {
	for _, m := range f.Members {
		if m.Name == name {
			return m
		}
	}
	return Member{}
}

func TestThePlanComesToRestAndIsEmptyThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		p := drawPlacement(t, f)
		capacity := capacityOf(f, &p)
		var r Result
		for step := range 200 {
			if r = Plan(f, &p, epoch); step > 0 && len(r.Moves) == 0 {
				break
			}
			p = applied(p, &r)
			capacity.left(f, &p)
		}
		if len(r.Moves) > 0 {
			t.Fatalf("it goes on: %v", r.Moves)
		}
		if r.Unplaced > 0 {
			return // what has no place elsewhere keeps serving where it should not be
		}
		if len(r.Later) > 0 {
			t.Fatalf("it goes on: now %v, later %v", r.Moves, r.Later)
		}
		for _, m := range r.Members {
			if m.Spot != m.SpotNow || m.OnDemand != m.OnDemandNow {
				t.Fatalf("at rest, and not as planned: %+v", m)
			}
		}
	})
}

// capacity is how many replicas each supply can run in all, by member and type.
type capacity map[string]*[2]int

func capacityOf(f *Fleet, p *Placement) capacity {
	c := capacity{}
	for i := range f.Members {
		m := &f.Members[i]
		c[m.Name] = &[2]int{m.Spot.Room, m.OnDemand.Room}
	}
	for _, run := range p.Running {
		c[run.Member][Spot] = min(c[run.Member][Spot]+run.Spot.have(), Unbounded)
		c[run.Member][OnDemand] = min(c[run.Member][OnDemand]+run.OnDemand.have(), Unbounded)
	}
	return c
}

// left makes the room in a fleet what the replicas of a placement leave: capacity that stands still is not capacity that grows with
// what it runs.
func (c capacity) left(f *Fleet, p *Placement) {
	for _, run := range p.Running {
		for i := range f.Members {
			if m := &f.Members[i]; m.Name == run.Member {
				all := c[m.Name]
				m.Spot.Room, m.OnDemand.Room = leftOf(all[Spot], run.Spot), leftOf(all[OnDemand], run.OnDemand)
			}
		}
	}
}

func leftOf(all int, runs Count) int {
	if all == Unbounded {
		return Unbounded
	}
	return max(all-runs.have(), 0)
}

func TestOneReplicaMoreMovesFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for i := range f.Members {
			f.Members[i].Spot.Room, f.Members[i].OnDemand.Room = Unbounded, Unbounded
		}
		p := Placement{Name: "n/w", Policy: drawPolicy(t, f)}
		p.Policy.ExtraSpot, p.Policy.Spread = 0, Spread{}
		for i := range p.Policy.Tiers {
			for j := range p.Policy.Tiers[i] {
				p.Policy.Tiers[i][j].Min = 0
			}
		}
		first := Plan(f, &p, epoch)
		p = applied(p, &first)
		for _, m := range first.Members {
			p.Running = append(p.Running[:0:0], p.Running...)
			for i := range p.Running {
				if p.Running[i].Member == m.Member {
					p.Running[i] = ready(m.Member, m.Spot, m.OnDemand)
				}
			}
		}
		p.Policy.Replicas++
		second := Plan(f, &p, epoch)
		if first.Unplaced+second.Unplaced > 0 {
			return
		}
		changed := 0
		for i := range first.Members {
			a, b := first.Members[i], second.Members[i]
			changed += abs(a.Spot-b.Spot) + abs(a.OnDemand-b.OnDemand)
		}
		if changed > 5 {
			t.Fatalf("%d numbers change:\n%v\n%v", changed, splitOf(&first), splitOf(&second))
		}
	})
}

func abs(n int) int { return max(n, -n) }
