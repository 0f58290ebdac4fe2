package spot

import (
	"testing"
	"time"
)

// Defects that the simulator found, each as the smallest plan that shows it.

// What leaves by a plan comes on top of stand-ins whose replacements are there: both are on the move.
func TestMovesAndAdviceOfOnePlanKeepTheLimitBesideStandIns(t *testing.T) {
	pods := replicas(12, Mix{Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
		switch i {
		case 2:
			pods[i].Capacity = Spot
		case 0, 4, 6, 9, 10:
			pods[i].Doom = &Doom{Node: "n", Weight: WeightAdvisory}
		default: // moves go at full pace
			pods[i].Moved, pods[i].Created, pods[i].UnreadySince = true, epoch.Add(-30*time.Second), epoch.Add(-30*time.Second)
		}
	}
	standIn := pods[9]
	standIn.Name, standIn.UID, standIn.Capacity, standIn.Hash, standIn.Doom = "web-old", "old", Spot, ReleasedHash("abc"), &Doom{Node: "o"}
	standIn.Released = &Released{Owner: testOwner, Hash: "abc", For: PurposeInterruption, At: epoch.Add(-40 * time.Second)}
	settings := Settings{MaxMoves: MoveLimit{Count: 6}, Cooldown: 10 * time.Second, Strategy: StrategyRelease}
	r := Plan(observedOf(append(pods, standIn), 12), policyOf(0, 0), settings, epoch)
	if r.Released != 1 || len(r.Releases) != 5 {
		t.Errorf("%d releases beside %d that stand in, the limit is 6: %s: %s", len(r.Releases), r.Released, r.State, r.Reason)
	}
}
