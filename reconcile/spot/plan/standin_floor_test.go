package plan_test

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// standingIn are 20 replicas with a floor of 3, of which one on-demand and one spot replica were released, in this order.
func standingIn() (o plan.Observed, onDemand, spot *plan.Pod) {
	policy := spottest.PolicyOf(100, 3)
	pods := plantest.Replicas(20, policy.Mix())
	for i := range pods {
		pods[i].Hash = "abc"
	}
	release := func(slot int, at time.Duration) {
		old := pods[slot]
		old.UID, old.Name, old.Hash = old.UID+"-old", old.Name+"-old", plan.ReleasedHash("abc")
		old.Released = &plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeAdvisory, At: spottest.Epoch.Add(-at)}
		old.Interruption = &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}
		pods = append(pods, old)
		pods[slot].Created, pods[slot].UnreadySince = spottest.Epoch.Add(-at), spottest.Epoch.Add(-at)
	}
	release(0, 40*time.Second)
	release(19, 30*time.Second)
	return plantest.ObservedOf(pods, 20), &pods[0], &pods[19]
}

// finished are the released pods that a plan ends.
func finished(r *plan.Result) map[string]bool {
	ended := map[string]bool{}
	for _, e := range r.Evictions {
		if e.For == plan.PurposeFinish {
			ended[e.Name] = true
		}
	}
	return ended
}

// While all nodes drift, replicas of both types are released, and spot replacements come up first.
func TestASpotReplacementEndsNoStandInOfTheFloor(t *testing.T) {
	o, onDemand, spot := standingIn()
	onDemand.Ready = false
	r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); len(ended) != 1 || !ended[spot.Name+"-old"] {
		t.Errorf("the on-demand replacement does not serve: %v ended", ended)
	}
	onDemand.Ready, spot.Ready = true, false
	r = plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); len(ended) != 1 || !ended[onDemand.Name+"-old"] {
		t.Errorf("the spot replacement does not serve: %v ended", ended)
	}
}

// A replacement that was ready may be lost again before the pod that it replaces has ended.
func TestAStandInOfTheFloorServesOnWhenItsReplacementIsLost(t *testing.T) {
	o, onDemand, _ := standingIn()
	onDemand.Interruption = &plan.Interruption{Node: "m", Gone: true}
	r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); ended[onDemand.Name+"-old"] {
		t.Errorf("the node of the on-demand replacement is gone: %v ended", ended)
	}
}

// An autoscaler that drains a node takes a replica of the floor, whose replacement starts; then another one is released.
func TestAStandInOfTheFloorWaitsForReplicasOfTheFloorThatBeganToStartBefore(t *testing.T) {
	o, onDemand, _ := standingIn()
	starting := &o.Pods[1]
	starting.Ready, starting.Created, starting.UnreadySince = false, spottest.Epoch.Add(-time.Minute), spottest.Epoch.Add(-time.Minute)
	r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); ended[onDemand.Name+"-old"] || len(ended) != 1 {
		t.Errorf("two of the floor of 3 would serve: %v ended", ended)
	}
	if r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch.Add(plan.StuckAfter)); len(finished(&r)) != 2 {
		t.Errorf("it does not come up: %v ended", finished(&r))
	}
}

// A replica of the floor that was broken before any was released does not serve whatever is done.
func TestAReplicaOfTheFloorThatWasBrokenBeforeKeepsNoStandIn(t *testing.T) {
	o, _, _ := standingIn()
	o.Pods[1].Ready = false
	r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); len(ended) != 2 {
		t.Errorf("%v ended", ended)
	}
}

// A released pod in its last minute ends in any case: it stands in for nobody, and another released pod serves on in its place.
func TestAReleasedPodThatEndsInAnyCaseStandsInForNobody(t *testing.T) {
	o, onDemand, spot := standingIn()
	onDemand.Ready, spot.Ready = false, false
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Name == onDemand.Name+"-old" {
			pod.Interruption = &plan.Interruption{Node: "n", Weight: plan.WeightDeadline, By: spottest.Epoch}
		}
	}
	spot.Ready = true
	r := plan.Plan(o, spottest.PolicyOf(100, 3), plantest.DefaultSettings, spottest.Epoch)
	if ended := finished(&r); len(ended) != 1 || !ended[onDemand.Name+"-old"] {
		t.Errorf("one replica does not serve, and one of the two that stand in ends in any case: %v ended", ended)
	}
}
