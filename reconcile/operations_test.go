package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestARequeueIsFollowedToTheReconcileThatStartedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		step := make(chan error)
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			return Done(), <-step
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait() // the first reconcile is under way
		operation, err := h.Requeue(keyOf("c", "a", "one"))
		if err != nil {
			t.Fatal(err)
		}
		step <- nil // ends the first, which began before the order
		synctest.Wait()
		if now, ok := h.Operation(operation.ID); !ok || now.Done || now.Record.State != StateRunning || now.Record.Priority != PriorityOrdered {
			t.Fatalf("operation %+v (%v), want it open while the ordered reconcile runs", now, ok)
		}
		step <- errors.New("broken")
		final, err := h.Wait(t.Context(), operation.ID)
		if err != nil || !final.Done || final.Record.LastOutcome != OutcomeError || final.Record.LastError != "broken" {
			t.Errorf("operation %+v, %v: want the outcome of the ordered reconcile", final, err)
		}
		close(step)
		h.cancel()
	})
}

func TestARequeueOvertakesABackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if seen.add(req.Member, req.Object.Name) < 6 {
				return Done(), errors.New("broken")
			}
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(20 * time.Second) // five failures; the next try would be 10 s away
		operation, err := h.Requeue(keyOf("c", "a", "one"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if now, _ := h.Operation(operation.ID); !now.Done || now.Record.LastOutcome != OutcomeDone {
			t.Errorf("operation %+v, want it done at once", now)
		}
		h.cancel()
	})
}

func TestARequeueOfSomethingUnknownSaysWhatIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", counting(&calls{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		for want, key := range map[error]Key{
			ErrUnknownController: keyOf("x", "a", "one"), ErrUnknownMember: keyOf("c", "x", "one"), ErrUnknownKey: keyOf("c", "a", "x"),
		} {
			if _, err := h.Requeue(key); !errors.Is(err, want) {
				t.Errorf("requeue %v: %v, want %v", key, err, want)
			}
			if _, ok := h.Lookup(key); ok {
				t.Errorf("%v is in the ledger", key)
			}
		}
		if _, err := h.Wait(t.Context(), "x"); !errors.Is(err, ErrUnknownOperation) {
			t.Errorf("wait: %v", err)
		}
		if _, ok := h.Operation("x"); ok {
			t.Error("an unknown operation is known")
		}
		h.cancel()
	})
}

func TestAnOrderBehindAClosedGateIsKeptUntilItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		h.Hold("a", HoldBreaker, "does not answer")
		c := launch(h, For(h.Runtime, "c", counting(&calls{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		operation, err := h.Requeue(keyOf("c", "a", "one"))
		if err != nil || operation.Record.State != StateHeld || operation.Record.Reason != "does not answer" {
			t.Fatalf("operation %+v, %v", operation, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if now, err := h.Wait(ctx, operation.ID); !errors.Is(err, context.DeadlineExceeded) || now.Done || now.Record.State != StateHeld {
			t.Errorf("wait: %+v, %v", now, err)
		}
		h.Release("a", HoldBreaker)
		if now, err := h.Wait(t.Context(), operation.ID); err != nil || now.Record.LastOutcome != OutcomeDone {
			t.Errorf("wait: %+v, %v", now, err)
		}
		h.cancel()
	})
}

func TestAnOrderEndsWhenItsObjectOrMemberGoesAndOutlivesAMemberThatIsSoonBack(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(h *hub, c *Controller, a *fakeCluster, leave func())
		want    Outcome
		reason  string
	}{
		"object": {func(_ *hub, _ *Controller, a *fakeCluster, _ func()) { a.remove(configMap("one")) }, OutcomeGone, ""},
		"member": {func(_ *hub, _ *Controller, _ *fakeCluster, leave func()) {
			leave()
			time.Sleep(orderGrace)
		}, OutcomeGone, goneReason},
		"member, back in time": {func(h *hub, c *Controller, _ *fakeCluster, leave func()) {
			leave()
			time.Sleep(orderGrace - time.Second)
			fresh := newFakeCluster(h.ctx)
			fresh.install(&corev1.ConfigMap{}, configMap("one"))
			h.engage(h.ctx, c, "a", fresh)
			time.Sleep(time.Minute)
		}, OutcomeDone, ""},
		"replaced, object still there": {func(h *hub, c *Controller, _ *fakeCluster, _ func()) {
			fresh := newFakeCluster(h.ctx)
			fresh.install(&corev1.ConfigMap{}, configMap("one"))
			h.engage(h.ctx, c, "a", fresh)
		}, OutcomeDone, ""},
		"replaced, object not there": {func(h *hub, c *Controller, _ *fakeCluster, _ func()) {
			h.engage(h.ctx, c, "a", newFakeCluster(h.ctx, &corev1.ConfigMap{}))
		}, OutcomeGone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{Resync: -1})
				c := launch(h, For(h.Runtime, "c", counting(&calls{})))
				a, leave := h.join(c, "a", &corev1.ConfigMap{})
				a.add(configMap("one"))
				synctest.Wait()
				h.holdAll(HoldOwnership, "standby")
				operation, err := h.Requeue(keyOf("c", "a", "one"))
				if err != nil {
					t.Fatal(err)
				}
				tc.happens(h, c, a, leave)
				synctest.Wait()
				h.releaseAll(HoldOwnership)
				synctest.Wait()
				now, ok := h.Operation(operation.ID)
				if !ok || !now.Done || now.Record.LastOutcome != tc.want || now.Record.Reason != tc.reason {
					t.Errorf("operation %+v (%v), want outcome %s", now, ok, tc.want)
				}
				if len(h.operations.pending) != 0 || len(h.operations.stranded) != 0 {
					t.Error("something still follows the record")
				}
				h.cancel()
			})
		})
	}
}

