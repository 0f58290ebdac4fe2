package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// memberOf is a member that has room for anything, whose spot capacity is never lost.
func memberOf(name, domain string) Member {
	s := Supply{Room: Unbounded, Start: time.Minute}
	spot, onDemand := s, s
	spot.Price, onDemand.Price = 1, 3
	return Member{Name: name, Domain: domain, Spot: spot, OnDemand: onDemand}
}

func fleetOf(names ...string) *Fleet {
	f := &Fleet{}
	for _, n := range names {
		f.Members = append(f.Members, memberOf(n, ""))
	}
	return f
}

func tierOf(names ...string) Tier {
	var t Tier
	for _, n := range names {
		t = append(t, Choice{Member: n})
	}
	return t
}

func ready(member string, spot, onDemand int) Running {
	return Running{Member: member, Spot: Count{Ready: spot}, OnDemand: Count{Ready: onDemand}}
}

// splitOf returns the plan in the form "a 2+1", which is spot and on-demand.
func splitOf(r *Result) []string {
	var all []string
	for _, m := range r.Members {
		if m.Spot+m.OnDemand > 0 {
			all = append(all, fmt.Sprintf("%s %d+%d", m.Member, m.Spot, m.OnDemand))
		}
	}
	return all
}

func movesOf(r *Result) []string {
	var all []string
	for _, m := range r.Moves {
		all = append(all, fmt.Sprintf("%s %s %+d", m.Member, m.Capacity, m.By))
	}
	return all
}

func want(t *testing.T, what string, got []string, wanted ...string) {
	t.Helper()
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// applied returns the placement once all that the plan says to do now is done, and ready.
func applied(p Placement, r *Result) Placement {
	p.Running = slices.Clone(p.Running)
	byName := map[string]int{}
	for i := range p.Running {
		byName[p.Running[i].Member] = i
	}
	for _, m := range r.Members {
		i, runs := byName[m.Member]
		if !runs {
			i = len(p.Running)
			p.Running = append(p.Running, Running{Member: m.Member})
		}
		p.Running[i].Spot, p.Running[i].OnDemand = Count{Ready: m.SpotNow}, Count{Ready: m.OnDemandNow}
	}
	return p
}

func TestReplicasAreSplitByWeightAndTheFloorIsTheFleets(t *testing.T) {
	f := fleetOf("a", "b", "c")
	for _, c := range []struct {
		policy Policy
		wanted []string
	}{
		{Policy{Replicas: 6, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b", "c")}}, []string{"a 2+0", "b 2+0", "c 2+0"}},
		{Policy{Replicas: 6, SpotPercentage: 100, MinOnDemand: 2, Tiers: []Tier{tierOf("a", "b", "c")}}, []string{"a 1+1", "b 1+1", "c 2+0"}},
		{Policy{Replicas: 8, SpotPercentage: 100, Tiers: []Tier{{{Member: "a", Weight: 2}, {Member: "b"}, {Member: "c"}}}}, []string{"a 4+0", "b 2+0", "c 2+0"}},
		{Policy{Replicas: 6, SpotPercentage: 50, Tiers: []Tier{tierOf("a"), tierOf("b")}}, []string{"a 3+3"}},
		{Policy{Replicas: 6, SpotPercentage: 100, Tiers: []Tier{{{Member: "a", Max: 4}}, tierOf("b")}}, []string{"a 4+0", "b 2+0"}},
		{Policy{Replicas: 6, SpotPercentage: 100, Tiers: []Tier{tierOf("a"), {{Member: "b", Min: 2}}}}, []string{"a 4+0", "b 2+0"}},
		{Policy{Replicas: 6, SpotPercentage: 100, Spread: Spread{Member: 50}, Tiers: []Tier{tierOf("a"), tierOf("b"), tierOf("c")}}, []string{"a 3+0", "b 3+0"}},
	} {
		r := Plan(f, &Placement{Name: "n/w", Policy: c.policy}, epoch)
		want(t, fmt.Sprintf("%+v", c.policy), splitOf(&r), c.wanted...)
	}
}

func TestADroughtBecomesSpotInAnotherMemberBeforeOnDemandAnywhere(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Tiers: []Tier{tierOf("a"), tierOf("b")}}}
	p.Running = []Running{{Member: "a", Spot: Count{Leaving: 4}}}
	f.Members[0].Spot.DrySince = epoch
	r := Plan(f, &p, epoch)
	want(t, "split", splitOf(&r), "b 4+0")
	want(t, "moves, with on-demand until spot is known to come", movesOf(&r), "a on-demand +4", "b spot +4")
	f.Members[1].Spot.DrySince = epoch
	r = Plan(f, &p, epoch)
	want(t, "split where no spot is", splitOf(&r), "a 0+4")
}

func TestNothingGoesBeforeItsReplacementServes(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Pace: Pace{Moves: 2}, Tiers: []Tier{tierOf("b")}}}
	p.Running = []Running{ready("a", 4, 0)}
	r := Plan(f, &p, epoch)
	want(t, "first", movesOf(&r), "b spot +2")
	p.Running = []Running{ready("a", 4, 0), {Member: "b", Spot: Count{Starting: 2}}}
	r = Plan(f, &p, epoch)
	want(t, "while they start", movesOf(&r))
	p.Running = []Running{ready("a", 4, 0), ready("b", 2, 0)}
	r = Plan(f, &p, epoch)
	want(t, "when they serve", movesOf(&r), "b spot +2", "a spot -2")
}

