package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

func TestErrorsBackOffWithGrowingDelays(t *testing.T) {
	for name, answer := range map[string]func() (Result, error){
		"error":   func() (Result, error) { return Done(), errors.New("broken") },
		"requeue": func() (Result, error) { return Requeue("not yet"), nil },
		"panic":   func() (Result, error) { panic("oops") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{}), &calls{}
				c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
					seen.add(req.Member, req.Object.Name)
					return answer()
				})))
				a, _ := h.join(c, "a", &corev1.ConfigMap{})
				a.add(configMap("one"))
				for seen.count() < 14 {
					time.Sleep(time.Minute)
				}
				middle := retry.First
				for i, gap := range seen.gaps() {
					if d := gap - middle; d < -middle/10 || d > middle/10 {
						t.Errorf("delay %d is %v, want %v give or take a tenth", i, gap, middle)
					}
					middle = min(2*middle, retry.Most)
				}
				r, _ := h.Lookup(keyOf("c", "a", "one"))
				if !r.Failing.Equal(seen.first()) {
					t.Errorf("failing since %v, want %v, when the first attempt ended", r.Failing, seen.first())
				}
				if r.State != StateWaiting || r.Attempts != seen.count() || r.NextTry.Before(time.Now()) || r.Reason == "" {
					t.Errorf("record %+v after %d attempts", r, seen.count())
				}
				h.cancel()
			})
		})
	}
}

func TestAChangeEndsABackOffAndSuccessForgetsTheFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		var broken atomic.Bool
		broken.Store(true)
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			if broken.Load() {
				return Done(), errors.New("broken")
			}
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(time.Minute)
		if r, _ := h.Lookup(keyOf("c", "a", "one")); r.Failing.IsZero() {
			t.Errorf("record %+v does not say since when it fails", r)
		}
		broken.Store(false)
		a.modify(configMap("one"))
		synctest.Wait() // no time passes
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.State != StateIdle || r.Attempts != 0 || r.LastError != "" || r.LastOutcome != OutcomeDone || !r.Failing.IsZero() {
			t.Errorf("record %+v, want it done without a trace of failures", r)
		}
		h.cancel()
	})
}

func TestATerminalErrorWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			return Done(), fmt.Errorf("reading it: %w", TerminalError(errors.New("never valid")))
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(time.Hour)
		if n := seen.count(); n != 1 {
			t.Errorf("%d reconciles, want 1 until something changes", n)
		}
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.LastOutcome != OutcomeTerminal || r.State != StateIdle || r.Attempts != 1 {
			t.Errorf("record %+v", r)
		}
		a.modify(configMap("one"))
		synctest.Wait()
		if n := seen.count(); n != 2 {
			t.Errorf("%d reconciles after a change, want 2", n)
		}
		h.cancel()
	})
}

func TestRequeueAfterLooksAgainAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			return RequeueAfter(7*time.Second, "cooling down"), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.State != StateWaiting || r.Reason != "cooling down" || r.LastOutcome != OutcomeRequeue || r.Attempts != 0 {
			t.Errorf("record %+v", r)
		}
		time.Sleep(time.Minute)
		for _, gap := range seen.gaps() {
			if gap.Round(time.Millisecond) != 7*time.Second {
				t.Errorf("looked again after %v, want 7s", gap)
			}
		}
		if n := seen.count(); n != 9 {
			t.Errorf("%d reconciles in a minute, want 9", n)
		}
		h.cancel()
	})
}

func TestResyncLooksAgainInTheBackgroundAlsoAtKeysThatWaitForLater(t *testing.T) {
	for name, result := range map[string]Result{"done": Done(), "later": RequeueAfter(24*time.Hour, "window")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{}), &calls{}
				c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
					seen.add(req.Member, req.Object.Name)
					if r, _ := h.Lookup(keyOf("c", "a", "one")); r.Priority != PriorityBackground || r.State != StateRunning {
						t.Errorf("record %+v, want it running with background priority", r)
					}
					return result, nil
				})).Resync(20*time.Second))
				a := newFakeCluster(h.ctx)
				a.install(&corev1.ConfigMap{}, configMap("one"))
				h.engage(h.ctx, c, "a", a)
				time.Sleep(10 * time.Minute)
				if n := seen.count(); n < 27 || n > 34 {
					t.Errorf("%d looks in 10 minutes, want about 30", n)
				}
				same := true
				for _, gap := range seen.gaps() {
					same = same && gap == seen.gaps()[0]
				}
				if same {
					t.Error("resyncs have no jitter")
				}
				h.cancel()
			})
		})
	}
}
