package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Errors of [Runtime.Requeue] and [Runtime.Wait]; they are wrapped with the name that was asked for.
var (
	// ErrUnknownController: no controller of that name is registered.
	ErrUnknownController = errors.New("unknown controller")
	// ErrUnknownMember: the controller is not engaged in a member of that name.
	ErrUnknownMember = errors.New("unknown member, or one the controller is not engaged in")
	// ErrUnknownKey: the controller knows no object of that name in the member.
	ErrUnknownKey = errors.New("unknown object")
	// ErrUnknownReceipt: there never was such a receipt, or it is older than the last Options.Receipts of them.
	ErrUnknownReceipt = errors.New("unknown receipt")
)

// goneReason is in the record of a receipt whose member left before the reconcile ended.
const goneReason = "the member left"

// receipts follows accepted orders. It keeps a bounded number of them: the newest push out the oldest, done or not.
// Guarded by Runtime.mu.
type receipts struct {
	byID    map[string]*receipt
	ring    []*receipt
	next    int
	pending map[*record][]*receipt
}

type receipt struct {
	Receipt
	record *record       // nil once done
	begun  bool          // a reconcile began after it was accepted
	ended  chan struct{} // closed when done, or pushed out
}

func newReceipts(most int) receipts {
	return receipts{byID: map[string]*receipt{}, ring: make([]*receipt, most), pending: map[*record][]*receipt{}}
}

// accept makes a receipt for the next reconcile of a record.
func (rs *receipts) accept(r *record, now time.Time) *receipt {
	rc := &receipt{
		Receipt: Receipt{ID: uuid.NewString(), Key: r.snapshot().Key, Accepted: now},
		record:  r, ended: make(chan struct{}),
	}
	if old := rs.ring[rs.next]; old != nil {
		rs.push(old)
	}
	rs.ring[rs.next] = rc
	rs.next = (rs.next + 1) % len(rs.ring)
	rs.byID[rc.ID] = rc
	rs.pending[r] = append(rs.pending[r], rc)
	r.ordered = true
	return rc
}

// push takes the oldest receipt out.
func (rs *receipts) push(old *receipt) {
	delete(rs.byID, old.ID)
	r := old.record
	if r == nil {
		return
	}
	kept := rs.pending[r][:0]
	for _, rc := range rs.pending[r] {
		if rc != old {
			kept = append(kept, rc)
		}
	}
	rs.keep(r, kept)
	old.record = nil
	close(old.ended)
}

func (rs *receipts) keep(r *record, kept []*receipt) {
	r.ordered = len(kept) > 0
	if r.ordered {
		rs.pending[r] = kept
	} else {
		delete(rs.pending, r)
	}
}

// begin notes that a reconcile starts.
func (rs *receipts) begin(r *record) {
	for _, rc := range rs.pending[r] {
		rc.begun = true
	}
}

// settle ends the receipts whose reconcile has ended.
func (rs *receipts) settle(r *record) {
	kept := rs.pending[r][:0]
	for _, rc := range rs.pending[r] {
		if rc.begun {
			rc.end(r.snapshot())
		} else {
			kept = append(kept, rc)
		}
	}
	rs.keep(r, kept)
}

// end ends all receipts of a record.
func (rs *receipts) end(r *record, last Record) {
	for _, rc := range rs.pending[r] {
		rc.end(last)
	}
	rs.keep(r, nil)
}

// move hands the open receipts of a lane to its successor, where their keys are looked at first.
func (rs *receipts) move(from, to *lane) {
	for r, open := range rs.of(from) {
		delete(rs.pending, r)
		r.ordered = false
		successor := to.queue.recordOf(to, r.key)
		for _, rc := range open {
			rc.record, rc.begun = successor, false
		}
		rs.keep(successor, append(rs.pending[successor], open...))
		to.queue.want(successor, BandOrdered)
	}
}

// abandon ends the open receipts of a lane that has no successor.
func (rs *receipts) abandon(l *lane) {
	for r := range rs.of(l) {
		last := r.snapshot()
		last.State, last.LastOutcome, last.Reason = StateIdle, OutcomeGone, goneReason
		rs.end(r, last)
	}
}

func (rs *receipts) of(l *lane) map[*record][]*receipt {
	found := map[*record][]*receipt{}
	for r, open := range rs.pending {
		if r.lane == l {
			found[r] = open
		}
	}
	return found
}

func (rc *receipt) end(last Record) {
	rc.Done, rc.Record, rc.record = true, last, nil
	close(rc.ended)
}

func (rc *receipt) snapshot() Receipt {
	s := rc.Receipt
	if rc.record != nil {
		s.Record = rc.record.snapshot()
	}
	return s
}

// Requeue orders a reconcile of a key that the ledger knows, before everything that nobody ordered; a key that backs off
// stops waiting. The receipt is followed to the end of a reconcile that starts after now, whatever its outcome; if the
// object or its member goes first, it ends as Gone. The order is accepted also while a gate is closed; the key is held
// then. Errors: ErrUnknownController, ErrUnknownMember, ErrUnknownKey.
func (rt *Runtime) Requeue(key Key) (Receipt, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r, err := rt.find(key)
	if err != nil {
		return Receipt{}, fmt.Errorf("requeue: %w", err)
	}
	rc := rt.receipts.accept(r, time.Now())
	r.lane.queue.want(r, BandOrdered)
	return rc.snapshot(), nil
}

// Receipt returns what is known of an order now. Not ok: there is no such receipt (any more).
func (rt *Runtime) Receipt(id string) (Receipt, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rc := rt.receipts.byID[id]
	if rc == nil {
		return Receipt{}, false
	}
	return rc.snapshot(), true
}

// Wait returns the receipt when it is done. When ctx ends first, it returns the receipt as it is then, with ctx's error.
// A receipt that is unknown, or is pushed out while waiting, is ErrUnknownReceipt.
func (rt *Runtime) Wait(ctx context.Context, id string) (Receipt, error) {
	rt.mu.Lock()
	rc := rt.receipts.byID[id]
	rt.mu.Unlock()
	if rc == nil {
		return Receipt{}, fmt.Errorf("wait for receipt %q: %w", id, ErrUnknownReceipt)
	}
	var err error
	select {
	case <-rc.ended:
	case <-ctx.Done():
		err = fmt.Errorf("wait for receipt %q: %w", id, context.Cause(ctx))
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err == nil && !rc.Done {
		return rc.snapshot(), fmt.Errorf("wait for receipt %q: %w", id, ErrUnknownReceipt)
	}
	return rc.snapshot(), err
}
