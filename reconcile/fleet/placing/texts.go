package placing

import (
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// bounds of what a status says in words, in bytes: much of it is what members have answered, and one that answers at length must not
// make a status that no API server takes, for then nothing is done in the other members either.
type bounds struct {
	message  int // of a condition; the schema allows 32 KiB
	reason   int // of a member or a move
	reasons  int // of all members together: etcd takes 1.5 MiB for the whole object
	selector int // a longer one is left out
}

// maxSelector is how long a selector of pods may be, in bytes.
const maxSelector = 4 << 10

var (
	// full is what a status has.
	full = bounds{message: 4 << 10, reason: 512, reasons: 256 << 10, selector: maxSelector}
	// lean is what is left of it for a hub cluster that refuses the full one. What was decided is in it all the same.
	lean = bounds{message: 256, reason: 64, reasons: 32 << 10, selector: maxSelector}
)

// bound clips all texts of a status. It changes those of its lists in place.
func (b bounds) bound(s *v1alpha1.FleetPlacementStatus) {
	if len(s.Selector) > b.selector {
		s.Selector = ""
	}
	for i := range s.Conditions {
		s.Conditions[i].Message = plain.Text(s.Conditions[i].Message, b.message)
	}
	limit := b.share(s.Members)
	for i := range s.Members {
		s.Members[i].Reason = plain.Text(s.Members[i].Reason, limit)
	}
	for i := range s.LastMoves {
		s.LastMoves[i].Reason = plain.Text(s.LastMoves[i].Reason, b.reason)
	}
}

// share is how long the reason of a member may be: where all of them are too long together, the longest are clipped.
func (b bounds) share(members []v1alpha1.MemberStatus) int {
	limit := b.reason
	for limit > 4 {
		sum := 0
		for i := range members {
			sum += min(len(members[i].Reason), limit)
		}
		if sum <= b.reasons {
			break
		}
		limit -= limit / 4
	}
	return limit
}

// shortSelector is a selector of pods that a member has answered; empty: none, or one that is too long or not a line of text.
func shortSelector(text string) string {
	if len(text) > maxSelector || plain.Text(text, maxSelector) != text {
		return ""
	}
	return text
}
