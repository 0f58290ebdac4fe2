package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// settledSteps returns a workload whose replicas are all ready where the policy before wants them, for long enough.
func settledSteps(t *rapid.T, ordinals bool) *steps {
	n := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(1, 150)).Draw(t, "replicas")
	before := spottest.DrawMix(t)
	w := newSteps(t, ordinals, rapid.Uint64().Draw(t, "seed"), n, spottest.PolicyOf(before.Percent, before.Floor))
	w.control()
	w.start(n)
	w.wait(time.Minute, 0)
	if err := w.exact(); err != nil {
		t.Fatal(err)
	}
	return w
}

// A policy change moves exactly as many replicas as the counts differ, never more at a time than allowed and never below
// the floor, whenever it restarts, however late the cache and whatever a disruption budget refuses.
func TestAPolicyChangeMovesExactlyTheDifference(t *testing.T) {
	for name, ordinals := range map[string]bool{"Deployment": false, "StatefulSet": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkPolicyChange(t, settledSteps(t, ordinals)) })
		})
	}
}

func checkPolicyChange(t *rapid.T, w *steps) {
	n, before := w.replicas, w.mix()
	after := spottest.DrawMix(t)
	w.policy = spottest.PolicyOf(after.Percent, after.Floor)
	limit := w.settings.MaxMoves.Of(n)
	if w.ordinals {
		limit = 1
	}
	lag := rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(t, "lag")
	refused := rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "budget refuses")
	var moved []time.Time
	for step := 0; ; step++ {
		if step > 5000 {
			t.Fatalf("no end: %+v", w.plan())
		}
		done := len(w.gone)
		r := w.act(refused)
		for range len(w.gone) - done {
			moved = append(moved, w.now)
		}
		if n := within(moved, w.now, w.settings.Cooldown); n > limit {
			t.Fatalf("%d moves within a cool-down, the limit is %d", n, limit)
		}
		ready := 0
		for _, p := range w.active(w.sets[0]) {
			if p.Ready && p.Capacity == capacity.OnDemand {
				ready++
			}
		}
		if ready < min(after.Floor, before.OnDemand(n)) {
			t.Fatalf("%d on-demand replicas are ready, the floor is %d", ready, after.Floor)
		}
		w.control()
		if moving := n - readyOf(w); moving > limit {
			t.Fatalf("%d replicas are on the move, the limit is %d", moving, limit)
		}
		if r.State == plan.StateConverged && len(w.events) == 0 {
			break
		}
		if rapid.IntRange(0, 3).Draw(t, "start") > 0 {
			w.start(rapid.IntRange(0, limit).Draw(t, "started"))
		}
		w.wait(time.Duration(rapid.IntRange(100, 4000).Draw(t, "ms"))*time.Millisecond, lag)
		if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
			w.restart()
		}
	}
	if err := w.exact(); err != nil {
		t.Fatal(err)
	}
	if want := abs(before.Spot(n) - after.Spot(n)); len(w.gone) != want {
		t.Fatalf("%d moves, the counts differ by %d", len(w.gone), want)
	}
}

// within counts the times that are less than d before now.
func within(times []time.Time, now time.Time, d time.Duration) int {
	n := 0
	for _, at := range times {
		if now.Sub(at) < d {
			n++
		}
	}
	return n
}

// The predecessor needs about six minutes.
func TestAHundredReplicasGoFromSeventyToThirtyPercentWithASlowStart(t *testing.T) {
	w := newSteps(t, false, 1, 100, spottest.PolicyOf(70, 1))
	w.control()
	w.start(100)
	w.wait(time.Second, 0)
	w.policy = spottest.PolicyOf(30, 1)
	var batches []int
	for w.wait(time.Minute, 0); len(batches) < 5; w.wait(time.Second, 0) {
		if n := len(w.act(0).Evictions); n > 0 {
			batches = append(batches, n)
		}
		w.control()
		w.start(100)
	}
	if diff := cmp.Diff([]int{1, 2, 4, 3, 10}, batches); diff != "" { // the first four are one batch
		t.Error(diff)
	}
	took, err := w.converge()
	if err != nil {
		t.Fatal(err)
	}
	if len(w.gone) != 40 || took > 30*time.Second {
		t.Errorf("%d moves, the last 20 in %s", len(w.gone), took)
	}
}

func readyOf(w *steps) int {
	ready := 0
	for _, p := range w.active(w.sets[0]) {
		if p.Ready {
			ready++
		}
	}
	return ready
}

func abs(n int) int { return max(n, -n) }

// Pods that exist when a workload is enabled have no slots, and capacity types as it happens.
func TestExistingPodsAreAdoptedWithAsFewMovesAsTheirTypesAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := spottest.DrawMix(t)
		n := rapid.IntRange(1, 60).Draw(t, "replicas")
		w := newSteps(t, false, rapid.Uint64().Draw(t, "seed"), n, spottest.PolicyOf(m.Percent, m.Floor))
		w.control()
		w.start(n)
		spot := 0
		for _, p := range w.active(w.sets[0]) {
			p.Slot, p.DeletionCost = rapid.OneOf(rapid.Just(plan.NoSlot), rapid.IntRange(0, 2*n)).Draw(t, "slot"), policy.NoCost
			p.Capacity = rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")
			if p.Capacity == capacity.Spot {
				spot++
			}
			w.bind(p)
		}
		w.wait(time.Minute, 0)
		w.search()
		first := w.act(0)
		seen := map[int]bool{}
		for _, p := range w.active(w.sets[0]) {
			if seen[p.Slot] || p.Slot == plan.NoSlot {
				t.Fatalf("after one plan, %s has slot %d", p.Name, p.Slot)
			}
			seen[p.Slot] = true
		}
		w.deliver(0)
		if again := w.plan(); len(again.Assignments) > 0 && len(first.Evictions) == 0 {
			t.Fatalf("assigned again: %+v", again.Assignments)
		}
		if _, err := w.converge(); err != nil {
			t.Fatal(err)
		}
		if err := w.exact(); err != nil {
			t.Fatal(err)
		}
		if want := abs(spot - m.Spot(n)); len(w.gone) != want {
			t.Fatalf("%d moves, the counts differ by %d", len(w.gone), want)
		}
	})
}

// The API server lets a pod through as it is when our answer is late.
func TestPodsThatSlippedPastTheWebhookAreAdopted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := spottest.DrawMix(t)
		w := newSteps(t, rapid.Bool().Draw(t, "ordinals"), rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "replicas"), spottest.PolicyOf(m.Percent, m.Floor))
		w.loses = rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "lost")
		for range rapid.IntRange(1, 10).Draw(t, "rounds") {
			w.control()
			w.start(rapid.IntRange(0, w.replicas).Draw(t, "started"))
			w.kill()
			w.wait(time.Second, 2*time.Second)
			w.act(0)
		}
		w.loses = 0
		if _, err := w.converge(); err != nil {
			t.Fatal(err)
		}
		if err := w.exact(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAPlanOverAConvergedWorkloadDoesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := settledSteps(t, rapid.Bool().Draw(t, "ordinals"))
		r := w.plan()
		if r.State != plan.StateConverged || len(r.Assignments)+len(r.Evictions) > 0 || !r.Recheck.IsZero() {
			t.Fatalf("%+v", r)
		}
	})
}
