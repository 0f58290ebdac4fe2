package placing

import (
	"slices"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// toy is a fleet whose members do what they are asked: what was decided starts in one step, and is ready in the next.
type toy struct {
	t       *testing.T
	now     time.Time
	object  *v1alpha1.FleetPlacement
	members []Member
	views   map[string]*spot.FleetView
	facts   map[string]facts
	steps   int
}

func newToy(t *testing.T, spec v1alpha1.FleetPlacementSpec) *toy {
	spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	toy := &toy{t: t, now: epoch, object: placementOf(spec), members: threeMembers(), views: map[string]*spot.FleetView{}, facts: map[string]facts{}}
	for _, m := range toy.members {
		toy.views[m.Name], toy.facts[m.Name] = &spot.FleetView{Settled: true}, facts{asked: epoch, exists: true, selector: "app=web"}
	}
	return toy
}

// decide makes a round, without a memory: what the status says and what members show is all there is.
func (y *toy) decide() *item {
	it := &item{object: y.object}
	var err error
	if it.target, err = targetOf(y.object, placed, nil); err != nil {
		y.t.Fatal(err)
	}
	it.asked = policyOf(y.object, y.members, y.now)
	for i := range y.members {
		m := &y.members[i]
		s := &sight{member: m, facts: y.facts[m.Name]}
		for j := range y.object.Status.Members {
			if y.object.Status.Members[j].Name == m.Name {
				s.last = &y.object.Status.Members[j]
			}
		}
		s.set = setOf(s.last)
		if view := y.views[m.Name]; m.Reachable && view != nil {
			s.view, s.known = *view, true
			s.dry = s.dry.see(view, true, time.Time{}, y.now)
		}
		it.sights = append(it.sights, s)
	}
	decide([]*item{it}, y.members, y.now)
	y.object.Status = it.status(y.now)
	return it
}

// step lets the members do what was decided, as far as they can be reached.
func (y *toy) step(it *item) {
	for _, m := range y.members {
		v, set := y.views[m.Name], it.sets[m.Name]
		if _, ours := it.sets[m.Name]; !ours || !m.Reachable || v == nil {
			continue
		}
		for _, c := range []struct {
			count  *spot.FleetCount
			wanted int
			dry    bool
		}{{&v.OnDemand, set.OnDemand, false}, {&v.Spot, set.Replicas - set.OnDemand, !v.SpotDrySince.IsZero()}} {
			c.count.Ready, c.count.Starting = c.count.Ready+c.count.Starting, 0
			if c.count.Ready > c.wanted {
				c.count.Ready = c.wanted
			} else if !c.dry {
				c.count.Starting = c.wanted - c.count.Ready
			}
		}
		v.Replicas = set.Replicas
	}
	y.now = y.now.Add(10 * time.Second)
	y.steps++
}

// ready counts what serves, in members that are out of reach as well, but for those named.
func (y *toy) ready(but ...string) (onSpot, onDemand int) {
	for name, v := range y.views {
		if !slices.Contains(but, name) {
			onSpot, onDemand = onSpot+v.Spot.Ready, onDemand+v.OnDemand.Ready
		}
	}
	return onSpot, onDemand
}

// settle goes on until the FleetPlacement is ready, with never fewer than so many that serve.
func (y *toy) settle(least int, but ...string) *item {
	y.t.Helper()
	for range 200 {
		it := y.decide()
		if apimeta.IsStatusConditionTrue(y.object.Status.Conditions, reconcile.ConditionReady) {
			return it
		}
		y.step(it)
		if onSpot, onDemand := y.ready(but...); onSpot+onDemand < least {
			y.t.Fatalf("step %d: %d on spot and %d on on-demand serve, want %d: %+v", y.steps, onSpot, onDemand, least, y.object.Status)
		}
	}
	y.t.Fatalf("it does not settle: %+v", y.object.Status)
	return nil
}

func (y *toy) expect(onSpot, onDemand int, but ...string) {
	y.t.Helper()
	if s, d := y.ready(but...); s != onSpot || d != onDemand {
		y.t.Errorf("%d on spot and %d on on-demand serve, want %d and %d: %+v", s, d, onSpot, onDemand, y.object.Status)
	}
}

func (y *toy) condition(kind string) metav1.Condition {
	if found := apimeta.FindStatusCondition(y.object.Status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func seventy(replicas, floor int) v1alpha1.FleetPlacementSpec {
	return v1alpha1.FleetPlacementSpec{Replicas: ptr.To(int32(replicas)), Capacity: v1alpha1.Capacity{MinOnDemand: int32(floor), SpotPercentage: ptr.To(int32(70))}}
}
