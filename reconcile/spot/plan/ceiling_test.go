package plan

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func moveKey(member string, i int) MoveKey {
	return MoveKey{Member: member, WorkloadKey: policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}}}
}

func TestWithoutLimitsEveryMoveMayStart(t *testing.T) {
	if g := NewCeiling(CeilingLimits{}).Grant(moveKey("a", 1), 3, 500, spottest.Epoch); g != (Grant{Moves: 500}) {
		t.Errorf("%+v", g)
	}
}

func TestACeilingSaysWhoseItIsAndWhenToAskAgain(t *testing.T) {
	c := NewCeiling(CeilingLimits{Member: 3, Hub: 4})
	want := Grant{Moves: 3, Scope: "member", Retry: spottest.Epoch.Add(time.Second)}
	if g := c.Grant(moveKey("a", 1), 0, 5, spottest.Epoch); g != want {
		t.Errorf("%+v", g)
	}
	want = Grant{Moves: 1, Scope: "hub", Retry: spottest.Epoch.Add(time.Second)}
	if g := c.Grant(moveKey("b", 1), 0, 2, spottest.Epoch); g != want {
		t.Errorf("%+v", g)
	}
	c.Forget(moveKey("a", 1))
	if g := c.Grant(moveKey("b", 1), 1, 1, spottest.Epoch); g.Moves != 1 || g.Scope != "" || !g.Retry.IsZero() {
		t.Errorf("a workload that is gone takes room: %+v", g)
	}
}

// Whatever workloads ask for, the ceilings hold, and each that keeps asking is served before long.
func TestCeilingsHoldAndStarveNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := CeilingLimits{Member: rapid.IntRange(1, 6).Draw(t, "member"), Hub: rapid.IntRange(1, 10).Draw(t, "hub")}
		c, now := NewCeiling(limits), spottest.Epoch
		workloads := rapid.IntRange(1, 12).Draw(t, "workloads")
		moving, left, waited := map[MoveKey]int{}, map[MoveKey]int{}, map[MoveKey]int{}
		var keys []MoveKey
		for i := range workloads {
			key := moveKey(string(rune('a'+i%3)), i)
			keys = append(keys, key)
			left[key] = rapid.IntRange(0, 8).Draw(t, "moves")
		}
		for range 400 {
			for _, key := range rapid.Permutation(keys).Draw(t, "order") {
				done := rapid.IntRange(0, moving[key]).Draw(t, "done")
				if rapid.Bool().Draw(t, "all") {
					done = moving[key]
				}
				moving[key] -= done
				g := c.Grant(key, moving[key], left[key], now)
				moving[key] += g.Moves
				left[key] -= g.Moves
				waited[key]++
				if g.Moves > 0 || left[key] == 0 || moving[key] > 0 {
					waited[key] = 0
				}
				if waited[key] > 100 {
					t.Fatalf("%v waits for ever", key)
				}
			}
			all, perMember := 0, map[string]int{}
			for key, n := range moving {
				all += n
				perMember[key.Member] += n
			}
			for member, n := range perMember {
				if n > limits.Member {
					t.Fatalf("%d moves in member %s", n, member)
				}
			}
			if all > limits.Hub {
				t.Fatalf("%d moves in the hub", all)
			}
			now = now.Add(time.Second)
		}
		for key, n := range left {
			if n > 0 {
				t.Fatalf("%v still wants %d moves", key, n)
			}
		}
	})
}

// The member vanishes while it moves: its workloads never ask again.
func TestWorkloadsThatDoNotAskAnyMoreTakeNoRoomForEver(t *testing.T) {
	c := NewCeiling(CeilingLimits{Member: 100, Hub: 500})
	for i := range 50 {
		c.Grant(moveKey(fmt.Sprintf("eu-%d", i/10), i), 0, 10, spottest.Epoch)
	}
	if g := c.Grant(moveKey("us", 1), 0, 10, spottest.Epoch.Add(moverPatience)); g.Moves != 0 || g.Scope != scopeHub {
		t.Errorf("the hub's ceiling does not hold: %+v", g)
	}
	if g := c.Grant(moveKey("us", 1), 0, 10, spottest.Epoch.Add(moverPatience+time.Second)); g.Moves != 10 {
		t.Errorf("nobody asks but one, who gets %+v", g)
	}
	if n := c.Movers(); n != 1 {
		t.Errorf("%d movers are remembered", n)
	}
}

