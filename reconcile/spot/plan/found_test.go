package plan_test

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Defects that the simulator found, each as the smallest plan that shows it.

// What leaves by a plan comes on top of stand-ins whose replacements are there: both are on the move.
func TestMovesAndAdviceOfOnePlanKeepTheLimitBesideStandIns(t *testing.T) {
	pods := plantest.Replicas(12, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
		switch i {
		case 2:
			pods[i].Capacity = capacity.Spot
		case 0, 4, 6, 9, 10:
			pods[i].Interruption = &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}
		default: // moves go at full pace
			pods[i].Moved, pods[i].Created, pods[i].UnreadySince = true, spottest.Epoch.Add(-30*time.Second), spottest.Epoch.Add(-30*time.Second)
		}
	}
	standIn := pods[9]
	standIn.Name, standIn.UID, standIn.Capacity, standIn.Hash, standIn.Interruption = "web-old", "old", capacity.Spot, plan.ReleasedHash("abc"), &plan.Interruption{Node: "o"}
	standIn.Released = &plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeInterruption, At: spottest.Epoch.Add(-40 * time.Second)}
	settings := plan.Settings{MaxMoves: policy.MoveLimit{Count: 6}, Cooldown: 10 * time.Second, Strategy: policy.StrategyRelease}
	r := plan.Plan(plantest.ObservedOf(append(pods, standIn), 12), spottest.PolicyOf(0, 0), settings, spottest.Epoch)
	if r.Released != 1 || len(r.Releases) != 5 {
		t.Errorf("%d releases beside %d that stand in, the limit is 6: %s: %s", len(r.Releases), r.Released, r.State, r.Reason)
	}
}
