package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/evict"
)

// Errors of [Runtime.Requeue] and [Runtime.Wait]; they are wrapped with the name that was asked for.
var (
	// ErrUnknownController: no controller of that name is registered.
	ErrUnknownController = errors.New("unknown controller")
	// ErrUnknownMember: the controller is not engaged in a member of that name.
	ErrUnknownMember = errors.New("unknown member, or one the controller is not engaged in")
	// ErrRetired: nothing runs here any more; another replica is about to take over.
	ErrRetired = errors.New("this replica stops and takes no orders")
	// ErrUnknownKey: the controller knows no object of that name in the member.
	ErrUnknownKey = errors.New("unknown object")
	// ErrUnknownOperation: there never was such an operation, or it was pushed out; see Options.Operations.
	ErrUnknownOperation = errors.New("unknown operation")
)

const (
	// goneReason is in the record of an operation whose member left before the reconcile ended.
	goneReason = "the member left"
	// orderGrace is how long an order waits for a member that left: one whose credentials or kinds change is soon back.
	orderGrace = 5 * time.Second
)

// operations follows accepted orders. It keeps a bounded number of them. When there are too many, the caller with the most loses
// one, done or not: the oldest of the namespace in which that caller has the most. So no caller pushes out the operation of
// another who has fewer, and a caller's orders in one namespace push out none of its own in a quieter one. Guarded by
// Runtime.mu.
type operations struct {
	most    int
	byID    map[string]*operation
	kept    evict.Items[operationGroup, *operation] // all of byID
	pending map[*record][]*operation

	stranded map[flowName][]*operation // of members that left, while they may be back
}

// flowName names the flows of one controller in one member, one after the other.
type flowName struct{ controller, member string }

// operationGroup is where the orders of one caller push each other out.
type operationGroup struct{ member, namespace string }

type operation struct {
	Operation
	record *record       // nil once done, and while stranded
	begun  bool          // a reconcile began after it was accepted
	lost   bool          // it was pushed out before it was done
	ended  chan struct{} // closed when done, or pushed out
}

func newOperations(most int) operations {
	return operations{
		most: most, byID: map[string]*operation{}, pending: map[*record][]*operation{}, stranded: map[flowName][]*operation{},
	}
}

// accept makes an operation of a caller for the next reconcile of a record.
func (rs *operations) accept(r *record, caller string, now time.Time) *operation {
	rc := &operation{
		Operation: Operation{ID: uuid.NewString(), Key: r.snapshot().Key, Accepted: now, Caller: caller},
		record:    r, ended: make(chan struct{}),
	}
	rs.byID[rc.ID] = rc
	rs.kept.Add(caller, operationGroup{rc.Key.Member, rc.Key.Namespace}, rc)
	if len(rs.byID) > rs.most {
		rs.pushOut()
	}
	rs.pending[r] = append(rs.pending[r], rc)
	r.ordered = true
	return rc
}

// pushOut takes one operation out.
func (rs *operations) pushOut() {
	old, ok := rs.kept.Evict()
	if !ok {
		return
	}
	delete(rs.byID, old.ID)
	if old.Done {
		return
	}
	old.lost = true
	close(old.ended)
	if r := old.record; r != nil {
		rs.keep(r, slices.DeleteFunc(rs.pending[r], func(rc *operation) bool { return rc == old }))
	}
}

func (rs *operations) keep(r *record, kept []*operation) {
	r.ordered = len(kept) > 0
	if r.ordered {
		rs.pending[r] = kept
	} else {
		delete(rs.pending, r)
	}
}

// begin notes that a reconcile starts.
func (rs *operations) begin(r *record) {
	for _, rc := range rs.pending[r] {
		rc.begun = true
	}
}