// What is on the move is read off pods. Those that never become available, have a finalizer, or were released in the year 3000 never
// stop to be.
func TestAWorkloadWithMovesWithoutEndHoldsNobodyElses(t *testing.T) {
	c, now := NewCeiling(CeilingLimits{Member: 100, Hub: 500}), spottest.Epoch
	endless := []MoveKey{moveKey("a", 0), moveKey("a", 1), moveKey("b", 0), moveKey("c", 0), moveKey("d", 0)}
	c.Grant(endless[0], 0, 100, now) // what it gets is its share
	neighbour, other := moveKey("a", 2), moveKey("z", 0)
	neighbour.Namespace = "bank"
	granted := 0
	for range 360 {
		for i, key := range endless {
			c.Grant(key, 10_000, i%2, now)
		}
		if g := c.Grant(other, 0, 1, now); g.Moves != 1 {
			t.Fatalf("after %v a workload of another member gets %+v", now.Sub(spottest.Epoch), g)
		}
		g := c.Grant(neighbour, 0, 1, now)
		granted += g.Moves
		if g.Moves != 1 && now.Sub(spottest.Epoch) > moverPatience {
			t.Fatalf("after %v a workload of the same member gets %+v", now.Sub(spottest.Epoch), g)
		}
		now = now.Add(10 * time.Second)
	}
	if granted == 0 {
		t.Error("a workload of the same member gets nothing")
	}
}

func TestMovesUnderWayCountForAWhileAfterARestart(t *testing.T) {
	c := NewCeiling(CeilingLimits{Member: 100, Hub: 150})
	c.Grant(moveKey("a", 1), 100, 0, spottest.Epoch)
	for _, now := range []time.Time{spottest.Epoch, spottest.Epoch.Add(takeOverTime)} {
		c.Grant(moveKey("a", 1), 100, 0, now)
		if g := c.Grant(moveKey("a", 2), 0, 1, now); g.Moves != 0 || g.Scope != scopeMember {
			t.Errorf("after %v: %+v", now.Sub(spottest.Epoch), g)
		}
		if g := c.Grant(moveKey("b", 1), 0, 100, now); g.Moves > 50 || g.Scope != scopeHub {
			t.Errorf("another member after %v: %+v", now.Sub(spottest.Epoch), g)
		}
	}
	c.Grant(moveKey("a", 1), 100, 0, spottest.Epoch.Add(takeOverTime+time.Second))
	if g := c.Grant(moveKey("a", 2), 0, 1, spottest.Epoch.Add(takeOverTime+time.Second)); g.Moves != 1 {
		t.Errorf("nobody granted them, and then there are %+v", g)
	}
	c.ForgetMember("a")
	c.Grant(moveKey("a", 1), 100, 0, spottest.Epoch.Add(time.Hour))
	if g := c.Grant(moveKey("a", 2), 0, 1, spottest.Epoch.Add(time.Hour)); g.Moves != 0 {
		t.Errorf("the member is taken over again: %+v", g)
	}
}

// Those who wait for room in their member wait for none in the hub.
func TestManyWhoWaitInAFullMemberHoldNoOtherMember(t *testing.T) {
	c := NewCeiling(CeilingLimits{Member: 2, Hub: 10})
	c.Grant(moveKey("a", 0), 0, 2, spottest.Epoch)
	for i := range 50 {
		c.Grant(moveKey("a", i+1), 0, 1, spottest.Epoch)
	}
	if g := c.Grant(moveKey("b", 0), 0, 1, spottest.Epoch); g.Moves != 1 {
		t.Errorf("%+v", g)
	}
}

// Bit by bit a workload is not granted more than its share counts for.
func TestMovesThatWereFinishedDoNotAddUp(t *testing.T) {
	c, now := NewCeiling(CeilingLimits{Member: 10}), spottest.Epoch
	c.Grant(moveKey("a", 1), 0, 0, now)
	now = now.Add(takeOverTime + time.Second)
	for range 20 {
		if g := c.Grant(moveKey("a", 0), 2, 3, now); g.Moves != 3 {
			t.Fatalf("%+v", g)
		}
		now = now.Add(10 * time.Second)
	}
	c.Grant(moveKey("a", 0), 10_000, 0, now)
	if g := c.Grant(moveKey("a", 1), 0, 10, now); g.Moves != 5 {
		t.Errorf("another one gets %+v beside 2 moves that go on and 3 that were granted last", g)
	}
}

// Whatever some report, the others are served before long.
func TestWhoReportsAnythingStarvesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := CeilingLimits{Member: rapid.IntRange(1, 6).Draw(t, "member"), Hub: rapid.IntRange(1, 10).Draw(t, "hub")}
		c, now := NewCeiling(limits), spottest.Epoch
		report := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 12), rapid.Just(10_000))
		liars := rapid.IntRange(1, 6).Draw(t, "liars")
		honest := []MoveKey{moveKey("a", 100), moveKey("b", 100), moveKey("z", 100)}
		left := map[MoveKey]int{}
		for _, key := range honest {
			left[key] = rapid.IntRange(1, 4).Draw(t, "moves")
		}
		for rounds := 0; left[honest[0]]+left[honest[1]]+left[honest[2]] > 0; rounds++ {
			if rounds > 12*2*15*(liars+1) {
				t.Fatalf("after %v there are left %v", now.Sub(spottest.Epoch), left)
			}
			for i := range liars {
				c.Grant(moveKey(string(rune('a'+i%3)), i), report.Draw(t, "report"), rapid.IntRange(0, 5).Draw(t, "want"), now)
			}
			for _, key := range honest {
				left[key] -= c.Grant(key, 0, left[key], now).Moves
			}
			now = now.Add(5 * time.Second)
		}
	})
}
