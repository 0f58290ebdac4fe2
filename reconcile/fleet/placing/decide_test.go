package placing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

func TestTheMixIsExactAtRest(t *testing.T) {
	y := newToy(t, seventy(60, 6))
	y.settle(0)
	y.expect(42, 18)
	for _, replicas := range []int32{200, 30} {
		y.object.Spec.Replicas = ptr.To(replicas)
		y.settle(int(min(replicas, 60)))
		y.expect(int(replicas)*7/10, int(replicas)*3/10)
	}
	if s := y.object.Status; s.Replicas != 30 || s.ReadyReplicas != 30 || s.Selector != "app=web" || len(s.Members) != 3 || len(s.LastMoves) != keptMoves {
		t.Errorf("%+v", s)
	}
}

func TestAtRestNothingIsDecidedOrSaid(t *testing.T) {
	y := newToy(t, seventy(20, 3))
	y.settle(0)
	before := y.object.Status.DeepCopy()
	for range 5 {
		y.now = y.now.Add(time.Hour)
		it := y.decide()
		for member, set := range it.sets {
			if v := y.views[member]; set.Replicas != v.Replicas || set.OnDemand != v.OnDemand.Ready {
				t.Errorf("%s: %+v, and it has %+v", member, set, v)
			}
		}
	}
	if !equality.Semantic.DeepEqual(*before, y.object.Status) {
		t.Errorf("the status changes at rest:\n%+v\n%+v", before, y.object.Status)
	}
}

func TestADroughtInOneMemberBecomesSpotInAnother(t *testing.T) {
	y := newToy(t, seventy(30, 3))
	y.settle(0)
	v := y.views["a"] // all spot is gone, and spot placement there stands in on on-demand
	v.SpotDrySince, v.OnDemand.Ready, v.Spot.Ready = y.now, v.OnDemand.Ready+v.Spot.Ready, 0
	y.settle(30)
	if v.Spot.Ready != 0 {
		t.Errorf("%+v", v)
	}
	y.expect(21, 9)
}

func TestAMemberThatIsLostIsMadeUpForAndCorrectedWhenItIsBack(t *testing.T) {
	y := newToy(t, seventy(12, 3))
	y.settle(0)
	lost := y.views["c"].Spot.Ready + y.views["c"].OnDemand.Ready
	y.members[2].Reachable, y.members[2].Since = false, y.now
	y.decide()
	if m := y.object.Status.Members[2]; m.State != v1alpha1.MemberUnreachable {
		t.Errorf("%+v", m)
	}
	y.expect(8, 4)
	y.now = y.now.Add(2 * time.Minute)
	y.settle(12-lost, "c")
	y.expect(8, 4, "c")
	if m := y.object.Status.Members[2]; m.State != v1alpha1.MemberLost || !strings.Contains(m.Reason, "other members replace its replicas") {
		t.Errorf("%+v", m)
	}
	y.members[2].Reachable = true
	y.settle(12)
	y.expect(8, 4)
}

func TestAHubThatStartsWhileAMemberIsLostGoesOn(t *testing.T) {
	y := newToy(t, seventy(12, 3))
	y.settle(0)
	y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
	y.settle(0, "c")
	y.members[2].Since = y.now // as a process sees it that has just started
	before := y.object.Status.DeepCopy()
	it := y.decide()
	if m := y.object.Status.Members[2]; m.State != v1alpha1.MemberLost {
		t.Errorf("%+v", m)
	}
	if len(it.result.Moves) > 0 || len(before.LastMoves) != len(y.object.Status.LastMoves) {
		t.Errorf("moves: %+v", it.result.Moves)
	}
}

func TestWhatAnotherAutoscalerScalesIsLeftAlone(t *testing.T) {
	y := newToy(t, seventy(10, 2))
	y.views["a"].Replicas, y.views["a"].Spot.Ready = 5, 5
	y.facts["a"] = facts{asked: epoch, exists: true, scaler: "HorizontalPodAutoscaler own"}
	it := y.settle(0)
	y.expect(7, 3, "a")
	if _, touched := it.sets["a"]; touched || y.views["a"].Spot.Ready != 5 {
		t.Errorf("%+v", it.sets)
	}
	if m := y.object.Status.Members[0]; m.State != v1alpha1.MemberOut || !strings.Contains(m.Reason, "HorizontalPodAutoscaler own") {
		t.Errorf("%+v", m)
	}
}

func TestATargetThatIsInSomeMembersOnlyRunsThere(t *testing.T) {
	y := newToy(t, seventy(10, 2))
	delete(y.views, "b")
	y.facts["b"] = facts{asked: epoch}
	y.settle(0)
	y.expect(7, 3)
	if m := y.object.Status.Members[1]; m.State != v1alpha1.MemberOut || !strings.Contains(m.Reason, "the workload does not exist there") {
		t.Errorf("%+v", m)
	}
}

