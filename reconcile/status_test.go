package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// sized is a reconciler that brings status.size to spec.size.
func sized(runs *atomic.Int32) gadgets {
	return func(_ context.Context, req Request[*gadget]) (Result, error) {
		runs.Add(1)
		req.Object.Status.Size = req.Object.Spec.Size
		return Done(), nil
	}
}

func TestAStatusIsWrittenOnceAndThenStandsStill(t *testing.T) {
	var runs atomic.Int32
	inPlant(t, func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", sized(&runs)).Resync(time.Minute) },
		func(t *testing.T, h *hub, s *plant) {
			g := newGadget("one")
			g.Spec.Size = 3
			s.create(g)
			first := mustRead[*gadget](s, "one")
			if first.Status.Size != 3 || first.Status.ObservedGeneration != 1 || condition(first, ConditionReady) != "True/Succeeded" ||
				len(first.Status.Conditions) != 1 {
				t.Fatalf("status %+v", first.Status)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("%d reconciles, want 1: the status write must not wake the key", n)
			}
			time.Sleep(time.Hour)
			if n := runs.Load(); n < 50 {
				t.Errorf("%d reconciles, want the resyncs", n)
			}
			if last := mustRead[*gadget](s, "one"); last.ResourceVersion != first.ResourceVersion {
				t.Errorf("resourceVersion went from %s to %s though nothing changed", first.ResourceVersion, last.ResourceVersion)
			}
		})
}

func TestAStatusWriteLosesNothingThatOthersWroteMeanwhile(t *testing.T) {
	var s *plant
	interfere := func(_ context.Context, req Request[*gadget]) (Result, error) {
		if req.Object.Status.Size == 0 { // somebody else writes while we think
			changeOther := mustRead[*gadget](s, "one")
			changeOther.Status.Parts = map[string]string{"theirs": "1"}
			meta.SetStatusCondition(&changeOther.Status.Conditions, metav1.Condition{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "Theirs"})
			if err := s.live.Status().Update(context.Background(), changeOther); err != nil {
				return Done(), err
			}
		}
		req.Object.Status.Size = 7
		req.Conditions.True("Ours", "Ours", "")
		return Done(), nil
	}
	inPlant(t, func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", gadgets(interfere)) }, func(t *testing.T, h *hub, at *plant) {
		s = at
		s.create(newGadget("one"))
		g := mustRead[*gadget](s, "one")
		if g.Status.Size != 7 || g.Status.Parts["theirs"] != "1" || condition(g, "Theirs") == "" || condition(g, "Ours") == "" ||
			condition(g, ConditionReady) == "" {
			t.Errorf("status %+v", g.Status)
		}
		if r := gadgetRecord(h, "one"); r.LastOutcome != OutcomeDone || r.Runs != 1 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestACacheThatIsBehindWritesNoStatusTwice(t *testing.T) {
	var runs, writes atomic.Int32
	funcs := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		err := c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		if err == nil {
			writes.Add(1)
		}
		return err
	}}
	inPlantWith(t, funcs, func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", sized(&runs)) }, func(t *testing.T, h *hub, s *plant) {
		s.lag()
		g := newGadget("one")
		g.Spec.Size = 3
		s.create(g) // waits in front of the cache
		s.follow()
		synctest.Wait()
		s.lag()
		before := mustRead[*gadget](s, "one")
		if _, err := h.Requeue(keyOf("c", "a", "one")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if after := mustRead[*gadget](s, "one"); after.ResourceVersion != before.ResourceVersion || writes.Load() != 1 || runs.Load() != 2 {
			t.Errorf("%d writes in %d reconciles, resourceVersion %s to %s", writes.Load(), runs.Load(), before.ResourceVersion, after.ResourceVersion)
		}
	})
}

func TestAStatusNeverGoesBackToAnOlderGeneration(t *testing.T) {
	var s *plant
	slow := func(_ context.Context, req Request[*gadget]) (Result, error) {
		if req.Object.Status.ObservedGeneration == 0 {
			changeStatusOf(s, "one", func(g *gadget) { g.Status.ObservedGeneration, g.Status.Size = 9, 9 })
		}
		req.Object.Status.Size = 1
		return Done(), nil
	}
	inPlant(t, func(h *hub) *Builder[*gadget] { return For(h.Runtime, "c", gadgets(slow)) }, func(t *testing.T, h *hub, at *plant) {
		s = at
		s.create(newGadget("one"))
		if g := mustRead[*gadget](s, "one"); g.Status.Size != 9 || g.Status.ObservedGeneration != 9 {
			t.Errorf("status %+v, want that of the later generation", g.Status)
		}
	})
}

// changeStatusOf is changeStatus for use in a reconciler.
func changeStatusOf(s *plant, name string, f func(*gadget)) {
	g := mustRead[*gadget](s, name)
	f(g)
	if err := s.live.Status().Update(context.Background(), g); err != nil {
		s.t.Error(err)
	}
}

