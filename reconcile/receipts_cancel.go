package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrReceiptBegun is that of [Runtime.CancelReceipt]: the reconcile that the receipt follows has begun, or has ended.
var ErrReceiptBegun = errors.New("its reconcile has begun")

// ReceiptsIn returns the receipts about a member, by ID.
func (rt *Runtime) ReceiptsIn(member string) []Receipt {
	rt.mu.Lock()
	var found []*receipt
	for _, rc := range rt.receipts.byID {
		if rc.Key.Member == member {
			found = append(found, rc)
		}
	}
	rt.mu.Unlock()
	slices.SortFunc(found, func(a, b *receipt) int { return cmp.Compare(a.ID, b.ID) })
	shown := make([]Receipt, 0, len(found))
	for some := range slices.Chunk(found, snapshotBatch) {
		rt.mu.Lock()
		for _, rc := range some {
			shown = append(shown, rc.snapshot())
		}
		rt.mu.Unlock()
	}
	return shown
}

// CancelReceipt takes an order back. The receipt is done then, with CancelledAt. A key that nobody else ordered goes into line with
// those that changed: whether it would have run without the order is not known, and to run is harmless. Errors: ErrUnknownReceipt,
// and ErrReceiptBegun with the receipt as it is.
func (rt *Runtime) CancelReceipt(id string) (Receipt, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rc := rt.receipts.byID[id]
	switch {
	case rc == nil:
		return Receipt{}, fmt.Errorf("cancel receipt %q: %w", id, ErrUnknownReceipt)
	case rc.Done || rc.begun:
		return rc.snapshot(), fmt.Errorf("cancel receipt %q: %w", id, ErrReceiptBegun)
	}
	last, r := rc.snapshot().Record, rc.record
	rc.CancelledAt = time.Now()
	rc.end(last)
	if r == nil { // its member has left, and nothing is queued
		return rc.snapshot(), nil
	}
	rs := &rt.receipts
	rs.keep(r, slices.DeleteFunc(rs.pending[r], func(other *receipt) bool { return other == rc }))
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
