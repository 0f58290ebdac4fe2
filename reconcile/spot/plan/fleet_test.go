package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// underFleet is the policy of a workload of which a fleet placement wants so many replicas.
func underFleet(replicas, onDemand int) policy.Policy {
	return spottest.PolicyOf(30, 1).Under(&policy.FleetSplit{Replicas: replicas, OnDemand: onDemand}, spottest.DefaultKeys)
}

func splitOf(replicas, onDemand int) policy.FleetSplit {
	return policy.FleetSplit{Replicas: replicas, OnDemand: onDemand}
}

func mixUnder(s policy.FleetSplit) policy.Mix {
	p := underFleet(s.Replicas, s.OnDemand)
	return p.Mix()
}

// assigned does what a plan says about slots.
func assigned(pods []plan.Pod, r *plan.Result) []plan.Pod {
	pods = slices.Clone(pods)
	for _, s := range r.Assignments {
		for i := range pods {
			if pods[i].UID == s.Pod {
				pods[i].Slot = s.Slot
				if s.DeletionCost != "" {
					pods[i].DeletionCost = policy.ParseCost(s.DeletionCost)
				}
			}
		}
	}
	return pods
}

// shrunk takes away what a ReplicaSet's controller does: of ready pods, those with the lowest deletion costs.
func shrunk(pods []plan.Pod, n int) []plan.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b plan.Pod) int { return b.DeletionCost.Number() - a.DeletionCost.Number() })
	return pods[:n]
}

func typesOf(pods []plan.Pod) string {
	var t capacity.Tally
	for i := range pods {
		t.Add(pods[i].Capacity, 1)
	}
	return fmt.Sprintf("%d spot, %d on-demand", t.Of(capacity.Spot), t.Of(capacity.OnDemand))
}

func TestAWorkloadShrinksByTheReplicasThatAFleetPlacementWantsGone(t *testing.T) {
	for name, test := range map[string]struct {
		before, after policy.FleetSplit
		want          string
	}{
		"on-demand goes":             {splitOf(15, 5), splitOf(13, 3), "10 spot, 3 on-demand"},
		"spot goes":                  {splitOf(15, 5), splitOf(13, 5), "8 spot, 5 on-demand"},
		"both go":                    {splitOf(15, 5), splitOf(11, 3), "8 spot, 3 on-demand"},
		"all on-demand goes":         {splitOf(6, 4), splitOf(2, 0), "2 spot, 0 on-demand"},
		"all spot goes":              {splitOf(6, 4), splitOf(4, 4), "0 spot, 4 on-demand"},
		"all goes":                   {splitOf(6, 4), splitOf(0, 0), "0 spot, 0 on-demand"},
		"on-demand from a full slot": {splitOf(200, 120), splitOf(90, 10), "80 spot, 10 on-demand"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := plantest.Replicas(test.before.Replicas, mixUnder(test.before))
			pol := underFleet(test.after.Replicas, test.after.OnDemand)
			r := plan.Plan(plantest.ObservedOf(pods, test.before.Replicas), pol, plantest.DefaultSettings, spottest.Epoch)
			if len(r.Evictions)+len(r.Releases) > 0 {
				t.Errorf("pods are moved while the number of replicas is about to change: %v", plantest.Names(r.Evictions))
			}
			pods = assigned(pods, &r)
			if again := plan.Plan(plantest.ObservedOf(pods, test.before.Replicas), pol, plantest.DefaultSettings, spottest.Epoch); len(again.Assignments)+len(again.Evictions) > 0 {
				t.Errorf("it does not come to rest: assignments %v, evictions %v", again.Assignments, plantest.Names(again.Evictions))
			}
			pods = shrunk(pods, test.after.Replicas)
			if got := typesOf(pods); got != test.want {
				t.Errorf("%s stay, want %s", got, test.want)
			}
			if after := plan.Plan(plantest.ObservedOf(pods, test.after.Replicas), pol, plantest.DefaultSettings, spottest.Epoch); len(after.Assignments)+len(after.Evictions) > 0 || after.State != plan.StateConverged {
				t.Errorf("afterwards it is %s: assignments %v, evictions %v", after.State, after.Assignments, plantest.Names(after.Evictions))
			}
		})
	}
}

