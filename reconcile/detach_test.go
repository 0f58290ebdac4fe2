package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAMemberThatIsDetachedByForceIsWaitedForNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", failing(seen)))
		dead, _ := h.join(c, "dead", configMap("kind"))
		other, _ := h.join(c, "other", configMap("kind"))
		for i := range 10 {
			dead.add(configMap(fmt.Sprint(i)))
		}
		synctest.Wait()
		h.Hold("dead", HoldBreaker, "it does not answer")
		order, err := h.Requeue(keyOf("c", "dead", "3"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if rc, _ := h.Operation(order.ID); rc.Done {
			t.Fatal("the order has ended before its time")
		}

		h.Detach("dead", "the datacentre burnt down")
		rc, err := h.Wait(t.Context(), order.ID)
		want := detachedReason + "the datacentre burnt down"
		if err != nil || rc.Record.LastOutcome != OutcomeNotOurs || rc.Record.Reason != want {
			t.Errorf("the order ends with %+v, %v", rc.Record, err)
		}
		why, detached := h.Detached("dead")
		if !detached || why != "the datacentre burnt down" {
			t.Errorf("detached %v: %q", detached, why)
		}
		if n := h.value("plimsoll_member_detached", "member=dead"); n != 1 {
			t.Errorf("the metric says %v", n)
		}
		if _, detached := h.Detached("other"); detached {
			t.Error("another member is detached")
		}
		before := seen.count()
		h.Release("dead", HoldBreaker)
		dead.add(configMap("late"))
		other.add(configMap("alive"))
		if _, err := h.Requeue(keyOf("c", "dead", "3")); err != nil {
			t.Error(err)
		}
		time.Sleep(500 * time.Millisecond)
		if n := seen.count(); n != before+1 {
			t.Errorf("%d reconciles, want one in the other member", n-before)
		}
		for r := range h.Records("dead") {
			if r.State != StateIdle || r.LastOutcome != OutcomeNotOurs || r.Reason != want {
				t.Errorf("record %+v", r)
			}
		}

		h.Attach("dead")
		synctest.Wait()
		if n := seen.count() - before; n < 12 {
			t.Errorf("%d reconciles after it is back, want all keys looked at", n)
		}
		if _, detached := h.Detached("dead"); detached {
			t.Error("still detached")
		}
		if n := h.value("plimsoll_member_detached", "member=dead"); n != 0 {
			t.Errorf("the metric says %v once it is back", n)
		}
		h.cancel()
	})
}

func TestWhatRunsWhenItsMemberIsDetachedEndsAndIsNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		var runs atomic.Int32
		proceed := make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			runs.Add(1)
			<-proceed
			return RequeueAfter(time.Second, "again"), nil
		})))
		a, _ := h.join(c, "a", configMap("kind"))
		a.add(configMap("one"))
		synctest.Wait()
		h.Detach("a", "gone")
		a.modify(configMap("one"))
		close(proceed)
		time.Sleep(time.Hour)
		if r, _ := h.Lookup(keyOf("c", "a", "one")); runs.Load() != 1 || r.LastOutcome != OutcomeNotOurs || r.State != StateIdle {
			t.Errorf("%d runs, record %+v", runs.Load(), r)
		}
		h.cancel()
	})
}

func TestADetachedMemberIsKnownBeforeItComesAndAfterItLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		h.Detach("a", "gone")
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, leave := h.join(c, "a", configMap("kind"))
		a.add(configMap("one"))
		synctest.Wait()
		leave()
		synctest.Wait()
		if _, detached := h.Detached("a"); !detached || seen.count() != 0 {
			t.Errorf("detached %v, %d reconciles", detached, seen.count())
		}
		h.cancel()
	})
}
