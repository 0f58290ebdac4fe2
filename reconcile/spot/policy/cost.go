package policy

import (
	"math"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// Cost is a deletion cost as a pod has it: by [Cost.Number], not by its value. It is read once for each pod and not kept as text, for a
// plan asks for it several times, and the text is somewhere else in memory.
type Cost int32

// NoCost is the cost of a pod without the annotation.
const NoCost Cost = 0

const (
	costZero  Cost = floorCost + 1 // the number 0; the other numbers lie around it
	costOther Cost = math.MaxInt32 // what no hub writes: a number that is too large, or none in its shortest form
)

// ParseCost reads the value of the annotation [DeletionCost]; empty: the pod has none.
func ParseCost(text string) Cost {
	if text == "" {
		return NoCost
	}
	digits, negative := strings.CutPrefix(text, "-")
	number, ok := phrase.Number(digits, floorCost)
	if !ok || (digits[0] == '0' && text != "0") {
		return costOther
	}
	if negative {
		number = -number
	}
	return costZero + Cost(number)
}

// IsSet reports whether the pod has a deletion cost.
func (c Cost) IsSet() bool { return c != NoCost }

// Number returns the deletion cost; 0, as Kubernetes has it, where the pod has none, and of a text that no hub writes.
func (c Cost) Number() int {
	if c == NoCost || c == costOther {
		return 0
	}
	return int(c - costZero)
}

// Own reports whether a hub set the cost with the slot. Any other was set by the user and stays.
func (c Cost) Own(slot int) bool {
	return c != NoCost && c != costOther && slot >= 0 && (c.Number() == -slot || c.Number() == floorCost-slot)
}
