package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

func TestAnOrderIsTakenBackUntilItsReconcileBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		step := make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			<-step
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		step <- struct{}{} // the first reconcile
		synctest.Wait()
		h.Hold("a", HoldBreaker, "it does not answer")
		if reason, closed := h.Closed("a", HoldBreaker); !closed || reason != "it does not answer" {
			t.Errorf("the hold: %q, %v", reason, closed)
		}
		if _, closed := h.Closed("b", HoldBreaker); closed {
			t.Error("a hold of another member applies")
		}
		var orders []Operation
		for _, caller := range []string{"alice", "bob"} {
			operation, err := h.RequeueFor(keyOf("c", "a", "one"), caller)
			if err != nil {
				t.Fatal(err)
			}
			orders = append(orders, operation)
		}
		cancelled, err := h.CancelOperation(orders[0].ID)
		if err != nil || !cancelled.Done || cancelled.CancelledAt.IsZero() || cancelled.Caller != "alice" {
			t.Fatalf("%+v, %v", cancelled, err)
		}
		if record, _ := h.Lookup(keyOf("c", "a", "one")); record.Priority != PriorityOrdered {
			t.Errorf("priority %s, though another order is open", record.Priority)
		}
		if _, err := h.CancelOperation(orders[0].ID); !errors.Is(err, ErrOperationBegun) {
			t.Errorf("the second time: %v", err)
		}
		if _, err := h.CancelOperation("unknown"); !errors.Is(err, ErrUnknownOperation) {
			t.Errorf("of no operation: %v", err)
		}
		if all := h.OperationsIn("a"); len(all) != 2 || len(h.OperationsIn("b")) != 0 {
			t.Errorf("operations: %+v", all)
		}
		h.Release("a", HoldBreaker)
		synctest.Wait()
		if _, err := h.CancelOperation(orders[1].ID); !errors.Is(err, ErrOperationBegun) {
			t.Errorf("while it runs: %v", err)
		}
		close(step)
		h.cancel()
	})
}

func TestAKeyWhoseOnlyOrderIsTakenBackWaitsLikeOneThatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		h.Hold("a", HoldBreaker, "")
		operation, err := h.Requeue(keyOf("c", "a", "one"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.CancelOperation(operation.ID); err != nil {
			t.Fatal(err)
		}
		if record, _ := h.Lookup(keyOf("c", "a", "one")); record.Priority != PriorityChanged || record.State != StateHeld {
			t.Errorf("%+v", record)
		}
		stranded, err := h.Requeue(keyOf("c", "a", "one"))
		if err != nil {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
		if cancelled, err := h.CancelOperation(stranded.ID); err != nil || cancelled.CancelledAt.IsZero() {
			t.Errorf("of a member that has left: %+v, %v", cancelled, err)
		}
		h.cancel()
	})
}