func TestAnOrderThatIsPushedOutWhileItsMemberIsAwayIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Operations: 1}, &queue{name: "c", perMember: 5})
		q := b.queues[0]
		l, other := b.join(q, "m"), b.join(q, "other")
		wakeChanged(q, l, "a")
		wakeChanged(q, other, "a")
		first, err := b.rt.Requeue(Key{Controller: "c", Member: "m", NamespacedName: nsName("a")})
		if err != nil {
			t.Fatal(err)
		}
		q.leave(l)
		if now, ok := b.rt.Operation(first.ID); !ok || now.Done || now.Record.Reason != goneReason {
			t.Errorf("operation %+v (%v), want it open while the member may be back", now, ok)
		}
		if _, err := b.rt.Requeue(Key{Controller: "c", Member: "other", NamespacedName: nsName("a")}); err != nil {
			t.Fatal(err)
		}
		fresh := b.join(q, "m")
		if len(fresh.records) != 0 {
			t.Error("an order that was pushed out was carried over")
		}
		time.Sleep(orderGrace)
		synctest.Wait()
		if len(b.rt.operations.stranded) != 0 || len(b.rt.operations.byID) != 1 {
			t.Error("an order that was pushed out is kept")
		}
	})
}

func TestOperationsAreBoundedAndTheNewestStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Operations: 3}, &queue{name: "c", perMember: 5})
		q := b.queues[0]
		wakeChanged(q, b.join(q, "m"), "a")
		var ids []string
		order := func() {
			operation, err := b.rt.Requeue(Key{Controller: "c", Member: "m", NamespacedName: nsName("a")})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, operation.ID)
		}
		order()
		first, lost := ids[0], make(chan error, 1)
		go func() {
			_, err := b.rt.Wait(t.Context(), first)
			lost <- err
		}()
		synctest.Wait()
		for range 4 {
			order()
		}
		if err := <-lost; !errors.Is(err, ErrUnknownOperation) {
			t.Errorf("waiting for an operation that was pushed out: %v", err)
		}
		b.finish(q, b.mustTake(t, q, "m", "a"), done)
		for i, id := range ids {
			operation, ok := b.rt.Operation(id)
			if want := i >= 2; ok != want || operation.Done != want {
				t.Errorf("operation %d: known %v, done %v, want both %v", i, ok, operation.Done, want)
			}
		}
		if len(b.rt.operations.byID) != 3 || len(b.rt.operations.pending) != 0 {
			t.Errorf("%d operations and %d records are followed", len(b.rt.operations.byID), len(b.rt.operations.pending))
		}
	})
}

func TestManyOrdersInOneNamespacePushOutNoneOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Operations: 6}, &queue{name: "c", perMember: 5})
		q := b.queues[0]
		order := func(member, namespace string) string {
			t.Helper()
			time.Sleep(time.Millisecond)
			operation, err := b.rt.Requeue(Key{Controller: "c", Member: member, NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			return operation.ID
		}
		for _, member := range []string{"m", "other"} {
			l := b.join(q, member)
			for _, namespace := range []string{"shop", "greedy"} {
				q.want(q.recordOf(l, types.NamespacedName{Namespace: namespace, Name: "a"}), PriorityChanged)
			}
		}
		kept := []string{order("m", "shop"), order("other", "shop"), order("other", "greedy")} // the last in the same namespace of another member
		for range 100 {
			order("m", "greedy")
		}
		for _, id := range kept {
			if _, ok := b.rt.Operation(id); !ok {
				t.Error("an order was pushed out by those of another namespace")
			}
		}
		if n := len(b.rt.operations.byID); n != 6 {
			t.Errorf("%d operations are kept, not 6", n)
		}
	})
}

func TestManyOrdersOfOneCallerPushOutNoneOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Operations: 6}, &queue{name: "c", perMember: 5})
		q := b.queues[0]
		l := b.join(q, "m")
		for _, namespace := range []string{"shop", "pay"} {
			q.want(q.recordOf(l, types.NamespacedName{Namespace: namespace, Name: "a"}), PriorityChanged)
		}
		order := func(caller, namespace string) string {
			t.Helper()
			time.Sleep(time.Millisecond)
			operation, err := b.rt.RequeueFor(Key{Controller: "c", Member: "m", NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}}, caller)
			if err != nil {
				t.Fatal(err)
			}
			return operation.ID
		}
		kept := []string{order("alice", "shop"), order("alice", "shop"), order("bob", "pay")}
		for range 100 {
			order("mallory", "shop") // where alice's are
			order("mallory", "pay")
		}
		for _, id := range append(kept, order("carol", "shop")) {
			if _, ok := b.rt.Operation(id); !ok {
				t.Error("an order was pushed out by those of another caller")
			}
		}
		if n := len(b.rt.operations.byID); n != 6 {
			t.Errorf("%d operations are kept, not 6", n)
		}
		for caller, want := range map[string]int{"alice": 2, "bob": 1, "carol": 1, "mallory": 2} {
			if n := b.rt.operations.kept.Of(caller); n != want {
				t.Errorf("%d operations of %s are kept, not %d", n, caller, want)
			}
		}
	})
}
