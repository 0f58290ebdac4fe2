package reconcile

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAReconcileThatDoesNotReturnIsCountedAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		leave := make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Object.Name == "deaf" {
				<-leave // whatever the deadline says
			}
			return Done(), nil
		})).Deadline(5*time.Second))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("deaf"))
		time.Sleep(14 * time.Second)
		if n := h.value("plimsoll_reconcile_stuck", "member=a"); n != 0 || len(h.log.at(slog.LevelError)) != 0 {
			t.Errorf("%v are stuck, and the log says %v, within the grace", n, h.log.at(slog.LevelError))
		}
		time.Sleep(2 * time.Second)
		a.add(configMap("other")) // is not kept by it
		synctest.Wait()
		if r, _ := h.Lookup(keyOf("c", "a", "other")); r.LastOutcome != OutcomeDone {
			t.Errorf("another key: %+v", r)
		}
		lines := h.log.at(slog.LevelError)
		if n := h.value("plimsoll_reconcile_stuck", "member=a"); n != 1 || len(lines) != 1 {
			t.Fatalf("%v are stuck, and the log says %v", n, lines)
		}
		for key, want := range map[string]string{"controller": "c", "member": "a", "namespace": "default", "name": "deaf", "age": "15s"} {
			if got := lines[0].attrs[key]; got != want {
				t.Errorf("the log says %s=%q, want %q", key, got, want)
			}
		}
		time.Sleep(stuckReminder)
		if n := len(h.log.at(slog.LevelError)); n != 2 {
			t.Errorf("%d lines after five more minutes, want a second", n)
		}
		close(leave)
		time.Sleep(time.Hour)
		if n := h.value("plimsoll_reconcile_stuck", "member=a"); n != 0 || len(h.log.at(slog.LevelError)) != 2 {
			t.Errorf("%v are stuck after it returned, and the log has %d lines", n, len(h.log.at(slog.LevelError)))
		}
		h.cancel()
	})
}