// What serves stays, and what a drought takes anyway goes: here a budget lets nobody evict it.
func TestAWorkloadThatShrinksGivesUpPodsOfNodesThatGoFirst(t *testing.T) {
	before, after := splitOf(10, 3), splitOf(6, 3)
	pods := plantest.Replicas(before.Replicas, mixUnder(before))
	interrupted := map[types.UID]bool{}
	for i := range pods {
		if pods[i].Slot >= 3 && pods[i].Slot < 7 { // the youngest stay
			interrupted[pods[i].UID] = true
			pods[i].Interruption = &plan.Interruption{Node: "n", Notice: "taken back", Since: spottest.Epoch, By: spottest.Epoch.Add(2 * time.Minute)}
		}
		pods[i].Budgets = []int{0}
	}
	observe := func() plan.Observed {
		o := plantest.ObservedOf(pods, before.Replicas)
		o.Budgets = []plan.Budget{{Name: "none", Desired: 10}}
		return o
	}
	pol := underFleet(after.Replicas, after.OnDemand)
	r := plan.Plan(observe(), pol, plantest.DefaultSettings, spottest.Epoch)
	pods = assigned(pods, &r)
	if again := plan.Plan(observe(), pol, plantest.DefaultSettings, spottest.Epoch); len(again.Assignments) > 0 {
		t.Errorf("it does not come to rest: %v", again.Assignments)
	}
	for _, pod := range shrunk(pods, after.Replicas) {
		if interrupted[pod.UID] {
			t.Errorf("%s stays on a node that goes", pod.Name)
		}
	}
}

func TestAWorkloadGrowsByTheReplicasThatAFleetPlacementWants(t *testing.T) {
	before, after := splitOf(13, 3), splitOf(17, 5)
	pods := plantest.Replicas(before.Replicas, mixUnder(before))
	pol := underFleet(after.Replicas, after.OnDemand)
	r := plan.Plan(plantest.ObservedOf(pods, before.Replicas), pol, plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) > 0 {
		t.Errorf("pods are moved while the number of replicas is about to change: %v", plantest.Names(r.Evictions))
	}
	pods = assigned(pods, &r)
	taken := map[int]bool{}
	for i := range pods {
		taken[pods[i].Slot] = true
	}
	for range after.Replicas - before.Replicas { // as admission does: the lowest slot that is free
		slot := 0
		for taken[slot] {
			slot++
		}
		taken[slot] = true
		pod := pods[0]
		pod.Name, pod.UID, pod.Slot, pod.Capacity = fmt.Sprintf("new-%d", slot), "", slot, pol.Mix().Of(slot)
		pods = append(pods, pod)
	}
	if got := typesOf(pods); got != "12 spot, 5 on-demand" {
		t.Errorf("there are %s", got)
	}
}

func TestAFleetPlacementComesBeforeEveryOtherValue(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "most", "max-moves", "x"), nil, policy.Defaults{}).Under(&policy.FleetSplit{Replicas: 10, OnDemand: 4}, spottest.DefaultKeys)
	if !p.Valid() || p.PercentageSource != policy.SourceFleet || p.MinOnDemandSource != policy.SourceFleet {
		t.Errorf("%+v", p)
	}
	if spot, onDemand := policy.Split(10, p); spot != 6 || onDemand != 4 {
		t.Errorf("%d on spot, %d on on-demand", spot, onDemand)
	}
	if len(p.Problems) != 1 || p.Problems[0].Key != spottest.DefaultKeys.MaxMoves() {
		t.Errorf("problems of other values stay: %v", p.Problems)
	}
}

// A StatefulSet gives up its highest ordinals, whatever their slots.
func TestOrdinalsKeepTheirSlotsUnderAFleetPlacement(t *testing.T) {
	pods := plantest.Replicas(6, mixUnder(splitOf(6, 4)))
	for i := range pods {
		pods[i].DeletionCost = policy.NoCost
	}
	o := plantest.ObservedOf(pods, 6)
	o.Ordinals = true
	r := plan.Plan(o, underFleet(4, 2), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Assignments)+len(r.Evictions) > 0 {
		t.Errorf("assignments %v, evictions %v", r.Assignments, plantest.Names(r.Evictions))
	}
}

// An ordinal exists only once: it moves when the fleet placement can do without it, and as many as that.
func TestOrdinalsUnderAFleetPlacementMoveAsFarAsItAllows(t *testing.T) {
	for exchanges, want := range []int{0, 1, 1} { // one at a time
		split := policy.FleetSplit{Replicas: 6, OnDemand: 4, Exchanges: exchanges}
		pods := plantest.Replicas(6, mixUnder(splitOf(6, 2)))
		for i := range pods {
			pods[i].Name = fmt.Sprintf("web-%d", i)
		}
		o := plantest.ObservedOf(pods, 6)
		o.Ordinals = true
		r := plan.Plan(o, spottest.PolicyOf(30, 1).Under(&split, spottest.DefaultKeys), plantest.DefaultSettings, spottest.Epoch)
		if len(r.Evictions) != want {
			t.Errorf("%d may move, and evicted are %v: %s", exchanges, plantest.Names(r.Evictions), r.Reason)
		}
	}
}
