package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const ourFinalizer = "plimsoll.dev/c"

// cleaner is a Finalizer made of two functions.
type cleaner struct {
	gadgets

	finalize func(ctx context.Context, req Request[*gadget]) (FinalizeResult, error)
}

func (c cleaner) Finalize(ctx context.Context, req Request[*gadget]) (FinalizeResult, error) {
	return c.finalize(ctx, req)
}

// cleaning is a reconciler that answers so when it is asked to clean up.
func cleaning(answer func() (FinalizeResult, error)) func(h *hub) *Builder[*gadget] {
	return func(h *hub) *Builder[*gadget] {
		return For[*gadget](h.Runtime, "c", cleaner{
			gadgets: func(_ context.Context, req Request[*gadget]) (Result, error) {
				if !slices.Contains(req.Object.Finalizers, ourFinalizer) {
					return Done(), errors.New("reconciled before the finalizer was there")
				}
				return Done(), nil
			},
			finalize: func(context.Context, Request[*gadget]) (FinalizeResult, error) { return answer() },
		})
	}
}

func TestAFinalizerIsThereBeforeTheFirstReconcileAndGoesAfterCleaningUp(t *testing.T) {
	var through atomic.Bool
	inPlant(t, cleaning(func() (FinalizeResult, error) {
		if through.Load() {
			return CleanedUp(), nil
		}
		return Pending(time.Minute, "two volumes are left"), nil
	}), func(t *testing.T, h *hub, s *plant) {
		g := newGadget("one")
		g.Finalizers = []string{"other/first"}
		s.create(g)
		if got := mustRead[*gadget](s, "one"); !slices.Equal(got.Finalizers, []string{"other/first", ourFinalizer}) || condition(got, ConditionReady) != "True/Succeeded" {
			t.Fatalf("finalizers %v, status %+v", got.Finalizers, got.Status)
		}
		remove[*gadget](s, "one")
		got := mustRead[*gadget](s, "one")
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomePending || r.State != StateWaiting || r.Reason != "two volumes are left" {
			t.Errorf("record %+v", r)
		}
		if condition(got, ConditionReady) != "False/Deleting: two volumes are left" || condition(got, ConditionReconciling) != "True/Deleting: two volumes are left" {
			t.Errorf("status %+v", got.Status)
		}
		change(s, "one", func(g *gadget) { g.Finalizers = append(g.Finalizers, "other/last") })
		through.Store(true)
		time.Sleep(2 * time.Minute)
		if got := mustRead[*gadget](s, "one"); !slices.Equal(got.Finalizers, []string{"other/first", "other/last"}) {
			t.Errorf("finalizers %v, want ours gone and the others there", got.Finalizers)
		}
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomeCleanedUp || r.State != StateIdle {
			t.Errorf("record %+v", r)
		}
		change(s, "one", func(g *gadget) { g.Finalizers = nil })
		if _, there := read[*gadget](s, "one"); there {
			t.Error("the object is still there")
		}
		if r, ok := h.Lookup(keyOf("c", "a", "one")); ok {
			t.Errorf("the ledger still has %+v", r)
		}
	})
}

func TestAFinalizerThatSomebodyAddsInBetweenIsNotLost(t *testing.T) {
	for _, when := range []string{"when ours is added", "when ours is removed"} {
		t.Run(when, func(t *testing.T) {
			var s *plant
			var once atomic.Bool
			inBetween := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				deleting := obj.GetDeletionTimestamp() != nil
				if _, ok := obj.(*gadget); ok && deleting == (when == "when ours is removed") && once.CompareAndSwap(false, true) {
					other := mustRead[*gadget](s, "one")
					other.Finalizers = append(other.Finalizers, "other/quick")
					if err := s.live.Update(ctx, other); err != nil {
						return err
					}
				}
				return c.Patch(ctx, obj, patch, opts...)
			}}
			inPlantWith(t, inBetween, cleaning(func() (FinalizeResult, error) { return CleanedUp(), nil }), func(t *testing.T, h *hub, at *plant) {
				s = at
				g := newGadget("one")
				g.Finalizers = []string{"other/first"}
				s.create(g)
				remove[*gadget](s, "one")
				got := mustRead[*gadget](s, "one")
				if !once.Load() || !slices.Contains(got.Finalizers, "other/quick") || slices.Contains(got.Finalizers, ourFinalizer) {
					t.Errorf("finalizers %v", got.Finalizers)
				}
			})
		})
	}
}

