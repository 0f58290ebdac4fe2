package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAMemberThatIsThereBeforeTheStartCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c, err := For(h.Runtime, "c", counting(seen)).Register()
		if err != nil {
			t.Fatal(err)
		}
		h.join(c, "without", &corev1.Secret{}) // never gets the kind
		healthy, _ := h.join(c, "healthy", &corev1.ConfigMap{})
		healthy.add(configMap("one"))
		time.Sleep(10 * time.Minute) // controller-runtime gives sources two minutes to sync
		h.wg.Go(func() {
			if err := c.Start(h.ctx); err != nil {
				t.Errorf("the controller ended: %v", err)
			}
		})
		synctest.Wait()
		if got := seen.list(); len(got) != 1 || got[0] != "healthy/one" {
			t.Errorf("reconciled %v, want healthy/one", got)
		}
		h.cancel()
	})
}

func TestADeadlineEndsTheReconcileAndNotTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Object.Name == "slow" {
				<-ctx.Done()
				return Done(), ctx.Err()
			}
			seen.add(req.Member, req.Object.Name)
			return Done(), nil
		})).Deadline(time.Second))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("slow"))
		time.Sleep(time.Minute)
		a.add(configMap("other"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Error("a change in the member was not seen after a deadline had passed there")
		}
		if n := a.kind(&corev1.ConfigMap{}).handlers.Load(); n != 1 {
			t.Errorf("%d handlers in the member, want the one it had", n)
		}
		h.cancel()
	})
}

func TestEverySeriesOfTheFrameworkCarriesItsMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		ours := 0
		for _, s := range h.gather() {
			if strings.HasPrefix(s.name, "plimsoll_") {
				ours++
				if !strings.Contains(s.text, "member=a") {
					t.Errorf("%s does not say which member it is about", s.text)
				}
			}
		}
		if ours == 0 {
			t.Error("there are no series at all")
		}
		h.cancel()
	})
}
