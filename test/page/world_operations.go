package page

import (
	"sync/atomic"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

var versions atomic.Uint64

// Version implements api.Objects. Any change may have happened in between, so it is another number at each call.
func (*World) Version(string) uint64 { return versions.Add(1) }

// Closed implements api.Objects: nothing keeps keys from running.
func (*World) Closed(string, reconcile.Hold) (string, bool) { return "", false }

// OperationsIn implements api.Objects.
func (w *World) OperationsIn(member string) (found []reconcile.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, operation := range w.operations {
		if operation.Key.Member == member {
			found = append(found, operation)
		}
	}
	return found
}

// CancelOperation implements api.Objects.
func (w *World) CancelOperation(id string) (reconcile.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	operation, ok := w.operations[id]
	switch {
	case !ok:
		return operation, reconcile.ErrUnknownOperation
	case operation.Done:
		return operation, reconcile.ErrOperationBegun
	}
	operation.Done, operation.CancelledAt = true, time.Now()
	w.operations[id] = operation
	return operation, nil
}
