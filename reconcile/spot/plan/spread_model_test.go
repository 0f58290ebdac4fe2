package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// zoneWorld is a Deployment whose pods must be spread over zones: its controller, a scheduler that keeps the constraint as
// Kubernetes does, and the core.
type zoneWorld struct {
	t      *testing.T
	rand   *rand.Rand
	now    time.Time
	spread plan.Spread
	policy policy.Policy
	wanted int
	pods   []*plan.Pod
	made   int
}

// skews returns the skews over both types, and over each.
func (w *zoneWorld) skews() (all, spot, onDemand int) {
	return plan.Skews(w.spread, w.pods)
}

// control deletes and creates as a ReplicaSet does; admission places what is created.
func (w *zoneWorld) control() {
	slices.SortFunc(w.pods, plantest.DeletedFirst)
	if surplus := len(w.pods) - w.wanted; surplus > 0 {
		w.pods = w.pods[surplus:]
	}
	for len(w.pods) < w.wanted {
		acc := slots.NewAccounting(false)
		for _, pod := range w.pods {
			acc.Observe(pod, w.now)
		}
		w.made++
		id := fmt.Sprint(w.made)
		answer := acc.Reserve(slots.Ask{ID: id, Wanted: w.wanted, Mix: w.policy.Mix(), Final: true}, w.now)
		w.pods = append(w.pods, &plan.Pod{Name: "web-" + id, UID: types.UID(id), Owner: spottest.OwnerUID, Version: uint64(w.made), Slot: answer.Slot, Capacity: answer.Capacity,
			DeletionCost: policy.ParseCost(w.policy.Mix().Cost(answer.Slot)), Created: w.now, UnreadySince: w.now})
	}
}

// schedule binds the pods that wait, in any order, each to a zone that the constraint allows: of those to the one where most
// room is left, which is where fewest of its type are. A pod that fits nowhere fails the test.
func (w *zoneWorld) schedule() {
	w.rand.Shuffle(len(w.pods), func(i, j int) { w.pods[i], w.pods[j] = w.pods[j], w.pods[i] })
	for _, pod := range w.pods {
		if pod.Bound {
			continue
		}
		fits, counts := plan.Fits(w.spread, w.pods, pod.Capacity)
		if len(fits) == 0 {
			w.t.Fatalf("a %s pod fits into no zone: %v", pod.Capacity, counts)
		}
		w.rand.Shuffle(len(fits), func(i, j int) { fits[i], fits[j] = fits[j], fits[i] })
		best := slices.MinFunc(fits, func(a, b int) int {
			return cmp.Compare(counts[a], counts[b])
		})
		pod.Bound, pod.Ready, pod.Node, pod.Domains = true, true, w.spread.Domains[best].Name, []int32{int32(best)}
	}
}

// rest runs until nothing is left to do, and returns the last plan.
func (w *zoneWorld) rest() plan.Result {
	for range 500 {
		w.now = w.now.Add(30 * time.Second)
		w.control()
		w.schedule()
		o := plantest.ObservedOf(nil, w.wanted)
		o.Owners[0].Spreads = []plan.Spread{w.spread}
		for _, pod := range w.pods {
			o.Pods = append(o.Pods, *pod)
		}
		r := plan.Plan(o, w.policy, plantest.DefaultSettings, w.now)
		if len(r.Assignments)+len(r.Evictions) == 0 && r.State == plan.StateConverged {
			return r
		}
		for _, assignment := range r.Assignments {
			for _, pod := range w.pods {
				if pod.UID == assignment.Pod {
					pod.Slot = assignment.Slot
					if assignment.DeletionCost != "" {
						pod.DeletionCost = policy.ParseCost(assignment.DeletionCost)
					}
				}
			}
		}
		for _, e := range r.Evictions {
			w.pods = slices.DeleteFunc(w.pods, func(p *plan.Pod) bool { return p.UID == e.Pod })
		}
	}
	w.t.Fatal("it does not come to rest")
	return plan.Result{}
}

// Whatever is scaled and whatever the policy becomes, no pod waits forever, and the skew is kept where the scheduler counts it:
// over both types together, else over each. Where it is not kept over both, it is said.
func TestModelOfATopologySpreadOverBothCapacityTypes(t *testing.T) {
	beyond, all := 0, 0
	for seed := range uint64(150) {
		w := &zoneWorld{t: t, rand: rand.New(rand.NewPCG(seed, 11)), now: spottest.Epoch, wanted: 12, policy: spottest.PolicyOf(60, 2)}
		w.spread = plantest.ThreeZones(true)
		w.spread.MaxSkew = 1 + int(seed%2)
		if seed%3 == 0 {
			w.spread.Together, w.spread.Domains[2].Spot = false, false
		}
		for step := range 12 {
			if step > 0 {
				switch w.rand.IntN(3) {
				case 0:
					w.wanted = 1 + w.rand.IntN(30)
				case 1:
					w.policy = spottest.PolicyOf(w.rand.IntN(101), w.policy.Mix().Floor)
				default:
					w.policy = spottest.PolicyOf(w.policy.Mix().Percent, w.rand.IntN(8))
				}
			}
			r := w.rest()
			both, spot, onDemand := w.skews()
			all++
			if both > w.spread.MaxSkew {
				beyond++
			}
			if told := r.Skew != ""; told != (both > w.spread.MaxSkew) {
				t.Fatalf("seed %d, step %d: skew %d of %d, and said is %q", seed, step, both, w.spread.MaxSkew, r.Skew)
			}
			if !w.spread.Together && max(spot, onDemand) > w.spread.MaxSkew {
				t.Fatalf("seed %d, step %d: skews %d on spot and %d on-demand, want at most %d", seed, step, spot, onDemand, w.spread.MaxSkew)
			}
			if w.spread.Together && both > w.spread.MaxSkew {
				t.Errorf("seed %d, step %d: %d of %d (%d spot, %d on-demand; policy %s)", seed, step, both, w.spread.MaxSkew, spot, onDemand, fmt.Sprint(w.policy.Mix(), w.wanted))
			}
		}
	}
	t.Logf("%d of %d states at rest are beyond the skew over both types", beyond, all)
}
