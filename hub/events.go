package hub

import (
	"fmt"
	"sync"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// eventLog puts into the journal what the parts of the hub report. Orders are put there by the API. Every replica keeps a journal of
// what it hears of; the API shows that of a member's owner.
type eventLog struct {
	journal *journal.Journal

	mu     sync.Mutex
	states map[string]clusters.State // as reported last, by member
}

func newEventLog() *eventLog {
	return &eventLog{journal: journal.New(journal.Limits{}), states: map[string]clusters.State{}}
}

// member notes that the state of a member is another.
func (h *eventLog) member(event clusters.Event) {
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

// placement notes what spot placement reports.
func (h *eventLog) placement(event spot.Event) {
	h.journal.Add(journal.Event{
		Type: eventTypes[event.Type], At: event.At, Member: event.Member, Namespace: event.Workload.Namespace, Kind: event.Workload.Kind,
		Name: event.Workload.Name, Subject: event.Subject, Reason: event.Reason, Message: event.Message,
	})
}

var eventTypes = map[spot.EventType]journal.Type{
	spot.EventMove: journal.Move, spot.EventInterruption: journal.Interruption,
	spot.EventInsufficientCapacityBegan: journal.InsufficientCapacityBegan, spot.EventInsufficientCapacityEnded: journal.InsufficientCapacityEnded,
}
