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

// ReceiptsIn implements api.Objects.
func (w *World) ReceiptsIn(member string) (found []reconcile.Receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, receipt := range w.receipts {
		if receipt.Key.Member == member {
			found = append(found, receipt)
		}
	}
	return found
}

// CancelReceipt implements api.Objects.
func (w *World) CancelReceipt(id string) (reconcile.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	receipt, ok := w.receipts[id]
	switch {
	case !ok:
		return receipt, reconcile.ErrUnknownReceipt
	case receipt.Done:
		return receipt, reconcile.ErrReceiptBegun
	}
	receipt.Done, receipt.CancelledAt = true, time.Now()
	w.receipts[id] = receipt
	return receipt, nil
}
