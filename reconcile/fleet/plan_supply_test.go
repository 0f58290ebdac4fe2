package fleet

import (
	"testing"
	"time"
)

func TestCapacityThatIsNeverLostIsTheSteadiest(t *testing.T) {
	f := fleetOf("a", "b", "c")
	f.Members[0].Spot.Life, f.Members[2].Spot.Life = time.Hour, 10*time.Hour
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 1, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b", "c")}}}
	r := Plan(f, &p, epoch)
	want(t, "the one that is not lost", splitOf(&r), "b 1+0")
	p.Policy.Replicas = 2
	r = Plan(f, &p, epoch)
	want(t, "and the one that is lost later", splitOf(&r), "b 1+0", "c 1+0")
}

func TestReplicasWithoutRoomAreSaidToHaveNone(t *testing.T) {
	f := fleetOf("a", "b")
	for i := range f.Members {
		f.Members[i].Spot.Room, f.Members[i].OnDemand.Room = 0, 1
	}
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 3, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b")}}}
	r := Plan(f, &p, epoch)
	want(t, "what has room", splitOf(&r), "a 0+1", "b 0+1")
	if r.Unplaced != 1 || len(r.Conditions) != 1 || r.Conditions[0].Type != NoRoom {
		t.Errorf("%d unplaced: %+v", r.Unplaced, r.Conditions)
	}
}

// Of what was started and is not in the plan any more, as many go on as are missing without them.
func TestOfWhatIsStartingBeyondThePlanOnlyTheMissingGoOn(t *testing.T) {
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 1, SpotPercentage: 100, Tiers: []Tier{tierOf("c")}}, Running: []Running{
		{Member: "a", OnDemand: Count{Starting: 1}}, {Member: "b", OnDemand: Count{Starting: 1}}, {Member: "c", Spot: Count{Starting: 1}},
	}}
	r := Plan(fleetOf("a", "b", "c"), &p, epoch)
	want(t, "one is missing, and two stand in", movesOf(&r), "b on-demand -1")
}

func TestWhatOnDemandHasNoRoomForGoesToSpotButForTheFloor(t *testing.T) {
	f := fleetOf("a")
	f.Members[0].OnDemand.Room = 1
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 6, MinOnDemand: 2, SpotPercentage: 50, Tiers: []Tier{tierOf("a")}}}
	r := Plan(f, &p, epoch)
	want(t, "half of six, and one more than there is room for is the floor's", splitOf(&r), "a 4+1")
	if r.Unplaced != 1 {
		t.Errorf("%d have no place", r.Unplaced)
	}
	p.Policy.SpotPercentage = 0
	r = Plan(f, &p, epoch)
	want(t, "nothing may be on spot", splitOf(&r), "a 0+1")
}

// A trial is one replica more in the dry member, and none in others, and it is no move that waits.
func TestATrialIsNoPartOfThePlan(t *testing.T) {
	f := fleetOf("a", "b")
	f.Members[0].Spot.DrySince, f.Members[0].Spot.TryAt = epoch.Add(-time.Hour), epoch
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b")}}, Running: []Running{ready("b", 2, 0)}}
	r := Plan(f, &p, epoch)
	for _, m := range r.Moves {
		if want := map[string]int{"a": 1, "b": 2}[m.Member]; m.Capacity == Spot && m.By != want {
			t.Errorf("%d replicas are started in %s, want %d", m.By, m.Member, want)
		}
	}
	for _, m := range r.Later {
		if m.Capacity == Spot {
			t.Errorf("%+v waits", m)
		}
	}
	want(t, "the plan", splitOf(&r), "b 4+0")
}

func TestAMinimumThatSpotHasNoRoomForIsOnDemandInItsPlace(t *testing.T) {
	f := fleetOf("a", "b")
	f.Members[0].Spot.Room = 0
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, Tiers: []Tier{{{Member: "a", Min: 2}, {Member: "b"}}}}}
	r := Plan(f, &p, epoch)
	want(t, "four in all", splitOf(&r), "a 0+2", "b 2+0")
}

func TestAStartIsPredictedByTheLatestMoreThanByThoseBefore(t *testing.T) {
	var h History
	if got := h.Start(time.Minute); got != time.Minute {
		t.Errorf("without any: %s", got)
	}
	for _, test := range []struct{ took, want time.Duration }{{100 * time.Second, 100 * time.Second}, {200 * time.Second, 130 * time.Second}, {30 * time.Second, 100 * time.Second}} {
		h.Started(test.took)
		if got := h.Start(time.Minute); got != test.want {
			t.Errorf("after one of %s: %s, want %s", test.took, got, test.want)
		}
	}
}
