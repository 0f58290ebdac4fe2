package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// inTurn are reconciles of one object that end in turn as its series are to say.
func inTurn() func() (Result, error) {
	turn := 0
	return func() (Result, error) {
		turn++
		switch turn {
		case 1, 2, 3:
			return Done(), errors.New("broken")
		case 4:
			panic("oops")
		case 5, 6:
			return Requeue("not yet"), nil
		case 7:
			return Done(), TerminalError(errors.New("never valid"))
		}
		return Done(), nil
	}
}

func TestTheSeriesOfReconcilesCountHowTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, next := newHub(t, Options{Resync: -1}), inTurn()
		c := launch(h, For(h.Runtime, "values", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			time.Sleep(2 * time.Second)
			return next()
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(time.Hour) // all of the back-offs
		for range 2 {
			a.modify(configMap("one"))
			time.Sleep(time.Minute)
		}
		for outcome, want := range map[string]float64{"error": 3, "panic": 1, "requeue": 2, "terminal": 1, "done": 2} {
			if n := h.value("plimsoll_reconcile_total", "controller=values", "member=a", "outcome="+outcome); n != want {
				t.Errorf("%v reconciles ended with outcome %s, want %v", n, outcome, want)
			}
		}
		for name, want := range map[string]float64{
			"plimsoll_reconcile_total": 9, "plimsoll_reconcile_errors_total": 5, "plimsoll_reconcile_panics_total": 1,
			"plimsoll_reconcile_duration_seconds": 18, "plimsoll_queue_depth": 0, "plimsoll_reconciles_running": 0,
		} {
			if n := h.value(name, "member=a"); n != want {
				t.Errorf("%s is %v, want %v", name, n, want)
			}
		}
		h.cancel()
	})
}

// One worker takes 2 s for each of three keys that come at once: the second waits for 2 s, and the third for 4 s.
func TestTheTimeThatKeysWaitForAWorkerIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "values", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			time.Sleep(2 * time.Second)
			seen.add(req.Member, req.Object.Name)
			return Done(), nil
		})).Workers(1))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		for _, name := range []string{"one", "two", "three"} {
			a.add(configMap(name))
		}
		time.Sleep(time.Minute)
		if n := h.value("plimsoll_queue_wait_seconds", "member=a"); n != 6 || seen.count() != 3 {
			t.Errorf("%d keys waited for %v s, want 3 for 6 s", seen.count(), n)
		}
		h.cancel()
	})
}

// A reader of controller-runtime's series would take six failures for six successes: what a result means is the queue's affair.
func TestNoSeriesSaysThatFailedReconcilesEndedWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "failing", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			return Done(), errors.New("broken")
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		for seen.count() < 6 {
			time.Sleep(time.Second)
		}
		families, err := ctrlmetrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if strings.Contains(family.String(), `"failing"`) {
				t.Errorf("controller-runtime has a series of our controller: %s", family)
			}
		}
		if n := h.value("plimsoll_reconcile_errors_total", "controller=failing", "member=a"); n != 6 {
			t.Errorf("%v errors are counted after six failures", n)
		}
		h.cancel()
	})
}
