package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTheVersionOfAMemberIsAnotherWheneverItsRecordsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		step := make(chan error)
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			return Done(), <-step
		})))
		if h.Version("a") != 0 {
			t.Error("a member that is not known has a version")
		}
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		h.join(c, "b", &corev1.ConfigMap{})
		synctest.Wait()
		last, other := h.Version("a"), h.Version("b")
		changed := func(what string) {
			t.Helper()
			synctest.Wait()
			if now := h.Version("a"); now == last {
				t.Errorf("%s: the version stays %d", what, now)
			} else {
				last = now
			}
		}
		a.add(configMap("one"))
		changed("a key comes and runs")
		step <- errors.New("broken")
		changed("it fails and waits")
		time.Sleep(10 * time.Second)
		changed("it runs again")
		step <- nil
		changed("it is done")
		h.Hold("a", HoldBreaker, "does not answer")
		changed("a hold applies")
		if _, err := h.Requeue(keyOf("c", "a", "one")); err != nil {
			t.Fatal(err)
		}
		changed("it is ordered and held")
		h.Release("a", HoldBreaker)
		changed("it runs")
		step <- nil
		synctest.Wait()
		last = h.Version("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		if now := h.Version("a"); now != last {
			t.Errorf("nothing happened, and the version went from %d to %d", last, now)
		}
		leave()
		changed("the member leaves")
		if h.Version("b") != other {
			t.Error("the version of another member is another")
		}
		close(step)
		h.cancel()
	})
}
