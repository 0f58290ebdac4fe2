package hub

import (
	"fmt"
	"sync"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// happenings puts into the journal what the parts of the hub tell. Orders are put there by the API. Every replica keeps a journal of
// what it hears of; the API shows that of a member's owner.
type happenings struct {
	journal *journal.Journal

	mu     sync.Mutex
	states map[string]clusters.State // as told last, by member
}

func newHappenings() *happenings {
	return &happenings{journal: journal.New(journal.Limits{}), states: map[string]clusters.State{}}
}

// member notes that the state of a member is another.
func (h *happenings) member(event clusters.Event) {
	name, state := event.Status.Name, event.Status.State
	h.mu.Lock()
	before, known := h.states[name]
	if event.Removed {
		delete(h.states, name)
	} else {
		h.states[name] = state
	}
	h.mu.Unlock()
	if event.Removed || known && before == state {
		return
	}
	message := fmt.Sprintf("the member is %s: %s", state, event.Status.Message)
	if known {
		message = fmt.Sprintf("the member is %s, and was %s: %s", state, before, event.Status.Message)
	}
	h.journal.Add(journal.Event{
		Type: journal.ClusterState, At: event.Status.Since, Member: name, Reason: event.Status.Reason, Subject: string(state), Message: message,
	})
}

// placement notes what spot placement tells.
func (h *happenings) placement(told spot.Happening) {
	h.journal.Add(journal.Event{
		Type: happeningTypes[told.Type], At: told.At, Member: told.Member, Namespace: told.Workload.Namespace, Kind: told.Workload.Kind,
		Name: told.Workload.Name, Subject: told.Subject, Reason: told.Reason, Message: told.Message,
	})
}

var happeningTypes = map[spot.HappeningType]journal.Type{
	spot.HappenedMove: journal.Move, spot.HappenedInterruption: journal.Interruption,
	spot.HappenedDroughtBegan: journal.DroughtBegan, spot.HappenedDroughtEnded: journal.DroughtEnded,
}