func TestATargetThatIsNowhereIsWaitedFor(t *testing.T) {
	y := newToy(t, seventy(10, 2))
	for name := range y.facts {
		delete(y.views, name)
		y.facts[name] = facts{asked: epoch}
	}
	y.decide()
	if c := y.condition(reconcile.ConditionReady); c.Reason != v1alpha1.ReasonTargetNotFound || !strings.Contains(c.Message, "shop/web") {
		t.Errorf("%+v", c)
	}
	if c := y.condition(reconcile.ConditionReconciling); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	before := y.object.Status.DeepCopy()
	y.now = y.now.Add(time.Minute)
	y.decide()
	if diff := cmp.Diff(before.Conditions, y.object.Status.Conditions); diff != "" {
		t.Errorf("nothing has changed, but the conditions have (-before +after):\n%s", diff)
	}
}

func TestWhatCannotBeHadIsSaidAndTheNearestIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		edit             func(*v1alpha1.FleetPlacementSpec)
		reason           string
		onSpot, onDemand int
	}{
		"a floor above replicas": {func(s *v1alpha1.FleetPlacementSpec) { s.Capacity.MinOnDemand = 50 }, "FloorAboveReplicas", 0, 10},
		"minima above replicas": {func(s *v1alpha1.FleetPlacementSpec) {
			s.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Min: 6}}}}
		}, "BoundsTooHigh", 7, 3},
		"maxima below replicas": {func(s *v1alpha1.FleetPlacementSpec) {
			s.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Max: ptr.To(int32(2))}}}}
		}, "BoundsTooLow", 3, 3},
		"a selector that matches nothing": {func(s *v1alpha1.FleetPlacementSpec) {
			s.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: inRegion("moon")}}}}
		}, "SelectorMatchesNothing", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			y := newToy(t, seventy(10, 3))
			test.edit(&y.object.Spec)
			for range 20 {
				y.step(y.decide())
			}
			y.expect(test.onSpot, test.onDemand)
			if c := y.condition(v1alpha1.ConditionFeasible); c.Reason != test.reason || c.Status != metav1.ConditionFalse || c.Message == "" {
				t.Errorf("%+v, want %s", c, test.reason)
			}
		})
	}
}

func TestOfTwoForOneTargetTheOlderCounts(t *testing.T) {
	older, newer, third := placementOf(seventy(1, 0)), placementOf(seventy(2, 0)), placementOf(seventy(3, 0))
	older.Name, newer.Name, third.Name = "z", "a", "other"
	older.CreationTimestamp, newer.CreationTimestamp = metav1.NewTime(epoch), metav1.NewTime(epoch.Add(time.Second))
	items := []*item{{object: newer}, {object: older}, {object: third}}
	items[2].target.key.Name = "other"
	oppose(items)
	if items[1].stop != nil || items[2].stop != nil || items[0].stop == nil || items[0].stop.reason != v1alpha1.ReasonConflict || !strings.Contains(items[0].stop.message, "z") {
		t.Errorf("%+v %+v", items[0].stop, items[1].stop)
	}
}

func TestADeletedPlacementGathersItsReplicas(t *testing.T) {
	for name, test := range map[string]struct{ into, want string }{
		"where it is asked for": {"b", "b"}, "where most are": {"", "c"}, "not in a member that is not there": {"moon", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := seventy(9, 3)
			spec.OnDelete, spec.GatherInto = v1alpha1.Gather, test.into
			spec.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: inRegion("south"), Weight: 5}, {Weight: 1}}}}
			y := newToy(t, spec)
			y.settle(0)
			y.object.DeletionTimestamp = ptr.To(metav1.NewTime(y.now))
			for range 50 {
				it := y.decide()
				if it.handedBack() {
					break
				}
				y.step(it)
				if s, d := y.ready(); s+d < 9 {
					t.Fatalf("%d and %d serve", s, d)
				}
			}
			if v := y.views[test.want]; v.Spot.Ready+v.OnDemand.Ready != 9 {
				t.Errorf("%s has %+v", test.want, v)
			}
			y.expect(6, 3)
		})
	}
}

func TestADeletedPlacementIsNotHeldUpByAMemberThatIsDead(t *testing.T) {
	for _, on := range []v1alpha1.OnDelete{v1alpha1.Keep, v1alpha1.Gather} {
		spec := seventy(9, 3)
		spec.OnDelete = on
		y := newToy(t, spec)
		y.settle(0)
		y.members[2].Reachable, y.members[2].Since = false, y.now
		y.object.DeletionTimestamp = ptr.To(metav1.NewTime(y.now))
		done := false
		for range 50 {
			it := y.decide()
			if done = it.handedBack(); done {
				break
			}
			y.step(it)
		}
		if !done {
			t.Errorf("%s: %+v", on, y.object.Status)
		}
	}
}
