package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	fleetplacing "github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// Place adds a FleetPlacement of a Deployment that is placed: so many replicas on spot in each of some members, and two on on-demand
// capacity in the first one.
func (w *World) Place(namespace, name string, each int32, members ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &fleetv1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-48 * time.Hour))}}
	replicas := 2 + each*int32(len(members))
	p.Spec = fleetv1.FleetPlacementSpec{
		TargetRef: fleetv1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, Replicas: &replicas, Capacity: fleetv1.Capacity{MinOnDemand: 2},
	}
	for i, member := range members {
		there := fleetv1.MemberStatus{Name: member, Tier: int32(1 + i/2), State: fleetv1.MemberPlaced, Spot: counted(each), Reason: fmt.Sprintf("tier %d, equal shares", 1+i/2)}
		if i == 0 {
			there.OnDemand = counted(2)
		}
		p.Status.Members = append(p.Status.Members, there)
	}
	p.Status.LastMoves = []fleetv1.Move{{Time: metav1.NewTime(time.Now().Add(-time.Minute)), Member: members[0], Capacity: "spot", By: each, Reason: "tier 1 comes first"}}
	setReady(p, fleetv1.ReasonPlaced, metav1.ConditionTrue, "every replica is where the plan has it")
	w.placements[namespace+"/"+name] = p
	w.placed++
}

func counted(n int32) fleetv1.Counts { return fleetv1.Counts{Wanted: n, Set: n, Running: n, Ready: n} }

// setReady sets condition Ready, and adds the members up.
func setReady(p *fleetv1.FleetPlacement, reason string, status metav1.ConditionStatus, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: reconcile.ConditionReady, Status: status, Reason: reason, Message: message})
	s := &p.Status
	s.Replicas, s.ReadyReplicas, s.Spot, s.OnDemand = 0, 0, fleetv1.Counts{}, fleetv1.Counts{}
	for i := range s.Members {
		for of, sum := range map[*fleetv1.Counts]*fleetv1.Counts{&s.Members[i].Spot: &s.Spot, &s.Members[i].OnDemand: &s.OnDemand} {
			sum.Wanted, sum.Set, sum.Running, sum.Ready = sum.Wanted+of.Wanted, sum.Set+of.Set, sum.Running+of.Running, sum.Ready+of.Ready
		}
	}
	s.Replicas, s.ReadyReplicas = s.Spot.Running+s.OnDemand.Running, s.Spot.Ready+s.OnDemand.Ready
}

// LoseReplicas takes the replicas of a FleetPlacement in a member for lost, which the member's next one is to make up for.
func (w *World) LoseReplicas(namespace, name, member, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.placements[namespace+"/"+name].DeepCopy() // the API may be reading the one there is
	for i := range p.Status.Members {
		lost := &p.Status.Members[i]
		if lost.Name != member {
			continue
		}
		next := &p.Status.Members[(i+1)%len(p.Status.Members)]
		by := lost.Spot.Wanted
		next.Spot.Wanted, next.Spot.Set, next.State = next.Spot.Wanted+by, next.Spot.Set+by, fleetv1.MemberMoving
		lost.State, lost.Spot, lost.Reason = fleetv1.MemberLost, fleetv1.Counts{}, why
		p.Status.LastMoves = slices.Insert(p.Status.LastMoves, 0, fleetv1.Move{Time: metav1.Now(), Member: next.Name, Capacity: "spot", By: by, Reason: "makes up for " + member})
	}
	setReady(p, fleetv1.ReasonMoving, metav1.ConditionFalse, "replicas are started: "+why)
	w.placements[namespace+"/"+name] = p
	w.placed++
}

// placing implements api.Fleet.
type placing struct{ *World }

// Version implements api.Fleet.
func (f placing) Version() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.placed
}

// Namespaces implements api.Fleet.
func (f placing) Namespaces() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[string]bool{}
	for _, p := range f.placements {
		names[p.Namespace] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Placements implements api.Fleet.
func (f placing) Placements(namespace string) (found []*fleetv1.FleetPlacement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.placements {
		if p.Namespace == namespace {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *fleetv1.FleetPlacement) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Placement implements api.Fleet.
func (f placing) Placement(namespace, name string) (*fleetv1.FleetPlacement, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.placements[namespace+"/"+name]
	return p, ok
}

// Explain implements api.Fleet.
func (f placing) Explain(namespace, name string) (fleetplacing.Explanation, bool) {
	p, ok := f.Placement(namespace, name)
	if !ok {
		return fleetplacing.Explanation{}, false
	}
	time.Sleep(f.ExplainTakes)
	members, placements := planned(p)
	found, ok := fleet.Explain(members, placements, name, time.Now())
	return fleetplacing.Explanation{Explanation: found, At: time.Now()}, ok
}

// Suppose implements api.Fleet.
func (f placing) Suppose(namespace, name string, h fleetplacing.Hypothesis) (fleetplacing.Supposition, bool) {
	p, ok := f.Placement(namespace, name)
	if !ok {
		return fleetplacing.Supposition{}, false
	}
	p = p.DeepCopy()
	h.Change(&p.Spec)
	members, placements := planned(p)
	found, ok := fleet.PlanOne(members, placements, name, time.Now())
	return fleetplacing.Supposition{Result: found, CostNow: 1, Cost: 2, At: time.Now()}, ok
}

// planned is what a FleetPlacement is planned from here: the members that its status has, all alike.
func planned(p *fleetv1.FleetPlacement) (*fleet.Fleet, []fleet.Placement) {
	f, tier := &fleet.Fleet{}, fleet.Tier{}
	for i := range p.Status.Members {
		supply := fleet.Supply{Room: fleet.Unbounded, Start: time.Minute}
		f.Members = append(f.Members, fleet.Member{Name: p.Status.Members[i].Name, Spot: supply, OnDemand: supply})
		tier = append(tier, fleet.Choice{Member: p.Status.Members[i].Name})
	}
	return f, []fleet.Placement{{Name: p.Name, Policy: fleet.Policy{
		Replicas: int(*p.Spec.Replicas), MinOnDemand: int(p.Spec.Capacity.MinOnDemand), SpotPercentage: 100, Tiers: []fleet.Tier{tier},
	}}}
}
