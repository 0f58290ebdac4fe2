package reconcile

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func annotate(key, value string) func(*gadget) {
	return func(g *gadget) {
		if g.Annotations == nil {
			g.Annotations = map[string]string{}
		}
		g.Annotations[key] = value
	}
}

func never(old, obj *gadget) bool { return false }

func TestAPausedObjectIsLeftAloneUntilThePauseIsTakenAway(t *testing.T) {
	var runs atomic.Int32
	atLeast := func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", sized(&runs)).Resync(time.Minute) }
	inPlant(t, atLeast, func(t *testing.T, h *hub, s *plant) {
		g := newGadget("one")
		annotate(AnnotationPaused, "true")(g)
		g.Spec.Size = 2
		s.create(g)
		time.Sleep(time.Hour)
		change(s, "one", func(g *gadget) { g.Spec.Size = 3 })
		got := mustRead[*gadget](s, "one")
		if runs.Load() != 0 || got.Status.Size != 0 || got.Status.ObservedGeneration != 0 ||
			condition(got, ConditionPaused) != "True/PausedByAnnotation: "+pausedReason {
			t.Errorf("%d reconciles, status %+v", runs.Load(), got.Status)
		}
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomePaused || r.Reason != pausedReason || r.State != StateIdle {
			t.Errorf("record %+v", r)
		}
		change(s, "one", func(g *gadget) { delete(g.Annotations, AnnotationPaused) })
		if got = mustRead[*gadget](s, "one"); runs.Load() != 1 || got.Status.Size != 3 || condition(got, ConditionPaused) != "" {
			t.Errorf("%d reconciles at once after the pause, status %+v", runs.Load(), got.Status)
		}
	})
}

func TestAPauseThatIsNoneIsToldAndPausesNothing(t *testing.T) {
	var runs atomic.Int32
	inPlant(t, func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", sized(&runs)) }, func(t *testing.T, h *hub, s *plant) {
		g := newGadget("one")
		annotate(AnnotationPaused, "yes")(g)
		s.create(g)
		var events corev1.EventList
		if err := s.live.List(t.Context(), &events); err != nil || len(events.Items) != 1 {
			t.Fatalf("%d events, %v", len(events.Items), err)
		}
		if e := events.Items[0]; e.Type != "Warning" || !strings.Contains(e.Message, `plimsoll.dev/paused is "yes"`) || runs.Load() != 1 {
			t.Errorf("%d reconciles, event %s %s", runs.Load(), e.Reason, e.Message)
		}
	})
}

func TestARequestByAnnotationRunsBeforeOthersAndIsEchoed(t *testing.T) {
	var priorities []Priority
	var h *hub
	inPlant(t, func(at *hub) *Builder[*gadget] {
		h = at
		return For(h.Runtime, "c", gadgets(func(_ context.Context, req Request[*gadget]) (Result, error) {
			priorities = append(priorities, gadgetRecord(h, "one").Priority)
			return Requeue("not yet"), nil // it would back off
		})).Predicate(never)
	}, func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		change(s, "one", annotate(AnnotationRequestedAt, "monday"))
		if len(priorities) != 1 || priorities[0] != PriorityOrdered || mustRead[*gadget](s, "one").Status.LastHandledRequest != "monday" {
			t.Errorf("priorities %v, status %+v", priorities, mustRead[*gadget](s, "one").Status)
		}
		change(s, "one", annotate(AnnotationRequestedAt, "tuesday")) // in the back-off
		if len(priorities) != 2 || priorities[1] != PriorityOrdered || mustRead[*gadget](s, "one").Status.LastHandledRequest != "tuesday" {
			t.Errorf("priorities %v, status %+v", priorities, mustRead[*gadget](s, "one").Status)
		}
		if r := gadgetRecord(h, "one"); r.Handled != "tuesday" {
			t.Errorf("record %+v", r)
		}
		change(s, "one", func(g *gadget) {
			annotate(AnnotationPaused, "true")(g)
			annotate(AnnotationRequestedAt, "wednesday")(g)
		})
		if r := gadgetRecord(h, "one"); r.Handled != "tuesday" || r.LastOutcome != OutcomePaused {
			t.Errorf("a paused object's record %+v", r)
		}
		change(s, "one", func(g *gadget) { g.Annotations = nil })
		if r := gadgetRecord(h, "one"); r.Handled != "" || r.LastOutcome != OutcomeRequeue {
			t.Errorf("the record of an object without a request %+v", r)
		}
	})
}

