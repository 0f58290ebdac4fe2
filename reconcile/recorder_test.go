package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// eventHub is a hub whose only reconcile has ended, and its recorder.
func eventHub(t *testing.T, funcs interceptor.Funcs) (*hub, *fakeCluster, Recorder) {
	t.Helper()
	h := newHub(t, Options{Resync: -1})
	recorders := make(chan Recorder, 2)
	c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
		recorders <- req.Events
		return Done(), nil
	})))
	ctx, cancel := context.WithCancel(h.ctx)
	t.Cleanup(cancel)
	a := newFakeCluster(ctx, &corev1.ConfigMap{})
	a.client = interceptor.NewClient(a.client.(client.WithWatch), funcs)
	h.engage(ctx, c, "a", a)
	a.add(configMap("one"))
	synctest.Wait()
	h.recorders = recorders
	return h, a, <-recorders
}

func (c *fakeCluster) events(t *testing.T) []corev1.Event {
	t.Helper()
	synctest.Wait()
	var list corev1.EventList
	if err := c.client.List(context.Background(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestAnEventSaysWhatHappenedToWhatAndWhoSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, events := eventHub(t, interceptor.Funcs{})
		events.Warning("BadPolicy", "percentage %d", 120)
		list := a.events(t)
		if len(list) != 1 {
			t.Fatalf("%d events, want 1", len(list))
		}
		e := list[0]
		if e.Type != "Warning" || e.Reason != "BadPolicy" || e.Message != "percentage 120" || e.Count != 1 || e.Namespace != "default" ||
			e.InvolvedObject.Kind != "ConfigMap" || e.InvolvedObject.APIVersion != "v1" || e.InvolvedObject.Name != "one" ||
			e.InvolvedObject.UID != "uid-one" || e.Source.Component != "plimsoll/c" || e.FirstTimestamp.IsZero() {
			t.Errorf("event %+v", e)
		}
		h.cancel()
	})
}

func TestTheSameEventIsCountedAndWrittenOnceInTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int32
		h, a, events := eventHub(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				writes.Add(1)
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				writes.Add(1)
				return c.Patch(ctx, obj, patch, opts...)
			},
		})
		for range 60 {
			events.Normal("Moved", "one replica")
			time.Sleep(10 * time.Second)
		}
		events.Normal("Moved", "one replica") // the 61st, after ten minutes
		if list := a.events(t); len(list) != 1 || list[0].Count != 61 || writes.Load() != 2 {
			t.Errorf("%d events, %d writes: %+v", len(list), writes.Load(), list)
		}
		events.Normal("Moved", "another replica")
		if n := len(a.events(t)); n != 2 {
			t.Errorf("%d events, want another for another message", n)
		}
		h.cancel()
	})
}

func TestEventsThatDifferEachTimeAreLimitedForEachObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 25
		h, a, events := eventHub(t, interceptor.Funcs{})
		for i := range 100 {
			events.Warning("Failing", "attempt %d", i)
			time.Sleep(time.Millisecond)
		}
		if n := len(a.events(t)); n != burst {
			t.Errorf("%d events, want %d", n, burst)
		}
		if n := h.value("plimsoll_events_dropped_total", "member=a"); n != float64(100-burst) {
			t.Errorf("%v events counted as dropped", n)
		}
		a.add(configMap("another"))
		(<-h.recorders).Warning("Failing", "attempt 1")
		if n := len(a.events(t)); n != burst+1 {
			t.Errorf("%d events, want one more about another object", n)
		}
		time.Sleep(time.Minute)
		for range 5 {
			events.Warning("Failing", "attempt %d", time.Now().UnixNano())
			time.Sleep(time.Millisecond)
		}
		if n := len(a.events(t)); n != burst+3 {
			t.Errorf("%d events after a minute, want two more", n)
		}
		h.cancel()
	})
}

func TestAnEventThatTheMemberForgotIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, events := eventHub(t, interceptor.Funcs{})
		events.Normal("Moved", "one replica")
		for _, e := range a.events(t) {
			if err := a.client.Delete(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		events.Normal("Moved", "one replica")
		if list := a.events(t); len(list) != 1 || list[0].Count != 2 {
			t.Errorf("events %+v", list)
		}
		h.cancel()
	})
}

func TestAMemberThatTakesNoEventsCostsOnlyTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, events := eventHub(t, interceptor.Funcs{
			Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		const most = 128 // that wait to be sent
		began := time.Now()
		for i := range 10 * most {
			events.Normal("Moved", "replica %d", i)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("recording took %v: it waited for the member", took)
		}
		time.Sleep(time.Hour)
		if n := h.value("plimsoll_events_dropped_total", "member=a"); n != 10*most {
			t.Errorf("%v events counted as dropped, want all %d", n, 10*most)
		}
		if n := len(a.events(t)); n != 0 {
			t.Errorf("%d events", n)
		}
		h.cancel()
	})
}

func TestAStandbyWritesNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, events := eventHub(t, interceptor.Funcs{})
		h.holdAll(HoldOwnership, "owned by hub-1")
		events.Normal("Moved", "one replica")
		if n := len(a.events(t)); n != 0 {
			t.Errorf("%d events from a standby", n)
		}
		h.releaseAll(HoldOwnership)
		events.Normal("Moved", "one replica")
		if n := len(a.events(t)); n != 1 {
			t.Errorf("%d events once it owns the member, want 1", n)
		}
		h.cancel()
	})
}
