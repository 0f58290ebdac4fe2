package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hungMember has kinds whose informers never come.
type hungMember struct{ *fakeCluster }

func (m hungMember) GetCache() cache.Cache { return hungCache{} }

type hungCache struct{ cache.Cache }

func (hungCache) GetInformer(ctx context.Context, _ client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAMemberWhoseInformersHangBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		hung := hungMember{newFakeCluster(h.ctx, &corev1.ConfigMap{})}
		h.engage(h.ctx, c, "hung", hung)
		h.engage(h.ctx, c, "hung", hung)
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

// lateMember has a reconciled kind whose informer comes late.
type lateMember struct {
	*fakeCluster
	release chan struct{}
}

func (m lateMember) GetCache() cache.Cache {
	return lateCache{fakeCache{cluster: m.fakeCluster}, m.release}
}

type lateCache struct {
	fakeCache
	release chan struct{}
}

func (c lateCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := obj.(*corev1.ConfigMap); ok {
		<-c.release
	}
	return c.fakeCache.GetInformer(ctx, obj, opts...)
}

func TestAStandbyKeepsNoKeysOfObjectsThatDoNotExistWhicheverKindComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		h.holdAll(HoldOwnership, "standby")
		c := launch(h, For(h.Runtime, "c", counting(&calls{})).Owns(kindOf(&appsv1.Deployment{})))
		late := lateMember{newFakeCluster(h.ctx), make(chan struct{})}
		left, kept := deployment("left"), deployment("kept")
		left.OwnerReferences = ownedBy("v1", "ConfigMap", "gone", ptrTo(true))
		kept.OwnerReferences = ownedBy("v1", "ConfigMap", "there", ptrTo(true))
		late.install(&appsv1.Deployment{}, left, kept)
		late.install(&corev1.ConfigMap{}, configMap("there"))
		h.engage(h.ctx, c, "a", late)
		synctest.Wait()
		close(late.release)
		synctest.Wait()
		var names []string
		for r := range h.Records("a") {
			names = append(names, r.Key.Name)
		}
		if diff := cmp.Diff([]string{"there"}, names); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAMemberWhoseReconcilesHangCostsTheOthersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1, Deadline: time.Hour, Workers: 30}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Member == "hung" {
				<-ctx.Done()
				return Done(), ctx.Err()
			}
			seen.add(req.Member, req.Object.Name)
			return Done(), nil
		})))
		hung, _ := h.join(c, "hung", &corev1.ConfigMap{})
		for i := range 100 {
			hung.add(configMap(fmt.Sprint(i)))
		}
		synctest.Wait()
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		for i := range 100 {
			a.add(configMap(fmt.Sprint(i)))
		}
		synctest.Wait() // no time passes
		if n := seen.count(); n != 100 {
			t.Errorf("%d reconciles of the healthy member, want 100", n)
		}
		if n := h.value("plimsoll_reconciles_running", "member=hung"); n != defaultWorkers {
			t.Errorf("the hung member holds %v workers, want %d", n, defaultWorkers)
		}
		h.cancel()
	})
}

func TestAStandbyFillsItsQueueAndRunsNothingUntilItsGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		h.holdAll(HoldOwnership, "owned by hub-1")
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		a.add(configMap("two"))
		time.Sleep(time.Hour)
		a.remove(configMap("two"))
		synctest.Wait()
		var records []Record
		for r := range h.Records("") {
			records = append(records, r)
		}
		if len(records) != 1 || records[0].State != StateHeld || records[0].Reason != "owned by hub-1" || seen.count() != 0 {
			t.Fatalf("records %+v, %d reconciles", records, seen.count())
		}
		if n := h.value("plimsoll_queue_depth", "controller=c", "member=a"); n != 1 {
			t.Errorf("depth %v, want 1", n)
		}
		h.releaseAll(HoldOwnership)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		if err := h.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if n := h.value("plimsoll_queue_wait_seconds", "member=a"); n > 1 {
			t.Errorf("a held key counts as having waited %v s for a worker", n)
		}
		h.cancel()
	})
}

func TestAReplicaThatStopsEndsItsEngagements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := newFakeCluster(ctx, &corev1.ConfigMap{})
		h.engage(ctx, c, "a", a)
		synctest.Wait()
		h.stop()
		synctest.Wait()
		if n := a.handlers(&corev1.ConfigMap{}); n != 0 {
			t.Errorf("%d handlers are left", n)
		}
		h.engage(ctx, c, "a", a)
		if len(c.Members()) != 0 {
			t.Error("engaged after it stopped")
		}
	})
}

func TestMembersThatHangLeaveWorkersForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Workers: 128, Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Member != "healthy" {
				<-ctx.Done() // does not answer
				return Done(), ctx.Err()
			}
			seen.add(req.Member, req.Object.Name)
			return Done(), nil
		})))
		for i := range 60 {
			cl, _ := h.join(c, fmt.Sprintf("hung-%d", i), &corev1.ConfigMap{})
			for k := range 5 {
				cl.add(configMap(fmt.Sprintf("k%d", k)))
			}
		}
		synctest.Wait()
		cl, _ := h.join(c, "healthy", &corev1.ConfigMap{})
		for k := range 3 {
			cl.add(configMap(fmt.Sprintf("k%d", k)))
		}
		synctest.Wait()
		if seen.count() != 3 {
			t.Errorf("%d of 3 keys of the healthy member were reconciled while 60 members hang", seen.count())
		}
		h.cancel()
	})
}
