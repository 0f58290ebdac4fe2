package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrOperationBegun is that of [Runtime.CancelOperation]: the reconcile that the operation follows has begun, or has ended.
var ErrOperationBegun = errors.New("its reconcile has begun")

// OperationsIn returns the operations about a member, by ID.
func (rt *Runtime) OperationsIn(member string) []Operation {
	rt.mu.Lock()
	var found []*operation
	for _, rc := range rt.operations.byID {
		if rc.Key.Member == member {
			found = append(found, rc)
		}
	}
	rt.mu.Unlock()
	slices.SortFunc(found, func(a, b *operation) int { return cmp.Compare(a.ID, b.ID) })
	shown := make([]Operation, 0, len(found))
	for some := range slices.Chunk(found, snapshotBatch) {
		rt.mu.Lock()
		for _, rc := range some {
			shown = append(shown, rc.snapshot())
		}
		rt.mu.Unlock()
	}
	return shown
}

// CancelOperation takes an order back. The operation is done then, with CancelledAt. A key that nobody else ordered goes into line with
// those that changed: whether it would have run without the order is not known, and to run is harmless. Errors: ErrUnknownOperation,
// and ErrOperationBegun with the operation as it is.
func (rt *Runtime) CancelOperation(id string) (Operation, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rc := rt.operations.byID[id]
	switch {
	case rc == nil:
		return Operation{}, fmt.Errorf("cancel operation %q: %w", id, ErrUnknownOperation)
	case rc.Done || rc.begun:
		return rc.snapshot(), fmt.Errorf("cancel operation %q: %w", id, ErrOperationBegun)
	}
	last, r := rc.snapshot().Record, rc.record
	rc.CancelledAt = time.Now()
	rc.end(last)
	if r == nil { // its member has left, and nothing is queued
		return rc.snapshot(), nil
	}
	rs := &rt.operations
	rs.keep(r, slices.DeleteFunc(rs.pending[r], func(other *operation) bool { return other == rc }))
	if !r.ordered && r.state == keyQueued && r.priority == PriorityOrdered {
		since := r.queuedAt
		r.flow.dequeue(r)
		r.flow.enqueue(r, PriorityChanged, since)
		r.flow.queue.handOut()
	}
	return rc.snapshot(), nil
}

// Closed reports whether a hold keeps the keys of a member from running, and why.
func (rt *Runtime) Closed(member string, g Hold) (reason string, closed bool) {
	if g >= holds {
		return "", false
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := rt.decided(g, member)
	if m := rt.members[member]; m != nil && m.holds[g].mode != followAll {
		s = m.holds[g]
	}
	return s.reason, s.mode == modeHeld
}
