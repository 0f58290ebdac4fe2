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
		c.Grant(moveKey(fmt.Sprintf("eu-%d", i/10), i), 10, 0, spottest.Epoch)
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