// What starts where it is not to be may never be ready: it holds up nothing, and goes when enough serve without it.
func TestReplicasThatNeverGetReadyHoldUpNoStartsElsewhere(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, MinOnDemand: 2, SpotPercentage: 100, Tiers: []Tier{tierOf("b")}}}
	p.Running = []Running{{Member: "a", Spot: Count{Starting: 2}, OnDemand: Count{Starting: 2}}}
	for i := range f.Members {
		f.Members[i].Spot.Assured = true
	}
	r := Plan(f, &p, epoch)
	want(t, "while they start", movesOf(&r), "b spot +2", "b on-demand +2")
	p.Running = append(p.Running, ready("b", 2, 2))
	r = Plan(f, &p, epoch)
	want(t, "when others serve", movesOf(&r), "a spot -2", "a on-demand -2")
}

func TestOnDemandThatStandsInGoesWhenSpotServes(t *testing.T) {
	f := fleetOf("a")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 2, SpotPercentage: 100, Tiers: []Tier{tierOf("a")}}}
	r := Plan(f, &p, epoch)
	want(t, "nothing runs", movesOf(&r), "a spot +2", "a on-demand +2")
	p.Running = []Running{{Member: "a", Spot: Count{Waiting: 2}, OnDemand: Count{Starting: 2}}}
	r = Plan(f, &p, epoch)
	want(t, "while spot waits", movesOf(&r))
	p.Running = []Running{{Member: "a", Spot: Count{Ready: 2}, OnDemand: Count{Starting: 1, Ready: 1}}}
	r = Plan(f, &p, epoch)
	want(t, "when spot serves", movesOf(&r), "a on-demand -2")
}

func TestALostMemberIsMadeUpForAfterTheGraceAndItsReturnCostsNothing(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 0, Tiers: []Tier{tierOf("a", "b")}}}
	p.Running = []Running{ready("a", 0, 2), ready("b", 0, 2)}
	f.Members[0].UnreachableSince = epoch
	r := Plan(f, &p, epoch.Add(30*time.Second))
	want(t, "within the grace", movesOf(&r))
	if !r.Recheck.Equal(epoch.Add(DefaultGrace)) {
		t.Errorf("planned again at %s", r.Recheck)
	}
	r = Plan(f, &p, epoch.Add(DefaultGrace))
	want(t, "after the grace", movesOf(&r), "b on-demand +2")
	f.Members[0].UnreachableSince = time.Time{}
	p.Running = []Running{ready("a", 0, 2), ready("b", 0, 4)}
	r = Plan(f, &p, epoch.Add(time.Hour))
	want(t, "when it is back", movesOf(&r), "b on-demand -2")
}

