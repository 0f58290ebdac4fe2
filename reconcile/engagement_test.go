package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func TestAMissingKindJoinsLaterWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Uses(kindOf(&appsv1.Deployment{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		whole, _ := h.join(c, "whole", &corev1.ConfigMap{}, &appsv1.Deployment{})
		a.add(configMap("one"))
		whole.add(configMap("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"whole/one"}, seen.list()); diff != "" {
			t.Fatal(diff)
		}
		a.install(&appsv1.Deployment{})
		for range 3 { // as often as anything changes about the member
			h.engage(h.ctx, c, "a", a)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"whole/one", "a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		if n := a.handlers(&corev1.ConfigMap{}); n != 1 {
			t.Errorf("%d handlers after engaging three times, want 1", n)
		}
		h.cancel()
	})
}

func TestAKindThatGoesEndsTheEngagementUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Uses(kindOf(&appsv1.Deployment{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{})
		a.add(configMap("one"))
		synctest.Wait()
		a.uninstall(&appsv1.Deployment{})
		synctest.Wait()
		if len(c.Members()) != 0 || a.handlers(&corev1.ConfigMap{}) != 0 {
			t.Errorf("members %v, %d handlers: want no trace", c.Members(), a.handlers(&corev1.ConfigMap{}))
		}
		for r := range h.Records("") {
			t.Errorf("%+v is still in the ledger", r)
		}
		before := seen.count()
		time.Sleep(time.Hour)
		if seen.count() != before {
			t.Error("reconciled over stale data")
		}
		a.install(&appsv1.Deployment{})
		h.engage(h.ctx, c, "a", a)
		synctest.Wait()
		if seen.count() != before+1 {
			t.Errorf("%d reconciles since the kind is back, want 1", seen.count()-before)
		}
		h.cancel()
	})
}

func TestAKindThatIsBackBeforeAnybodyNoticedItsLossIsFollowedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		synctest.Wait()
		a.uninstall(&corev1.ConfigMap{})
		a.install(&corev1.ConfigMap{})
		h.engage(h.ctx, c, "a", a)
		a.add(configMap("one"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", seen.count())
		}
		h.cancel()
	})
}

func TestAnOptionalKindComesAndGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Owns(clusters.Kind{Object: &appsv1.Deployment{}, Optional: true}))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("owner"))
		synctest.Wait()
		child := deployment("child")
		child.OwnerReferences = ownedBy("v1", "ConfigMap", "owner", ptrTo(true))
		for round := 1; round <= 2; round++ {
			a.install(&appsv1.Deployment{})
			h.engage(h.ctx, c, "a", a)
			synctest.Wait()
			a.add(child)
			synctest.Wait()
			if n := seen.count(); n != 1+round {
				t.Errorf("round %d: %d reconciles, want %d", round, n, 1+round)
			}
			a.uninstall(&appsv1.Deployment{})
			synctest.Wait()
			if diff := cmp.Diff([]string{"a"}, c.Members()); diff != "" {
				t.Errorf("round %d: %s", round, diff)
			}
		}
		h.cancel()
	})
}

func TestAMemberThatLeavesCancelsWhatRunsAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		ended, proceed := make(chan error, 1), make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Object.Name == "slow" {
				<-ctx.Done()
				ended <- ctx.Err()
				<-proceed
			}
			return Done(), ctx.Err()
		})))
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		b, _ := h.join(c, "b", &corev1.ConfigMap{})
		a.add(configMap("slow"))
		a.add(configMap("fast"))
		b.add(configMap("fast"))
		synctest.Wait()
		leave()
		synctest.Wait()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the reconcile in flight ended with %v", err)
		}
		close(proceed)
		synctest.Wait()
		for r := range h.Records("a") {
			t.Errorf("%+v is left", r)
		}
		if series := h.series("member=a"); len(series) > 0 {
			t.Errorf("series left: %v", series)
		}
		if series := h.series("member=b"); len(series) == 0 {
			t.Error("the series of another member are gone")
		}
		if lines := h.log.at(levelError); len(lines) > 0 {
			t.Errorf("a member that leaves is no failure: %v", lines)
		}
		if diff := cmp.Diff([]string{"b"}, c.Members()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAReplacedMemberIsListedAnewAndItsOldInstanceIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		old, _ := h.join(c, "a", &corev1.ConfigMap{})
		old.add(configMap("one"))
		synctest.Wait()
		fresh, _ := h.join(c, "a", &corev1.ConfigMap{})
		synctest.Wait()
		fresh.add(configMap("two"))
		old.add(configMap("three"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one", "a/two"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		var names []string
		for r := range h.Records("a") {
			names = append(names, r.Key.Name)
		}
		if diff := cmp.Diff([]string{"two"}, names); diff != "" {
			t.Error(diff)
		}
		if n := old.handlers(&corev1.ConfigMap{}); n != 0 {
			t.Errorf("%d handlers left in the old instance", n)
		}
		h.cancel()
	})
}

func TestAPlainClusterHasEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		cl := newFakeCluster(h.ctx, &corev1.ConfigMap{})
		h.engage(h.ctx, c, "plain", struct{ cluster.Cluster }{cl})
		cl.add(configMap("one"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", seen.count())
		}
		h.cancel()
	})
}
