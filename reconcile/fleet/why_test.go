package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// whyOf returns what is said of a member.
func whyOf(t *testing.T, f *Fleet, p Placement, member string) (Explanation, Why) {
	t.Helper()
	e, ok := Explain(f, []Placement{p}, p.Name, epoch)
	if !ok {
		t.Fatal("there is no such placement")
	}
	at := slices.IndexFunc(e.Members, func(w Why) bool { return w.Member == member })
	if at < 0 {
		t.Fatalf("nothing is said of %s", member)
	}
	return e, e.Members[at]
}

func TestAnExplanationSaysWhatWouldHaveToChangeAndWhatComesOfIt(t *testing.T) {
	policy := Policy{Replicas: 9, MinOnDemand: 3, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b", "c")}}
	for name, c := range map[string]struct {
		change func(f *Fleet, p *Placement)
		member string
		want   []Obstacle
	}{
		"nothing is in the way": {func(*Fleet, *Placement) {}, "a", nil},
		"a drought": {func(f *Fleet, _ *Placement) { f.Members[0].Spot.DrySince = epoch.Add(-1) }, "a", []Obstacle{
			{Is: "spot has no room for more", Change: "spot must have room again", Spot: 2, OnDemand: 1},
		}},
		"out of reach": {func(f *Fleet, _ *Placement) { f.Members[0].UnreachableSince = epoch.Add(-DefaultGrace) }, "a", []Obstacle{
			{Is: "it is unreachable", Change: "it must be reachable", Spot: 2, OnDemand: 1},
		}},
		"no part": {func(_ *Fleet, p *Placement) { p.Running = []Running{{Member: "a", Out: "read-only"}} }, "a", []Obstacle{
			{Is: "read-only", Change: "its workload must take part there", Spot: 2, OnDemand: 1},
		}},
		"a maximum": {func(_ *Fleet, p *Placement) { p.Policy.Tiers[0][0].Max = 1 }, "a", []Obstacle{
			{Is: "its maximum is 1", Change: "its maximum must be higher", Spot: 2, OnDemand: 1},
		}},
		"a later tier": {func(_ *Fleet, p *Placement) { p.Policy.Tiers = []Tier{tierOf("a", "b"), tierOf("c")} }, "c", []Obstacle{
			{Is: "the tiers before tier 2 run all replicas that are wanted", Change: "it must be in the first tier", Spot: 2, OnDemand: 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := fleetOf("a", "b", "c"), Placement{Name: "web", Policy: policy}
			p.Policy.Tiers = cloneTiers(policy.Tiers)
			c.change(f, &p)
			_, why := whyOf(t, f, p, c.member)
			if diff := cmp.Diff(c.want, why.Obstacles); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExplanationSaysWhyACapacityTypeIsUsed(t *testing.T) {
	f := fleetOf("a", "b")
	for i := range f.Members {
		f.Members[i].Spot.DrySince = epoch.Add(-1)
	}
	e, why := whyOf(t, f, Placement{Name: "web", Policy: Policy{Replicas: 8, MinOnDemand: 2, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b")}}}, "a")
	if why.Capacity[Spot] != "" || !strings.Contains(why.Capacity[OnDemand], "require 2 in the fleet, and 6 more replace spot") {
		t.Errorf("%q", why.Capacity)
	}
	if said := strings.Join(e.Summary, "\n"); !strings.Contains(said, "6 replicas are on on-demand because spot has no room") || !strings.Contains(said, "0 on spot and 8 on on-demand") {
		t.Errorf("summary:\n%s", said)
	}
}

// An explanation is of the plan that is carried out, and asking for it changes nothing of that.
func TestAnExplanationIsOfThePlanThatIsMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		placements := make([]Placement, rapid.IntRange(1, 4).Draw(t, "placements"))
		for i := range placements {
			placements[i] = drawPlacement(t, f)
			placements[i].Name = string(rune('d' - i))
		}
		before := PlanAll(f, placements, epoch)
		for i := range placements {
			e, ok := Explain(f, placements, placements[i].Name, epoch)
			one, also := PlanOne(f, placements, placements[i].Name, epoch)
			if !ok || !also {
				t.Fatalf("placement %q is not found", placements[i].Name)
			}
			if diff := cmp.Diff(before[i], e.Result); diff != "" {
				t.Fatalf("the explanation of %s is of another plan (-made +explained):\n%s", placements[i].Name, diff)
			}
			if diff := cmp.Diff(before[i], one); diff != "" {
				t.Fatalf("one plan of %s is another (-made +alone):\n%s", placements[i].Name, diff)
			}
		}
		if diff := cmp.Diff(before, PlanAll(f, placements, epoch)); diff != "" {
			t.Fatalf("the plans are others after explanations:\n%s", diff)
		}
	})
}