// settle ends the operations whose reconcile has ended.
func (rs *operations) settle(r *record) {
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

// end ends all operations of a record.
func (rs *operations) end(r *record, last Record) {
	for _, rc := range rs.pending[r] {
		rc.end(last)
	}
	rs.keep(r, nil)
}

// strand keeps the open operations of a flow that is gone, and reports whether there are any.
func (rs *operations) strand(l *flow) bool {
	name := l.name()
	for r, open := range rs.of(l) {
		delete(rs.pending, r)
		last := r.snapshot()
		last.State, last.Reason, last.NextTry = StateIdle, goneReason, time.Time{}
		for _, rc := range open {
			rc.record, rc.begun, rc.Record = nil, false, last
		}
		rs.stranded[name] = append(rs.stranded[name], open...)
	}
	return len(rs.stranded[name]) > 0
}

// adopt hands stranded operations to the flow that has come, where their keys are looked at first.
func (rs *operations) adopt(l *flow) {
	for _, rc := range rs.stranded[l.name()] {
		if rc.lost || rc.Done { // pushed out, or cancelled
			continue
		}
		r := l.queue.recordOf(l, rc.Key.NamespacedName)
		rc.record, rc.Record = r, Record{}
		rs.keep(r, append(rs.pending[r], rc))
		l.queue.want(r, PriorityOrdered)
	}
	delete(rs.stranded, l.name())
}

// abandon ends operations whose member did not come back.
func (rs *operations) abandon(name flowName, left []*operation) {
	for _, rc := range left {
		if !rc.lost && rc.record == nil && !rc.Done {
			last := rc.Record
			last.LastOutcome = OutcomeGone
			rc.end(last)
		}
	}
	rs.stranded[name] = slices.DeleteFunc(rs.stranded[name], func(rc *operation) bool { return slices.Contains(left, rc) })
	if len(rs.stranded[name]) == 0 {
		delete(rs.stranded, name)
	}
}

func (rs *operations) of(l *flow) map[*record][]*operation {
	found := map[*record][]*operation{}
	for r, open := range rs.pending {
		if r.flow == l {
			found[r] = open
		}
	}
	return found
}

func (rc *operation) end(last Record) {
	rc.Done, rc.Record, rc.record = true, last, nil
	close(rc.ended)
}

func (rc *operation) snapshot() Operation {
	s := rc.Operation
	if rc.record != nil {
		s.Record = rc.record.snapshot()
	}
	return s
}

// Requeue is [Runtime.RequeueFor] for this program itself.
func (rt *Runtime) Requeue(key Key) (Operation, error) { return rt.RequeueFor(key, "") }

// RequeueFor orders a reconcile of a key that the ledger knows, before everything that nobody ordered; a key that backs off
// stops waiting. The operation is followed to the end of a reconcile that starts after now, whatever its outcome; if the
// object goes first, or its member for longer than a few seconds, it ends as Gone. The order is accepted also while a hold applies; the key is held
// then. caller is who orders, among whom operations are shared out: see Options.Operations. Errors: ErrUnknownController,
// ErrUnknownMember, ErrUnknownKey, and ErrRetired after [Runtime.Retire].
func (rt *Runtime) RequeueFor(key Key, caller string) (Operation, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.retired {
		return Operation{}, fmt.Errorf("requeue: %w", ErrRetired)
	}
	r, err := rt.find(key)
	if err != nil {
		return Operation{}, fmt.Errorf("requeue: %w", err)
	}
	rc := rt.operations.accept(r, caller, time.Now())
	r.flow.queue.want(r, PriorityOrdered)
	return rc.snapshot(), nil
}

// Operation returns what is known about an order now. Not ok: there is no such operation (any more).
func (rt *Runtime) Operation(id string) (Operation, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rc := rt.operations.byID[id]
	if rc == nil {
		return Operation{}, false
	}
	return rc.snapshot(), true
}

// Wait returns the operation when it is done. When ctx ends first, it returns the operation as it is then, with ctx's error.
// An operation that is unknown, or is pushed out while waiting, is ErrUnknownOperation.
func (rt *Runtime) Wait(ctx context.Context, id string) (Operation, error) {
	rt.mu.Lock()
	rc := rt.operations.byID[id]
	rt.mu.Unlock()
	if rc == nil {
		return Operation{}, fmt.Errorf("wait for operation %q: %w", id, ErrUnknownOperation)
	}
	var err error
	select {
	case <-rc.ended:
	case <-ctx.Done():
		err = fmt.Errorf("wait for operation %q: %w", id, context.Cause(ctx))
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err == nil && !rc.Done {
		return rc.snapshot(), fmt.Errorf("wait for operation %q: %w", id, ErrUnknownOperation)
	}
	return rc.snapshot(), err
}
