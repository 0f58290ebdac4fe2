package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheFormulaGivesTheSplitThatTheContractNames(t *testing.T) {
	for _, c := range []struct{ n, percent, floor, spot int }{
		{0, 70, 1, 0}, {3, 80, 5, 0}, {3, 100, 3, 0}, {10, 0, 1, 0}, {10, 73, 1, 7}, {10, 100, 0, 10}, {10, 90, 4, 6},
		{100, 70, 1, 70}, {37, 70, 1, 25}, {80, 70, 1, 56}, {5, 70, 1, 3}, {1, 100, 0, 1}, {1, 99, 0, 0}, {-3, 70, 0, 0},
	} {
		spot, onDemand := policy.Split(c.n, spottest.PolicyOf(c.percent, c.floor))
		if spot != c.spot || spot+onDemand != max(c.n, 0) {
			t.Errorf("Split(%d, %d%%, floor %d) = %d, %d, want %d spot", c.n, c.percent, c.floor, spot, onDemand, c.spot)
		}
	}
}

func TestSlotsAreTheFormulaOneReplicaAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := spottest.DrawMix(t)
		n := rapid.IntRange(0, 400).Draw(t, "n")
		spots := 0
		for slot := range n {
			if m.IsSpot(slot) {
				spots++
				if slot < m.Floor {
					t.Fatalf("slot %d is spot below the floor", slot)
				}
			}
			if step := m.Spot(slot+1) - m.Spot(slot); step < 0 || step > 1 {
				t.Fatalf("spot(%d) − spot(%d) = %d", slot+1, slot, step)
			}
		}
		if spots != m.Spot(n) {
			t.Fatalf("%d of the first %d slots are spot, the formula says %d", spots, n, m.Spot(n))
		}
		if m.OnDemand(n) < min(m.Floor, n) {
			t.Fatalf("only %d of %d are on-demand", m.OnDemand(n), n)
		}
	})
}

func TestOnlyAPolicyGivesSlotsACapacityType(t *testing.T) {
	if got := (policy.Mix{}).Of(0); got != capacity.Unknown {
		t.Errorf("without a policy slot 0 is %q", got)
	}
	spot, onDemand := policy.Split(4, policy.Policy{Problems: []policy.Problem{{}}})
	if spot != 0 || onDemand != 4 {
		t.Errorf("an invalid policy splits 4 into %d and %d", spot, onDemand)
	}
	if policy.SlotIsSpot(-1, spottest.PolicyOf(100, 0)) {
		t.Error("no slot is a spot slot")
	}
}

func TestTheFirstSlotOfATypeIsTheLowest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := spottest.DrawMix(t)
		m.Managed = rapid.IntRange(0, 9).Draw(t, "managed") > 0
		for _, capacityType := range []capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand} {
			want := 0
			for want < 3000 && m.Of(want) != capacityType {
				want++
			}
			if got := m.First(capacityType); want < 3000 && got != want || want == 3000 && got < policy.MaxSlot {
				t.Fatalf("%+v: the first %s slot is %d, want %d", m, capacityType, got, want)
			}
		}
	})
}
