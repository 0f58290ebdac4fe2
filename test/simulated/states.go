package simulated

import (
	"bytes"
	"encoding/json"
	"time"
)

// A Change is one change of a member's state that a hub has logged.
type Change struct {
	At                     time.Time
	State, Reason, Message string
}

// Healthy reports whether the state is one that a member may have that works: it joins, or is ready.
func (c Change) Healthy() bool { return c.State == "Connecting" || c.State == "Ready" }

// Changes reads a hub's log: what it has called each member, in order. Unlike questions to its API the log misses nothing.
func Changes(log []byte) map[string][]Change {
	changes := map[string][]Change{}
	for line := range bytes.Lines(log) {
		var entry struct {
			Time                                time.Time
			Msg, Member, State, Reason, Message string
		}
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "member changed" {
			changes[entry.Member] = append(changes[entry.Member], Change{entry.Time, entry.State, entry.Reason, entry.Message})
		}
	}
	return changes
}
