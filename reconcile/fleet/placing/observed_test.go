package placing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestReplicasThatAreOnTheirWayAreCounted(t *testing.T) {
	ready := func(n int) spot.FleetCount { return spot.FleetCount{Ready: n} }
	for name, test := range map[string]struct {
		view             spot.FleetView
		set              *policy.FleetSplit
		dry              bool
		onSpot, onDemand fleet.Count
	}{
		"at rest":                    {spot.FleetView{Replicas: 5, Spot: ready(3), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 5, OnDemand: 2}, false, fleet.Count{Ready: 3}, fleet.Count{Ready: 2}},
		"nothing decided yet":        {spot.FleetView{Replicas: 5, Spot: ready(3), OnDemand: ready(2)}, nil, false, fleet.Count{Ready: 3}, fleet.Count{Ready: 2}},
		"decided, and not written":   {spot.FleetView{Replicas: 5, Spot: ready(3), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 9, OnDemand: 4}, false, fleet.Count{Ready: 3, Starting: 2}, fleet.Count{Ready: 2, Starting: 2}},
		"written, and no pods yet":   {spot.FleetView{Replicas: 9, Spot: ready(3), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 9, OnDemand: 4}, false, fleet.Count{Ready: 3, Starting: 2}, fleet.Count{Ready: 2, Starting: 2}},
		"to shrink, and not written": {spot.FleetView{Replicas: 5, Spot: ready(3), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 3, OnDemand: 1}, false, fleet.Count{Ready: 3}, fleet.Count{Ready: 2}},
		"shrunk, and pods are there": {spot.FleetView{Replicas: 3, Spot: ready(3), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 3, OnDemand: 1}, false, fleet.Count{Ready: 2, Leaving: 1}, fleet.Count{Ready: 1, Leaving: 1}},
		"what does not serve goes first": {
			spot.FleetView{Replicas: 2, Spot: spot.FleetCount{Ready: 2, Starting: 1}}, &policy.FleetSplit{Replicas: 2}, false,
			fleet.Count{Ready: 2, Leaving: 1}, fleet.Count{},
		},
		"to shrink, and known to be late": {spot.FleetView{Replicas: 7, Spot: ready(5), OnDemand: ready(2)}, &policy.FleetSplit{Replicas: 3, OnDemand: 1}, false, fleet.Count{Ready: 4, Leaving: 1}, fleet.Count{Ready: 1, Leaving: 1}},
		"scaled up by hand":               {spot.FleetView{Replicas: 20, Spot: spot.FleetCount{Ready: 4, Starting: 9}, OnDemand: spot.FleetCount{Ready: 2, Starting: 1}}, &policy.FleetSplit{Replicas: 6, OnDemand: 2}, false, fleet.Count{Ready: 4, Leaving: 9}, fleet.Count{Ready: 2, Leaving: 1}},
		"adopted with more than all":      {spot.FleetView{Replicas: 20, Spot: ready(20)}, nil, false, fleet.Count{Ready: 9, Leaving: 11}, fleet.Count{}},
		"missing where spot is dry":       {spot.FleetView{Replicas: 4, Spot: ready(2)}, &policy.FleetSplit{Replicas: 4}, true, fleet.Count{Ready: 2, Waiting: 2}, fleet.Count{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sight{view: test.view, set: test.set, ordered: 5}
			onSpot, onDemand := counts(&test.view, test.set, s.limit(9), test.dry)
			if diff := cmp.Diff([2]fleet.Count{test.onSpot, test.onDemand}, [2]fleet.Count{onSpot, onDemand}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A StatefulSet deletes its highest ordinals: those leave, whatever the split says about types.
func TestOrdinalsAreCountedAsTheyGo(t *testing.T) {
	onSpot, onDemand := func(number int) spot.FleetOrdinal { return spot.FleetOrdinal{Number: number, State: spot.FleetReady} },
		func(number int) spot.FleetOrdinal {
			return spot.FleetOrdinal{Number: number, OnDemand: true, State: spot.FleetReady}
		}
	v := spot.FleetView{Replicas: 3, Spot: spot.FleetCount{Ready: 2, Leaving: 1}, OnDemand: spot.FleetCount{Ready: 2}, Ordinals: []spot.FleetOrdinal{
		onDemand(4), onDemand(3), onSpot(2), {Number: 1}, onSpot(0),
	}}
	s := sight{member: &Member{Name: "a", Reachable: true}, view: v, known: true, set: &policy.FleetSplit{Replicas: 3, OnDemand: 2}, facts: facts{asked: epoch, exists: true}}
	want := fleet.Running{Member: "a", Spot: fleet.Count{Ready: 2, Leaving: 1}, OnDemand: fleet.Count{Starting: 1, Leaving: 2}, Ordinals: []fleet.Ordinal{
		{Capacity: fleet.Spot, Stage: fleet.Ready}, {}, {Capacity: fleet.Spot, Stage: fleet.Ready},
	}}
	if diff := cmp.Diff(want, s.running(false, 3)); diff != "" {
		t.Error(diff)
	}
}

// Pods that go because the workload shrinks or is rolled out say nothing about the supply; those whose nodes go do.
func TestOnlyLostNodesShortenTheLifeOfSpot(t *testing.T) {
	for lost, want := range []time.Duration{fleet.FirstLife + 5*time.Hour, fleet.FirstLife} {
		m, s := &memberMemory{}, &sight{member: &Member{Name: "a", Reachable: true}, known: true, view: spot.FleetView{Replicas: 3, Spot: spot.FleetCount{Ready: 3}}}
		m.update(s, time.Minute, epoch)
		s.view.Spot = spot.FleetCount{Ready: 2, Leaving: 1, Lost: lost}
		m.update(s, time.Minute, epoch.Add(5*time.Hour))
		if s.life != want {
			t.Errorf("one leaves, %d of them with its node: life is %s, want %s", lost, s.life, want)
		}
	}
}

func TestWhyAMemberTakesNoPart(t *testing.T) {
	asked := facts{asked: epoch, exists: true}
	for name, test := range map[string]struct {
		s    sight
		want string
	}{
		"it does":             {sight{known: true, facts: asked}, ""},
		"not there":           {sight{facts: facts{asked: epoch}}, "the workload does not exist there"},
		"not enabled":         {sight{facts: facts{asked: epoch, exists: true, disabled: "no label"}}, "no label"},
		"scaled by others":    {sight{known: true, facts: facts{asked: epoch, exists: true, scaler: "HorizontalPodAutoscaler own"}}, "HorizontalPodAutoscaler own scales it there"},
		"not known yet":       {sight{}, "placement has not planned it yet"},
		"it cannot be asked":  {sight{facts: facts{asked: epoch, problem: "forbidden"}}, "forbidden"},
		"it refused":          {sight{known: true, facts: asked, refused: "forbidden"}, "forbidden"},
		"read-only":           {sight{known: true, facts: asked, view: spot.FleetView{ReadOnly: true}}, "it is in read-only mode there"},
		"seen before a start": {sight{facts: asked, set: &policy.FleetSplit{Replicas: 2}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.s.member = &Member{Name: "a", Reachable: true}
			if got := test.s.out(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			test.s.member.Reachable = false
			if got := test.s.out(); got != "" {
				t.Errorf("out of reach: %q", got)
			}
		})
	}
}

func TestSinceWhenAMemberIsOutOfReach(t *testing.T) {
	const grace = time.Minute
	since := epoch.Add(-10 * time.Second)
	set := &policy.FleetSplit{Replicas: 2}
	for name, test := range map[string]struct {
		s    sight
		want time.Time
	}{
		"in reach":                       {sight{member: &Member{Reachable: true}, known: true, set: set}, time.Time{}},
		"out of reach":                   {sight{member: &Member{Since: since}, set: set}, since},
		"its cache is not there yet":     {sight{member: &Member{Reachable: true}, set: set, lostSight: since}, since},
		"given up before a restart":      {sight{member: &Member{Since: since}, set: set, last: &v1alpha1.MemberStatus{State: v1alpha1.MemberLost}}, since.Add(-grace)},
		"new, and nothing is there":      {sight{member: &Member{Reachable: true}}, time.Time{}},
		"out of reach since nobody says": {sight{member: &Member{}, set: set}, epoch},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.s.outOfReach(grace, epoch); !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestACordonedMemberTakesNoMoreReplicas(t *testing.T) {
	for name, s := range map[string]sight{
		"spot has room":  {known: true},
		"spot is probed": {known: true, view: spot.FleetView{SpotProbing: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s.member = &Member{Name: "a", Reachable: true, Cordoned: true}
			if m := s.supply(&asked{}, 0, time.Time{}); m.Spot.Room != 0 || m.OnDemand.Room != 0 || m.Spot.Assured {
				t.Errorf("%+v", m)
			}
		})
	}
}

func TestDrynessIsRememberedWhereNothingIsLeftThatTells(t *testing.T) {
	d := dryness{}.see(&spot.FleetView{SpotDrySince: epoch}, true, time.Time{}, epoch.Add(time.Minute))
	gone := d.see(&spot.FleetView{}, true, time.Time{}, epoch.Add(time.Hour))
	if gone != (dryness{since: epoch, last: epoch.Add(time.Minute)}) {
		t.Errorf("%+v", gone)
	}
	s := sight{member: &Member{Name: "a", Reachable: true}, known: true, dry: gone}
	if m := s.supply(&asked{}, 0, time.Time{}); !m.Spot.DrySince.Equal(epoch) || !m.Spot.TryAt.Equal(epoch.Add(time.Minute+dryTryAfter)) || m.Spot.Assured {
		t.Errorf("%+v", m.Spot)
	}
	for name, v := range map[string]spot.FleetView{"a probe found room": {SpotProbing: true}, "one is ready": {Spot: spot.FleetCount{Ready: 1}}} {
		if over := gone.see(&v, true, time.Time{}, epoch.Add(time.Hour)); over != (dryness{}) {
			t.Errorf("%s: %+v", name, over)
		}
	}
}

func TestSpotIsSuspectedToBeDryAfterALoss(t *testing.T) {
	late := epoch.Add(suspectAfter)
	waiting := spot.FleetView{Spot: spot.FleetCount{Ready: 2, Starting: 3}, SpotUnboundSince: epoch}
	for name, test := range map[string]struct {
		lost, now time.Time
		want      dryness
	}{
		"none was lost":            {time.Time{}, late, dryness{}},
		"they have just come":      {epoch, late.Add(-time.Second), dryness{}},
		"they find no node":        {epoch, late, dryness{since: epoch, last: late, ready: 2}},
		"the loss is an old thing": {epoch.Add(-suspectFor), late, dryness{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (dryness{}).see(&waiting, true, test.lost, test.now); got != test.want {
				t.Errorf("%+v", got)
			}
		})
	}
	suspected := dryness{since: epoch, last: late, ready: 2}
	if got := suspected.see(&spot.FleetView{Spot: spot.FleetCount{Ready: 2}}, true, epoch, late.Add(time.Second)); got != suspected {
		t.Errorf("those that stay say nothing: %+v", got)
	}
	if got := suspected.see(&spot.FleetView{Spot: spot.FleetCount{Ready: 3}}, true, epoch, late.Add(time.Second)); got != (dryness{}) {
		t.Errorf("one more is ready: %+v", got)
	}
	none := suspected.see(&spot.FleetView{}, true, epoch, late.Add(time.Second))
	if none != (dryness{since: epoch, last: late}) {
		t.Errorf("none is left: %+v", none)
	}
	if got := none.see(&spot.FleetView{Spot: spot.FleetCount{Ready: 1}}, true, epoch, late.Add(time.Minute)); got != (dryness{}) {
		t.Errorf("one is ready where none was left: %+v", got)
	}
	unready := suspected.see(&spot.FleetView{Spot: spot.FleetCount{Ready: 1, Starting: 1}}, true, epoch, late.Add(time.Second))
	if got := unready.see(&spot.FleetView{Spot: spot.FleetCount{Ready: 2}}, true, epoch, late.Add(time.Minute)); got != suspected {
		t.Errorf("one was not ready for some time, which says nothing: %+v", got)
	}
}

// A replica that takes minutes to be ready on its node is missing for as long: its start is that of the node, and of the pod on it.
func TestAStartIsThatOfTheNodeAndOfThePodOnIt(t *testing.T) {
	spec := seventy(6, 0)
	y := newToy(t, spec)
	y.views["a"].NodeStart, y.views["a"].PodStart = 90*time.Second, 3*time.Minute
	y.views["b"].PodStart = 2 * time.Minute
	it := y.decide()
	want := map[string]time.Duration{"a": 90*time.Second + 3*time.Minute, "b": defaultStart + 2*time.Minute, "c": defaultStart + 3*time.Minute}
	for member, start := range want {
		for _, s := range []fleet.Supply{it.placement.Members[member].Spot, it.placement.Members[member].OnDemand} {
			if s.Start != start {
				t.Errorf("a start in %s takes %s, want %s", member, s.Start, start)
			}
		}
	}
}