func TestWhatFailedIsInTheStatusUntilItIsMended(t *testing.T) {
	for name, tc := range map[string]struct {
		answer                     func() (Result, error)
		ready, reconciling, stalls string
	}{
		"an error": {func() (Result, error) { return Done(), errors.New("no room") },
			"False/ReconcileFailed: no room", "True/ReconcileFailed: no room", ""},
		"a panic": {func() (Result, error) { panic("oops") },
			"False/ReconcilePanicked: panic: oops", "True/ReconcilePanicked: panic: oops", ""},
		"a terminal error": {func() (Result, error) { return Done(), TerminalError(errors.New("never valid")) },
			"False/Terminal: never valid", "", "True/Terminal: never valid"},
		"a refusal": {func() (Result, error) {
			return Done(), retry.Refused(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota")))
		}, `False/Forbidden: pods "p" is forbidden: exceeded quota`, "", `True/Forbidden: pods "p" is forbidden: exceeded quota`},
		"waiting": {func() (Result, error) { return Requeue("two pods are missing"), nil },
			"False/Progressing: two pods are missing", "True/Progressing: two pods are missing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			inPlant(t, func(h *hub) *Builder[*gadget] {
				return For(h.Runtime, "c", gadgets(func(context.Context, Request[*gadget]) (Result, error) {
					if broken.Load() {
						return tc.answer()
					}
					return Done(), nil
				}))
			}, func(t *testing.T, h *hub, s *plant) {
				s.create(newGadget("one"))
				g := mustRead[*gadget](s, "one")
				if condition(g, ConditionReady) != tc.ready || condition(g, ConditionReconciling) != tc.reconciling ||
					condition(g, ConditionStalled) != tc.stalls || g.Status.ObservedGeneration != 1 {
					t.Errorf("status %+v", g.Status)
				}
				time.Sleep(30 * time.Second) // some tries
				if again := mustRead[*gadget](s, "one"); again.ResourceVersion != g.ResourceVersion {
					t.Error("the same failure was written again")
				}
				broken.Store(false)
				time.Sleep(10 * time.Minute) // nothing changes but the cause
				g = mustRead[*gadget](s, "one")
				if condition(g, ConditionReady) != "True/Succeeded" || len(g.Status.Conditions) != 1 {
					t.Errorf("status %+v, want it ready and nothing else", g.Status)
				}
			})
		})
	}
}

func TestWhatIsNobodysFaultChangesNoCondition(t *testing.T) {
	for name, err := range map[string]error{
		"conflict":  apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")),
		"ownership": clusters.ErrNotOwner,
	} {
		t.Run(name, func(t *testing.T) {
			inPlant(t, func(h *hub) *Builder[*gadget] {
				return For(h.Runtime, "c", gadgets(func(context.Context, Request[*gadget]) (Result, error) { return Done(), err }))
			}, func(t *testing.T, h *hub, s *plant) {
				s.create(newGadget("one"))
				time.Sleep(time.Minute)
				if g := mustRead[*gadget](s, "one"); len(g.Status.Conditions) != 0 || g.Status.ObservedGeneration != 0 {
					t.Errorf("status %+v", g.Status)
				}
			})
		})
	}
}

func TestATransitionHasItsTimeAndNothingElseHas(t *testing.T) {
	var ready atomic.Bool
	inPlant(t, func(h *hub) *Builder[*gadget] {
		return For(h.Runtime, "c", gadgets(func(_ context.Context, req Request[*gadget]) (Result, error) {
			if ready.Load() {
				req.Conditions.True(ConditionReady, "Up", "all pods of %d", req.Object.Spec.Size)
			} else {
				req.Conditions.False(ConditionReady, "Down", "no pod of %d", req.Object.Spec.Size)
			}
			return Done(), nil
		}))
	}, func(t *testing.T, h *hub, s *plant) {
		times := func() (out []time.Time) {
			for _, at := range []bool{false, false, true} {
				ready.Store(at)
				change(s, "one", func(g *gadget) { g.Spec.Size++; g.Generation++ })
				c := meta.FindStatusCondition(mustRead[*gadget](s, "one").Status.Conditions, ConditionReady)
				if c.ObservedGeneration != mustRead[*gadget](s, "one").Generation {
					t.Errorf("condition %+v is not about the generation that was reconciled", c)
				}
				out = append(out, c.LastTransitionTime.Time)
				time.Sleep(time.Minute)
			}
			return out
		}
		s.create(newGadget("one"))
		if at := times(); !at[0].Equal(at[1]) || !at[2].After(at[1]) {
			t.Errorf("transitions at %v, want the first two the same and the third later", at)
		}
		if g := mustRead[*gadget](s, "one"); len(g.Status.Conditions) != 1 {
			t.Errorf("conditions %+v", g.Status.Conditions)
		}
	})
}

// bare has no status at all, outside is a StatusObject that does not embed it, and aside one that keeps it elsewhere.
type aside struct {
	gadget
	Common Status
}

func (a *aside) CommonStatus() *Status { return &a.Common }

func TestAKindWhoseStatusCannotBeKeptIsRefusedAtSetUp(t *testing.T) {
	rt, err := NewRuntime(Options{Scheme: gadgetScheme})
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	_, err = For(rt, "c", sized(&runs)).Kind(clusters.Kind{Keep: func(from, into client.Object) {}}).Register()
	if err == nil || !strings.Contains(err.Error(), "Keep") || !strings.Contains(err.Error(), "gadget") {
		t.Errorf("a trimmed StatusObject: %v", err)
	}
	if err := checkStatus(&aside{}); err == nil || !strings.Contains(err.Error(), "inline") {
		t.Errorf("a status that is elsewhere: %v", err)
	}
	if err := checkStatus(&gadget{}); err != nil {
		t.Error(err)
	}
}
