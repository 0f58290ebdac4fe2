package placing

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// after is a controller that has made one round about a toy's FleetPlacement.
func after(y *toy) *Controller {
	c := &Controller{}
	c.finish([]*item{y.decide()}, y.members, y.now)
	return c
}

func TestAnotherPolicyIsPlannedAndNothingComesOfIt(t *testing.T) {
	y := newToy(t, seventy(20, 3))
	y.settle(0)
	c := after(y)
	before := y.object.DeepCopy()
	found, ok := c.Suppose(y.object.Namespace, y.object.Name, Hypothesis{Change: func(spec *v1alpha1.FleetPlacementSpec) {
		spec.Replicas, spec.Capacity.MinOnDemand, spec.Capacity.SpotPercentage = ptr.To[int32](30), 12, ptr.To[int32](100)
		spec.Prices = []v1alpha1.Price{{Spot: "1", OnDemand: "2"}}
	}})
	spot, onDemand := 0, 0
	for _, m := range found.Result.Members {
		spot, onDemand = spot+m.Spot, onDemand+m.OnDemand
	}
	if !ok || spot != 18 || onDemand != 12 || found.Cost != 18+2*12 || found.CostNow != 14+3*6 || len(found.Result.Moves) == 0 {
		t.Errorf("%v, %d on spot and %d on on-demand: %+v", ok, spot, onDemand, found)
	}
	if diff := found.Result.Conditions; len(diff) != 0 {
		t.Errorf("%v", diff)
	}
	// What is carried out is what it was.
	if again, ok := c.Suppose(y.object.Namespace, y.object.Name, Hypothesis{Change: func(*v1alpha1.FleetPlacementSpec) {}}); !ok || len(again.Result.Moves) != 0 || again.Cost != again.CostNow {
		t.Errorf("the same policy: %+v", again)
	}
	if *before.Spec.Replicas != *y.object.Spec.Replicas || before.Spec.Capacity.MinOnDemand != y.object.Spec.Capacity.MinOnDemand {
		t.Errorf("the object was changed: %+v", y.object.Spec)
	}
}

func TestAPolicyThatSaysNothingIsNotPlanned(t *testing.T) {
	y := newToy(t, seventy(20, 3))
	y.settle(0)
	c := after(y)
	found, ok := c.Suppose(y.object.Namespace, y.object.Name, Hypothesis{Change: func(spec *v1alpha1.FleetPlacementSpec) {
		spec.Clusters = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{}}}}
		spec.Clusters[0].Members[0].Selector.MatchLabels = map[string]string{"no label/at/all": "x"}
	}})
	if !ok || !strings.Contains(found.Stopped, "clusters[0].members[0].selector") {
		t.Errorf("%v %+v", ok, found)
	}
	for _, ask := range []func() bool{
		func() bool { _, ok := c.Suppose("no", "such", Hypothesis{}); return ok },
		func() bool { _, ok := c.Explain("no", "such"); return ok },
		func() bool { _, ok := (&Controller{}).Explain(y.object.Namespace, y.object.Name); return ok },
	} {
		if ask() {
			t.Error("something was found")
		}
	}
}

func TestADroughtIsExplained(t *testing.T) {
	y := newToy(t, seventy(30, 3))
	y.settle(0)
	v := y.views["a"]
	v.SpotDrySince, v.OnDemand.Ready, v.Spot.Ready = y.now, v.OnDemand.Ready+v.Spot.Ready, 0
	y.settle(30)
	e, ok := after(y).Explain(y.object.Namespace, y.object.Name)
	if !ok || e.Stopped != "" || len(e.Members) != 3 {
		t.Fatalf("%v %+v", ok, e)
	}
	a := e.Members[0]
	if a.Member != "a" || a.Supply[fleet.Spot].DrySince.IsZero() || len(a.Obstacles) != 1 || a.Obstacles[0].Spot == 0 || !strings.Contains(a.Place, "no room") {
		t.Errorf("%+v", a)
	}
}
