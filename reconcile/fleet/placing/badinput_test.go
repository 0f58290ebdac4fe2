package placing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// Whatever is asked for without success of a fleet that serves, it continues to serve, a condition gives the reason, and it comes to rest.
func TestBadInputLosesNothingThatServes(t *testing.T) {
	ready, feasible := reconcile.ConditionReady, v1alpha1.ConditionFeasible
	for name, test := range map[string]struct {
		bad             func(*toy)
		kind, reason    string
		onSpot, onSpare int // at rest
	}{
		"a floor above replicas": {func(y *toy) { y.object.Spec.Capacity.MinOnDemand = 50 }, feasible, "FloorAboveReplicas", 0, 12},
		"minima above replicas": {func(y *toy) {
			y.object.Spec.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Min: 6}}}}
		}, feasible, "BoundsTooHigh", 8, 4},
		"a minimum that spread does not allow": {func(y *toy) {
			y.object.Spec.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: inRegion("south"), Min: 8}, {}}}}
			y.object.Spec.Spread.MaxPercentPerMember = ptr.To(int32(50))
		}, feasible, "BoundsTooHigh", 8, 4},
		"selectors that match nothing": {func(y *toy) {
			y.object.Spec.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: inRegion("moon")}}}}
		}, feasible, "SelectorMatchesNothing", 8, 4},
		"prices of zero": {func(y *toy) { y.object.Spec.Prices = []v1alpha1.Price{{Spot: "0", OnDemand: "0"}} }, feasible, "InvalidPrice", 8, 4},
		"a window that is none": {func(y *toy) {
			y.object.Spec.Pace.Window = &v1alpha1.Window{Schedule: "at night"}
		}, feasible, "InvalidPolicy", 8, 4},
		"autoscalers in all members": {func(y *toy) {
			for member, f := range y.facts {
				f.scaler = "HorizontalPodAutoscaler own"
				y.facts[member] = f
			}
		}, ready, v1alpha1.ReasonNoMemberTakesPart, 8, 4},
		"no consent any more": {func(y *toy) {
			for member, f := range y.facts {
				f.disabled = "the workload has no label"
				y.facts[member], y.views[member] = f, nil
			}
		}, ready, v1alpha1.ReasonNoMemberTakesPart, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			y := newToy(t, seventy(12, 3))
			y.settle(0)
			kept := map[string]spot.FleetView{}
			for member, v := range y.views {
				kept[member] = *v
			}
			test.bad(y)
			for range 60 {
				y.step(y.decide())
				if onSpot, onDemand := y.serving(); test.onSpot+test.onSpare > 0 && onSpot+onDemand < 12 {
					t.Fatalf("step %d: %d and %d serve: %+v", y.steps, onSpot, onDemand, y.object.Status)
				}
			}
			it := y.decide()
			if len(it.result.Moves) > 0 {
				t.Errorf("it does not come to rest: %+v", it.result.Moves)
			}
			if onSpot, onDemand := y.serving(); onSpot != test.onSpot || onDemand != test.onSpare {
				t.Errorf("%d on spot and %d on on-demand serve: %+v", onSpot, onDemand, y.object.Status)
			}
			if c := y.condition(test.kind); c.Reason != test.reason || c.Status != metav1.ConditionFalse || c.Message == "" {
				t.Errorf("%+v, want %s", c, test.reason)
			}
			if strings.HasPrefix(name, "no consent") {
				for member := range kept {
					if _, ours := it.sets[member]; ours {
						t.Errorf("%s gets what to have", member)
					}
				}
			}
		})
	}
}

// serving is ready without members that show nothing.
func (y *toy) serving() (onSpot, onDemand int) {
	for _, v := range y.views {
		if v != nil {
			onSpot, onDemand = onSpot+v.Spot.Ready, onDemand+v.OnDemand.Ready
		}
	}
	return onSpot, onDemand
}

// A member may be out of reach, or be unregistered, at any step of a move: the others make up for it, and none of those that serve in
// them is lost.
func TestAMemberThatVanishesInTheMiddleOfAMoveIsMadeUpFor(t *testing.T) {
	for _, unregistered := range []bool{false, true} {
		for steps := range 8 {
			t.Run(fmt.Sprintf("unregistered %v, after %d steps", unregistered, steps), func(t *testing.T) {
				y := newToy(t, seventy(12, 3))
				y.settle(0)
				y.object.Spec.Replicas, y.object.Spec.Capacity.MinOnDemand = ptr.To(int32(20)), 12
				for range steps {
					y.step(y.decide())
				}
				s, d := y.ready("c")
				if unregistered {
					y.members = y.members[:2]
				} else {
					y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
				}
				y.settle(s+d, "c")
				y.expect(8, 12, "c")
				if unregistered {
					return
				}
				if m := y.object.Status.Members[2]; m.State != v1alpha1.MemberLost || m.Reason == "" {
					t.Errorf("%+v", m)
				}
				y.members[2].Reachable = true
				y.settle(20)
				y.expect(8, 12)
			})
		}
	}
}

// A FleetPlacement that is deleted while members are dead leaves behind what they run, and says so.
func TestADeletedPlacementSaysWhatItLeavesBehind(t *testing.T) {
	for _, on := range []v1alpha1.OnDelete{v1alpha1.Keep, v1alpha1.Gather} {
		spec := seventy(9, 3)
		spec.OnDelete = on
		y := newToy(t, spec)
		y.settle(0)
		y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
		there := y.views["c"].Replicas
		y.object.DeletionTimestamp = ptr.To(metav1.NewTime(y.now))
		for range 50 {
			it := y.decide()
			if it.handedBack() {
				break
			}
			if c := y.condition(reconcile.ConditionReady); c.Reason != v1alpha1.ReasonDeleting || c.Message == "" {
				t.Errorf("%s: %+v", on, c)
			}
			y.step(it)
		}
		if s, d := y.ready("c"); y.views["c"].Replicas != there || (on == v1alpha1.Gather && s+d < 9) {
			t.Errorf("%s: %d and %d serve beside %+v", on, s, d, y.views["c"])
		}
	}
}

// A namespace that the hub's configuration leaves out is not one that is not planned yet.
func TestANamespaceThatTheHubLeavesOutIsSaid(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.options.NamespaceSelector = labels.SelectorFromSet(labels.Set{"team": "other"})
	for member := range b.cluster {
		delete(b.views, member) // nothing of it is in a cache
	}
	p := b.rounds(6)
	for _, m := range p.Status.Members {
		if m.State != v1alpha1.MemberOut || !strings.Contains(m.Reason, "namespaceSelector does not select namespace shop") {
			t.Errorf("%s is %s: %s", m.Name, m.State, m.Reason)
		}
	}
	if len(p.Status.Members) != 3 {
		t.Errorf("%+v", p.Status.Members)
	}
}
