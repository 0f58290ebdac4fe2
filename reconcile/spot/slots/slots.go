package slots

import (
	"math/bits"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// slotTable counts the holders of every slot and finds the lowest free one. Slots are 0 to maxSlot; others are ignored.
// The zero value is an empty table. It grows to the highest slot that was ever held.
type slotTable struct {
	holders []int32
	full    []uint64 // bit i of word w: slot 64·w+i has a holder
	lowest  int      // every word before this one is full
}

// take adds a holder.
func (t *slotTable) take(slot int) {
	if slot < 0 || slot > policy.MaxSlot {
		return
	}
	for slot >= len(t.holders) {
		t.holders = append(t.holders, make([]int32, max(64, len(t.holders)))...)
		t.full = append(t.full, make([]uint64, len(t.holders)/64-len(t.full))...)
	}
	t.holders[slot]++
	t.full[slot/64] |= 1 << (slot % 64)
}

// give removes a holder; a slot without holders stays as it is.
func (t *slotTable) give(slot int) {
	if t.count(slot) == 0 {
		return
	}
	t.holders[slot]--
	if t.holders[slot] == 0 {
		t.full[slot/64] &^= 1 << (slot % 64)
		t.lowest = min(t.lowest, slot/64)
	}
}

// count returns how many hold the slot.
func (t *slotTable) count(slot int) int {
	if slot < 0 || slot >= len(t.holders) {
		return 0
	}
	return int(t.holders[slot])
}

// free returns the lowest slot without a holder.
func (t *slotTable) free() int {
	for t.lowest < len(t.full) && t.full[t.lowest] == ^uint64(0) {
		t.lowest++
	}
	if t.lowest == len(t.full) {
		return len(t.holders)
	}
	return t.lowest*64 + bits.TrailingZeros64(^t.full[t.lowest])
}