func TestARequestThatWasMadeWhileNoHubRanIsServedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1, Scheme: gadgetScheme})
		priority := map[string]Priority{}
		c := launch(h, For(h.Runtime, "c", gadgets(func(_ context.Context, req Request[*gadget]) (Result, error) {
			priority[req.Object.Name] = gadgetRecord(h, req.Object.Name).Priority
			return Done(), nil
		})).Workers(1))
		s := newPlant(h.ctx, t, noFaults)
		for name, handled := range map[string]string{"asked": "sunday", "served": "monday"} {
			g := newGadget(name)
			annotate(AnnotationRequestedAt, "monday")(g)
			s.create(g)
			changeStatus(s, name, func(g *gadget) { g.Status.LastHandledRequest = handled })
		}
		s.serve(&gadget{})
		h.engage(h.ctx, c, "a", s)
		synctest.Wait()
		if priority["asked"] != PriorityOrdered || priority["served"] != PriorityBackground {
			t.Errorf("priorities %v", priority)
		}
		h.cancel()
	})
}

func TestWhatSteersIsCachedOfTrimmedKinds(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	keepLabels := func(from, into client.Object) {
		into.SetLabels(from.GetLabels())
		into.SetAnnotations(map[string]string{"mine": "1"})
	}
	c, err := For(rt, "c", counting(&calls{})).Kind(clusters.Kind{Object: &corev1.ConfigMap{}, Keep: keepLabels}).Register()
	if err != nil {
		t.Fatal(err)
	}
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{AnnotationPaused: "true", AnnotationRequestedAt: "now", "other": "1"}, Finalizers: []string{"a/b"},
	}}
	var into corev1.ConfigMap
	c.Kinds()[0].Keep(from, &into)
	if into.Annotations[AnnotationPaused] != "true" || into.Annotations[AnnotationRequestedAt] != "now" || into.Annotations["mine"] != "1" ||
		len(into.Annotations) != 3 || len(into.Finalizers) != 1 {
		t.Errorf("cached %+v", into.ObjectMeta)
	}
}

func TestNoPredicateDropsWhatSteers(t *testing.T) {
	deleted := func(g *gadget) { now := metav1.Now(); g.DeletionTimestamp = &now }
	held := func(g *gadget) { g.Finalizers = []string{"plimsoll.dev/c"} }
	both := func(g *gadget) { deleted(g); held(g) }
	for name, tc := range map[string]struct {
		old, obj func(*gadget)
		priority Priority
		wakes    bool
	}{
		"nothing":                     {nil, nil, 0, false},
		"paused":                      {nil, annotate(AnnotationPaused, "true"), PriorityChanged, true},
		"resumed":                     {annotate(AnnotationPaused, "true"), nil, PriorityChanged, true},
		"requested":                   {nil, annotate(AnnotationRequestedAt, "1"), PriorityOrdered, true},
		"requested before":            {annotate(AnnotationRequestedAt, "1"), annotate(AnnotationRequestedAt, "1"), 0, false},
		"deleted":                     {held, both, PriorityChanged, true},
		"deleted and not ours":        {nil, deleted, 0, false},
		"finalizer taken off by hand": {held, nil, PriorityChanged, true},
		"finalizer put on":            {nil, held, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &primary{finalizer: "plimsoll.dev/c", status: true, keep: func(old, obj client.Object) bool { return false }}
			old, obj := newGadget("one"), newGadget("one")
			if tc.old != nil {
				tc.old(old)
			}
			if tc.obj != nil {
				tc.obj(obj)
			}
			if priority, wakes := p.weigh(old, obj, false); priority != tc.priority || wakes != tc.wakes {
				t.Errorf("wakes %v with priority %v", wakes, priority)
			}
		})
	}
}

func TestAChangeThatAReconcileCouldDependOnWakes(t *testing.T) {
	p := &primary{status: true, keep: func(old, obj client.Object) bool { return true }}
	for name, f := range map[string]func(*gadget){
		"generation": func(g *gadget) { g.Generation++ },
		"label":      func(g *gadget) { g.Labels = map[string]string{"a": "b"} },
		"annotation": annotate("a", "b"),
		"owner":      func(g *gadget) { g.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} },
		"namesake":   func(g *gadget) { g.UID = "another" },
	} {
		obj := newGadget("one")
		f(obj)
		if priority, wakes := p.weigh(newGadget("one"), obj, false); priority != PriorityChanged || !wakes {
			t.Errorf("%s: wakes %v with priority %v", name, wakes, priority)
		}
	}
	status := newGadget("one")
	status.Status.Size = 4
	if _, wakes := p.weigh(newGadget("one"), status, false); wakes {
		t.Error("a change of the status wakes")
	}
	native := &primary{keep: func(old, obj client.Object) bool { return true }}
	if _, wakes := native.weigh(&appsv1.Deployment{}, &appsv1.Deployment{}, false); !wakes {
		t.Error("a change of a kind whose status is another's does not wake")
	}
}