func TestCleaningUpThatTakesTooLongIsStalledAndGoesOn(t *testing.T) {
	var asked atomic.Int32
	var through atomic.Bool
	inPlant(t, func(h *hub) *Builder[*gadget] {
		return cleaning(func() (FinalizeResult, error) {
			asked.Add(1)
			if through.Load() {
				return CleanedUp(), nil
			}
			return Pending(time.Hour, "two volumes are left"), nil
		})(h).FinalizeDeadline(20 * time.Minute)
	}, func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		remove[*gadget](s, "one")
		time.Sleep(19 * time.Minute)
		if got := mustRead[*gadget](s, "one"); condition(got, ConditionStalled) != "" || h.value("plimsoll_finalizers_overdue", "member=a") != 0 {
			t.Errorf("stalled before its time: %+v", got.Status)
		}
		time.Sleep(2 * time.Minute) // the deadline passes although nobody was to look before the hour
		got, r := mustRead[*gadget](s, "one"), gadgetRecord(h, "one")
		want := "cleaning up has taken longer than 20m0s: two volumes are left"
		if condition(got, ConditionStalled) != "True/CleanUpOverdue: "+want || condition(got, ConditionReconciling) != "" || r.Reason != want {
			t.Errorf("status %+v, record %+v", got.Status, r)
		}
		if n := h.value("plimsoll_finalizers_overdue", "member=a"); n != 1 {
			t.Errorf("%v objects are overdue in the metric, want 1", n)
		}
		before := asked.Load()
		time.Sleep(time.Hour)
		if asked.Load() == before {
			t.Error("nobody goes on cleaning up")
		}
		through.Store(true)
		time.Sleep(time.Hour)
		if _, there := read[*gadget](s, "one"); there || h.value("plimsoll_finalizers_overdue", "member=a") != 0 {
			t.Error("it was cleaned up at last, and it is still there or overdue")
		}
	})
}

// A defect in a Finalizer is no reason that nobody hears of an object that cannot go.
func TestCleaningUpThatPanicsIsStalledAfterItsDeadline(t *testing.T) {
	inPlant(t, func(h *hub) *Builder[*gadget] {
		return cleaning(func() (FinalizeResult, error) { panic("no such volume") })(h).FinalizeDeadline(20 * time.Minute)
	}, func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		remove[*gadget](s, "one")
		time.Sleep(time.Hour)
		got := mustRead[*gadget](s, "one")
		if c := condition(got, ConditionStalled); !strings.HasPrefix(c, "True/CleanUpOverdue: cleaning up has taken longer than 20m0s") || h.value("plimsoll_finalizers_overdue", "member=a") != 1 {
			t.Errorf("status %+v", got.Status)
		}
	})
}

func TestWhatIsNotOursIsLetGoAndToldSo(t *testing.T) {
	inPlant(t, cleaning(func() (FinalizeResult, error) { return NotOurs("its member was detached"), nil }), func(t *testing.T, h *hub, s *plant) {
		g := newGadget("one")
		g.Finalizers = []string{"other/first"}
		s.create(g)
		remove[*gadget](s, "one")
		if got := mustRead[*gadget](s, "one"); slices.Contains(got.Finalizers, ourFinalizer) {
			t.Errorf("finalizers %v", got.Finalizers)
		}
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomeNotOurs || r.Reason != "its member was detached" {
			t.Errorf("record %+v", r)
		}
	})
}

func TestAnObjectThatMayNotGoYetIsReconciled(t *testing.T) {
	var reconciled, asked atomic.Int32
	inPlant(t, func(h *hub) *Builder[*gadget] {
		return For[*gadget](h.Runtime, "c", cleaner{
			gadgets: func(context.Context, Request[*gadget]) (Result, error) { reconciled.Add(1); return Done(), nil },
			finalize: func(context.Context, Request[*gadget]) (FinalizeResult, error) {
				asked.Add(1)
				return Continue(), nil
			},
		}).Resync(time.Minute)
	}, func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		before := reconciled.Load()
		remove[*gadget](s, "one")
		time.Sleep(10 * time.Minute)
		if asked.Load() < 5 || reconciled.Load()-before != asked.Load() || !slices.Contains(mustRead[*gadget](s, "one").Finalizers, ourFinalizer) {
			t.Errorf("asked %d times, reconciled %d times while it is being deleted", asked.Load(), reconciled.Load()-before)
		}
	})
}

