package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

func TestABurstFromAnEmptyCacheIsExact(t *testing.T) {
	for _, lag := range []string{"nothing visible", "visible late", "visible in any order", "visible at once"} {
		t.Run(lag, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newSteps(t, false, rapid.Uint64().Draw(t, "seed"), 100, spottest.PolicyOf(70, 1))
				for range 100 {
					w.create(w.sets[0], "")
					w.wait(time.Duration(rapid.IntRange(0, 25).Draw(t, "ms"))*time.Millisecond, 8*time.Second)
					switch lag {
					case "visible in any order":
						w.rand.Shuffle(len(w.events), func(i, j int) { w.events[i], w.events[j] = w.events[j], w.events[i] })
						w.show(rapid.IntRange(0, 2).Draw(t, "seen"))
					case "visible late":
						w.show(rapid.IntRange(0, 2).Draw(t, "seen"))
					case "visible at once":
						w.deliver(0)
					}
				}
				if err := w.exact(); err != nil {
					t.Fatal(err)
				}
				if _, err := w.converge(); err != nil {
					t.Fatal(err)
				}
				if len(w.gone) != 0 {
					t.Fatalf("%d evictions", len(w.gone))
				}
			})
		})
	}
}

func TestScalingUpAndDownNeverNeedsAMove(t *testing.T) {
	w := newSteps(t, false, 1, 0, spottest.PolicyOf(70, 1))
	for _, n := range []int{100, 37, 80, 5, 64, 0, 10} {
		w.scale(n)
		w.deliver(0)
		w.control()
		w.start(n)
		w.deliver(0)
		if err := w.exact(); err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		if r := w.act(0); len(r.Evictions)+len(r.Assignments) > 0 || r.State != plan.StateConverged {
			t.Fatalf("at %d: %+v", n, r)
		}
	}
}

// The floor under everything that others do: pods evicted at random, refusals after admission, disruption budgets, a cache
// that lags by seconds, our own moves and restarts.
func TestTheFloorStandsThroughChurnRefusalsAndALaggingCache(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprintf("live lists %v", live), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := spottest.DrawMix(t)
				n := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 120)).Draw(t, "replicas")
				w := newSteps(t, rapid.IntRange(0, 3).Draw(t, "ordinals") == 0, rapid.Uint64().Draw(t, "seed"), n, spottest.PolicyOf(m.Percent, m.Floor))
				w.blind = map[bool]float64{false: 1}[live]
				if rapid.Bool().Draw(t, "policy changes") {
					w.policy = spottest.PolicyOf(rapid.IntRange(0, 100).Draw(t, "percent before"), m.Floor+rapid.IntRange(0, 9).Draw(t, "floor before"))
					w.control()
					w.policy = spottest.PolicyOf(m.Percent, m.Floor)
				}
				w.rejects = rapid.SampledFrom([]float64{0, 0.2, 0.6}).Draw(t, "refused")
				lag := rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 5 * time.Second}).Draw(t, "lag")
				for range rapid.IntRange(1, 150).Draw(t, "steps") {
					switch rapid.IntRange(0, 9).Draw(t, "what") {
					case 0, 1, 2:
						w.kill()
						w.control()
					case 3:
						for range rapid.IntRange(1, max(n/3, 1)).Draw(t, "kills") {
							w.kill()
						}
						w.control()
					case 4, 5:
						w.act(0.3)
					case 6:
						if len(w.events) == 0 || lag == 0 {
							w.restart()
						}
					case 7:
						w.show(rapid.IntRange(0, 5).Draw(t, "seen"))
					}
					if rapid.Bool().Draw(t, "controller runs") {
						w.control()
					}
					w.start(3)
					w.wait(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms"))*time.Millisecond, lag)
					if err := w.floorStands(); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.converge(); err != nil {
					t.Fatal(err)
				}
				if err := w.exact(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestAQuotaThatIsRaisedLeavesTheMixExact(t *testing.T) {
	w := newSteps(t, false, 1, 100, spottest.PolicyOf(70, 1))
	w.rejects = 1
	for i := range 100 {
		if i == 90 {
			w.rejects = 1
		} else if i < 90 {
			w.rejects = 0
		}
		w.create(w.sets[0], "")
	}
	w.deliver(0)
	for i := range 13 { // a ReplicaSet backs off while it is refused
		w.create(w.sets[0], "")
		w.wait(time.Duration(i)*time.Second, 0)
	}
	w.rejects = 0
	w.control()
	if err := w.exact(); err != nil {
		t.Fatal(err)
	}
}

func TestGuessesKeepTheMixNearItsShare(t *testing.T) {
	w := newSteps(t, false, 7, 100, spottest.PolicyOf(70, 1))
	w.control()
	w.start(100)
	w.wait(time.Minute, 0)
	for range 500 {
		w.kill()
		w.control()
		w.wait(200*time.Millisecond, 2*time.Second)
		if have := w.count(); have.OnDemand < 20 || have.OnDemand > 40 {
			t.Fatalf("%d of 100 are on-demand, the share is 30", have.OnDemand)
		}
	}
}
