package slots

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheLowestFreeSlotIsFoundWhateverHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table slotTable
		model := map[int]int{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			slot := rapid.OneOf(rapid.IntRange(-2, 20), rapid.IntRange(0, 300), rapid.Just(policy.MaxSlot+1)).Draw(t, "slot")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				table.give(slot)
				model[slot] = max(model[slot]-1, 0)
			case 1:
				slot = table.free()
				fallthrough
			default:
				table.take(slot)
				if slot >= 0 && slot <= policy.MaxSlot {
					model[slot]++
				}
			}
			want := 0
			for model[want] > 0 {
				want++
			}
			if got := table.free(); got != want {
				t.Fatalf("free %d, want %d", got, want)
			}
			if got := table.count(slot); got != model[slot] {
				t.Fatalf("slot %d has %d holders, want %d", slot, got, model[slot])
			}
		}
	})
}