func TestPlacementsOfOneGoSeeEachOther(t *testing.T) {
	f := fleetOf("a", "b", "c")
	var all []Placement
	for i := range 15 {
		all = append(all, Placement{Name: fmt.Sprintf("n/%02d", i), Policy: Policy{Replicas: 1, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b", "c")}}})
	}
	got := map[string]int{}
	for _, r := range PlanAll(f, all, epoch) {
		got[splitOf(&r)[0]]++
	}
	if diff := cmp.Diff(map[string]int{"a 1+0": 5, "b 1+0": 5, "c 1+0": 5}, got); diff != "" {
		t.Error(diff)
	}
	f.Members[0].Spot.Room, f.Members[1].Spot.Room, f.Members[2].Spot.Room = 2, 2, 2
	spot := 0
	for _, r := range PlanAll(f, all, epoch) {
		for _, m := range r.Members {
			spot += m.Spot
		}
	}
	if spot != 6 {
		t.Errorf("%d replicas for room of 6", spot)
	}
}

func TestADrySupplyIsTriedWithOneReplicaAndNoReplicaCountsOnIt(t *testing.T) {
	f := fleetOf("a", "b")
	f.Members[0].Spot.DrySince, f.Members[0].Spot.TryAt = epoch, epoch.Add(time.Minute)
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Tiers: []Tier{tierOf("a"), tierOf("b")}}}
	p.Running = []Running{ready("b", 4, 0)}
	r := Plan(f, &p, epoch)
	want(t, "before its time", movesOf(&r))
	if !r.Recheck.Equal(epoch.Add(time.Minute)) {
		t.Errorf("planned again at %s", r.Recheck)
	}
	r = Plan(f, &p, epoch.Add(time.Minute))
	want(t, "at its time", movesOf(&r), "a spot +1")
	want(t, "split", splitOf(&r), "b 4+0")
	p.Running = []Running{{Member: "a", Spot: Count{Waiting: 1}}, ready("b", 4, 0)}
	r = Plan(f, &p, epoch.Add(time.Minute))
	want(t, "while it waits", movesOf(&r))
	f.Members[0].Spot.TryAt = time.Time{}
	r = Plan(f, &p, epoch.Add(time.Minute))
	want(t, "what waits for nothing", movesOf(&r), "a spot -1")
}

func TestInsuranceIsRunWhereItIsWorthIt(t *testing.T) {
	f := fleetOf("a", "b")
	for i := range f.Members {
		f.Members[i].Spot.Life, f.Members[i].Spot.Start = 10*time.Hour, 4*time.Minute
	}
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, ExtraSpot: 4, Availability: 0.999, Tiers: []Tier{tierOf("a", "b")}}}
	r := Plan(f, &p, epoch)
	want(t, "either member may lose all", splitOf(&r), "a 4+0", "b 4+0")
	if r.Insurance != 4 || r.Risk > 0.001 {
		t.Errorf("%d extra, risk %f", r.Insurance, r.Risk)
	}
	f.Members[0].Spot.Notice, f.Members[1].Spot.Notice = 4*time.Minute, 4*time.Minute
	r = Plan(f, &p, epoch)
	want(t, "with notice as long as a start", splitOf(&r), "a 2+0", "b 2+0")
}

func TestMembersOfOneDomainFailTogether(t *testing.T) {
	f := &Fleet{Members: []Member{memberOf("a", "eu"), memberOf("b", "eu"), memberOf("c", "us"), memberOf("d", "us")}}
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 2, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b", "c", "d")}}}
	r := Plan(f, &p, epoch)
	want(t, "two replicas", splitOf(&r), "a 1+0", "c 1+0")
	p.Policy.Replicas, p.Policy.Spread.Domain = 4, 25
	r = Plan(f, &p, epoch)
	if r.Unplaced != 2 || r.Conditions[0].Type != BoundsTooLow {
		t.Errorf("one replica in each domain: %+v", r)
	}
}

