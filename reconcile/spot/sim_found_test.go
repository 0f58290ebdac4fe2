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
	pods := replicas(12, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
		switch i {
		case 2:
			pods[i].Capacity = capacity.Spot
		case 0, 4, 6, 9, 10:
			pods[i].Doom = &Doom{Node: "n", Weight: WeightAdvisory}
		default: // moves go at full pace
			pods[i].Moved, pods[i].Created, pods[i].UnreadySince = true, epoch.Add(-30*time.Second), epoch.Add(-30*time.Second)
		}
	}
	standIn := pods[9]
	standIn.Name, standIn.UID, standIn.Capacity, standIn.Hash, standIn.Doom = "web-old", "old", capacity.Spot, ReleasedHash("abc"), &Doom{Node: "o"}
	standIn.Released = &Released{Owner: testOwner, Hash: "abc", For: PurposeInterruption, At: epoch.Add(-40 * time.Second)}
	settings := Settings{MaxMoves: policy.MoveLimit{Count: 6}, Cooldown: 10 * time.Second, Strategy: policy.StrategyRelease}
	r := Plan(observedOf(append(pods, standIn), 12), policyOf(0, 0), settings, epoch)
	if r.Released != 1 || len(r.Releases) != 5 {
		t.Errorf("%d releases beside %d that stand in, the limit is 6: %s: %s", len(r.Releases), r.Released, r.State, r.Reason)
	}
}

// The predecessor has released a pod, and the live list after the takeover, which shows what the ReplicaSet has, does not have
// it. It is there all the same, and somebody has to end it.
func TestAPodThatThePredecessorReleasedIsNotTakenForGone(t *testing.T) {
	a, released := NewAccounting(false), &Released{Owner: testOwner, At: epoch, For: PurposeMove}
	pod := Pod{UID: "0", Slot: 0, Capacity: capacity.Spot, Version: 1}
	a.Observe(&pod, epoch)
	a.TakeOver(epoch)
	a.Sync(nil, a.ProvenBy(), a.ProvenBy())
	if a.visible.All != 0 {
		t.Fatal("a pod that is missing in the list holds its slot")
	}
	late := pod
	late.Version = 2
	a.Observe(&late, epoch.Add(time.Second))
	if a.Mark(&late); !late.Evicted || a.visible.All != 0 {
		t.Error("what the cache showed of it before the list counts")
	}
	late = pod
	late.Version, late.Released = 3, released
	a.Observe(&late, epoch.Add(2*time.Second))
	if a.Mark(&late); late.Evicted || !a.Free(late.UID, epoch.Add(3*time.Second)) {
		t.Error("it is never ended")
	}
}
