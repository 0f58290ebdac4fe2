package spot

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Defects that the simulator found, each as the smallest plan that shows it.

// What leaves by a plan comes on top of stand-ins whose replacements are there: both are on the move.
func TestMovesAndAdviceOfOnePlanKeepTheLimitBesideStandIns(t *testing.T) {
	pods := Replicas(12, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
		switch i {
		case 2:
			pods[i].Capacity = capacity.Spot
		case 0, 4, 6, 9, 10:
			pods[i].Doom = &Doom{Node: "n", Weight: WeightAdvisory}
		default: // moves go at full pace
			pods[i].Moved, pods[i].Created, pods[i].UnreadySince = true, Epoch.Add(-30*time.Second), Epoch.Add(-30*time.Second)
		}
	}
	standIn := pods[9]
	standIn.Name, standIn.UID, standIn.Capacity, standIn.Hash, standIn.Doom = "web-old", "old", capacity.Spot, ReleasedHash("abc"), &Doom{Node: "o"}
	standIn.Released = &Released{Owner: OwnerUID, Hash: "abc", For: PurposeInterruption, At: Epoch.Add(-40 * time.Second)}
	settings := Settings{MaxMoves: policy.MoveLimit{Count: 6}, Cooldown: 10 * time.Second, Strategy: policy.StrategyRelease}
	r := Plan(ObservedOf(append(pods, standIn), 12), PolicyOf(0, 0), settings, Epoch)
	if r.Released != 1 || len(r.Releases) != 5 {
		t.Errorf("%d releases beside %d that stand in, the limit is 6: %s: %s", len(r.Releases), r.Released, r.State, r.Reason)
	}
}