func TestAPolicyThatCannotBeHadGetsTheNearestPlan(t *testing.T) {
	f := fleetOf("a", "b")
	for _, c := range []struct {
		policy Policy
		is     ConditionType
		wanted []string
	}{
		{Policy{Replicas: 2, MinOnDemand: 3, Tiers: []Tier{tierOf("a")}}, FloorAboveReplicas, []string{"a 0+2"}},
		{Policy{Replicas: 2, Tiers: []Tier{tierOf("elsewhere")}}, NoMembers, nil},
		{Policy{Replicas: 2, SpotPercentage: 300, Tiers: []Tier{tierOf("a")}}, InvalidPolicy, []string{"a 2+0"}},
		{Policy{Replicas: 3, Tiers: []Tier{{{Member: "a", Min: 2}, {Member: "b", Min: 2}}}}, BoundsTooHigh, []string{"a 0+2", "b 0+1"}},
		{Policy{Replicas: 4, Spread: Spread{Member: 50}, Tiers: []Tier{{{Member: "a", Min: 3}, {Member: "b"}}}}, BoundsTooHigh, []string{"a 0+2", "b 0+2"}},
		{Policy{Replicas: 3, Tiers: []Tier{{{Member: "a", Max: 1}, {Member: "b", Max: 1}}}}, BoundsTooLow, []string{"a 0+1", "b 0+1"}},
		{Policy{Replicas: 3, Tiers: []Tier{{{Member: "a", Min: 3, Max: 1}}, tierOf("a", "b")}}, InvalidPolicy, []string{"a 0+1", "b 0+2"}},
	} {
		r := Plan(f, &Placement{Name: "n/w", Policy: c.policy}, epoch)
		want(t, string(c.is), splitOf(&r), c.wanted...)
		if len(r.Conditions) == 0 || r.Conditions[0].Type != c.is {
			t.Errorf("%s: %+v", c.is, r.Conditions)
		}
	}
}

func TestAMinimumForWhichThereIsNoRoomIsSaid(t *testing.T) {
	f := fleetOf("a", "b")
	f.Members[0].Spot.Room, f.Members[0].OnDemand.Room = 0, 1
	r := Plan(f, &Placement{Name: "n/w", Policy: Policy{Replicas: 4, Tiers: []Tier{{{Member: "a", Min: 2}, {Member: "b"}}}}}, epoch)
	want(t, "one has room", splitOf(&r), "a 0+1", "b 0+3")
	if len(r.Conditions) != 1 || r.Conditions[0].Type != NoRoom || !strings.Contains(r.Conditions[0].Message, "min of a is 2") {
		t.Errorf("%+v", r.Conditions)
	}
	f.Members[0].Spot.Room = Unbounded // and none is to be on spot
	r = Plan(f, &Placement{Name: "n/w", Policy: Policy{Replicas: 4, Tiers: []Tier{{{Member: "a", Min: 2}, {Member: "b"}}}}}, epoch)
	want(t, "spot has room", splitOf(&r), "a 0+1", "b 0+3")
	if len(r.Conditions) != 1 || r.Conditions[0].Type != NoRoom || !strings.Contains(r.Conditions[0].Message, "on-demand capacity has no room") {
		t.Errorf("%+v", r.Conditions)
	}
}

func TestTheWindowHoldsWhatServesAndNotWhatIsMissing(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Tiers: []Tier{tierOf("a"), tierOf("b")}}}
	p.Policy.Pace = Pace{Moves: 4, Shut: true, Changes: epoch.Add(time.Hour)}
	p.Running = []Running{ready("b", 2, 0)}
	r := Plan(f, &p, epoch)
	if got := strings.Join(movesOf(&r), ", "); !strings.HasPrefix(got, "a spot +2") || strings.Contains(got, "b spot") {
		t.Errorf("%s", got)
	}
	if !r.Recheck.Equal(epoch.Add(time.Hour)) {
		t.Errorf("planned again at %s", r.Recheck)
	}
}

func TestAMemberThatTakesNoPartIsLeftAlone(t *testing.T) {
	f := fleetOf("a", "b")
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 2, Tiers: []Tier{tierOf("a", "b")}}}
	p.Running = []Running{{Member: "a", Out: "HorizontalPodAutoscaler web scales it", OnDemand: Count{Ready: 7}}}
	r := Plan(f, &p, epoch)
	want(t, "moves", movesOf(&r), "b on-demand +2")
	if r.Members[0].Reason != "takes no part: HorizontalPodAutoscaler web scales it" {
		t.Error(r.Members[0].Reason)
	}
}