func TestAnObjectThatIsDeletedBeforeItWasHeldIsNeverReconciled(t *testing.T) {
	var s *plant
	var reconciled atomic.Int32
	deletedFirst := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if g, there := read[*gadget](s, "one"); there && g.DeletionTimestamp == nil {
			if err := s.live.Delete(ctx, g); err != nil {
				return err
			}
		}
		return c.Patch(ctx, obj, patch, opts...)
	}}
	for _, others := range [][]string{nil, {"other/first"}} {
		inPlantWith(t, deletedFirst, func(h *hub) *Builder[*gadget] {
			return For[*gadget](h.Runtime, "c", cleaner{
				gadgets:  func(context.Context, Request[*gadget]) (Result, error) { reconciled.Add(1); return Done(), nil },
				finalize: func(context.Context, Request[*gadget]) (FinalizeResult, error) { return CleanedUp(), nil },
			})
		}, func(t *testing.T, h *hub, at *plant) {
			s = at
			g := newGadget("one")
			g.Finalizers = others
			s.create(g)
			time.Sleep(time.Minute)
			if got, there := read[*gadget](s, "one"); reconciled.Load() != 0 || there != (others != nil) || (there && slices.Contains(got.Finalizers, ourFinalizer)) {
				t.Errorf("%d reconciles, there: %v, finalizers %v", reconciled.Load(), there, got.Finalizers)
			}
			if r := gadgetRecord(h, "one"); r.Attempts != 0 {
				t.Errorf("record %+v", r)
			}
		})
	}
}

func TestAFailedCleanUpIsTriedAgainWithBackOff(t *testing.T) {
	var asked atomic.Int32
	inPlant(t, cleaning(func() (FinalizeResult, error) {
		switch asked.Add(1) {
		case 1:
			return FinalizeResult{}, errors.New("no answer")
		case 2:
			panic("oops")
		case 3:
			return Pending(0, "not yet"), nil
		}
		return CleanedUp(), nil
	}), func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		remove[*gadget](s, "one")
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomeError || r.LastError != "no answer" {
			t.Errorf("record %+v", r)
		}
		time.Sleep(1500 * time.Millisecond)
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomePanic || r.Attempts != 2 {
			t.Errorf("record %+v", r)
		}
		time.Sleep(2500 * time.Millisecond)
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomePending || r.Attempts != 3 || r.Reason != "not yet" {
			t.Errorf("record %+v", r)
		}
		time.Sleep(time.Minute)
		if _, there := read[*gadget](s, "one"); there {
			t.Error("it is still there")
		}
	})
}

func TestAPausedObjectIsNotCleanedUp(t *testing.T) {
	var asked atomic.Int32
	inPlant(t, cleaning(func() (FinalizeResult, error) { asked.Add(1); return CleanedUp(), nil }), func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		change(s, "one", annotate(AnnotationPaused, "true"))
		remove[*gadget](s, "one")
		time.Sleep(time.Hour)
		if asked.Load() != 0 {
			t.Error("it was cleaned up")
		}
		change(s, "one", func(g *gadget) { g.Annotations = nil })
		if _, there := read[*gadget](s, "one"); there || asked.Load() != 1 {
			t.Errorf("asked %d times, there: %v", asked.Load(), there)
		}
	})
}

func TestARefusedFinalizerSaysWhichAndWhy(t *testing.T) {
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		return errors.New("no")
	}}
	inPlantWith(t, refuse, cleaning(func() (FinalizeResult, error) { return CleanedUp(), nil }), func(t *testing.T, h *hub, s *plant) {
		s.create(newGadget("one"))
		synctest.Wait()
		if r := gadgetRecord(h, "one"); !strings.Contains(r.LastError, "add the finalizer plimsoll.dev/c: no") {
			t.Errorf("record %+v", r)
		}
	})
}
