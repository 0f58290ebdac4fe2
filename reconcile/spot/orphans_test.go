package spot

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// asking calls asked before each live read of an object.
type asking struct {
	client.Reader
	asked func()
}

func (a asking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	a.asked()
	return a.Reader.Get(ctx, key, obj, options...)
}

// onRead has asked called before each live read of the member.
func (r *releases) onRead(asked func()) {
	r.member.cluster = &site{apiServer{reader: asking{r.client, asked}}, r.client}
}

// strayIn is a pod of a namespace that was released from a ReplicaSet which is not there.
func strayIn(namespace, name string) *corev1.Pod {
	pod := standIn(name, types.UID("gone-"+name), "gone")
	pod.Namespace = namespace
	return pod
}

// Whoever writes pods in another namespace may write the UID of any ReplicaSet.
func TestAReleasedPodIsNotLookedForInTheNamespaceOfAForgedOne(t *testing.T) {
	forged := standIn("forged", "set-web-1", "web-1")
	forged.Namespace = "aaa" // listed first
	d, set := deployment(0, "", nil), counted(0)
	r := newReleases(t, nil, namespace("true", nil), d, set, forged, standIn("old", set.UID, set.Name))
	r.follower.gone(d)
	r.round(t, nil)
	slices.Sort(r.evictedFrom)
	if want := []string{"aaa/forged", "shop/old"}; !slices.Equal(r.evictedFrom, want) {
		t.Errorf("evicted %v, want %v", r.evictedFrom, want)
	}
}

func TestReleasedPodsThatAreGoingCostNoReads(t *testing.T) {
	objects := []client.Object{namespace("true", nil)}
	for i := range 100 {
		going := strayIn("shop", fmt.Sprint("held-", i))
		going.Finalizers, going.DeletionTimestamp = []string{"example.com/hold"}, new(metav1.NewTime(time.Now().Add(-time.Hour)))
		objects = append(objects, going)
	}
	r, reads := newReleases(t, nil, append(objects, strayIn("shop", "old"))...), 0
	r.onRead(func() { reads++ })
	if r.round(t, nil); reads > 2 || !slices.Equal(r.evicted, []string{"old"}) {
		t.Errorf("%d live reads, evicted %v", reads, r.evicted)
	}
}

// In each round each namespace has its turn, and in the end each of its pods.
func TestOrphansOfManyReplicaSetsAreTakenAwayByTurns(t *testing.T) {
	const stray = 200
	objects := []client.Object{namespace("true", nil), strayIn("shop", "old")}
	for i := range stray {
		objects = append(objects, strayIn("greedy", fmt.Sprint("stray-", i)))
	}
	r := newReleases(t, nil, objects...) // in which what was evicted stays
	for range (stray + orphanGroups) / (orphanGroups - 1) {
		before := len(r.evicted)
		if r.round(t, nil); len(r.evicted)-before > orphanGroups {
			t.Errorf("one round evicts %d pods", len(r.evicted)-before)
		}
		if !slices.Contains(r.evicted, "old") {
			t.Fatalf("the first round leaves out a namespace: %v", r.evicted)
		}
	}
	slices.Sort(r.evicted)
	if all := slices.Compact(r.evicted); len(all) != stray+1 {
		t.Errorf("%d of %d pods had their turn", len(all), stray+1)
	}
}

func TestOrphansOfManyNamespacesAreTakenAwayByTurns(t *testing.T) {
	all, turns, had := map[ownerKey]*orphans{}, orphanTurns{}, map[string]int{}
	for i := range 100 {
		namespace := fmt.Sprint("n", i)
		all[ownerKey{namespace, "gone"}] = &orphans{namespace: namespace}
	}
	for range 10 {
		for _, group := range turns.next(all, 30) {
			had[group.namespace]++
		}
	}
	for namespace, n := range had {
		if n != 3 {
			t.Errorf("namespace %s has its turn %d times, want 3", namespace, n)
		}
	}
	if len(had) != 100 {
		t.Errorf("%d namespaces had their turn", len(had))
	}
	turns.next(map[ownerKey]*orphans{}, 30)
	if len(turns.owners) > 0 {
		t.Errorf("namespaces without orphans are remembered: %v", turns.owners)
	}
}

func TestProbesDoNotWaitForOrphans(t *testing.T) {
	r := newReleases(t, nil, namespace("true", nil), strayIn("shop", "old"))
	dir, now := r.follower.directory, time.Now()
	key, observed := dryWorkload(dir, time.Hour, now)
	dir.observeDrought(key, &observed, plan.Settings{PendingTimeout: time.Minute}, now)
	r.member.directory.Store(dir)
	free := func(string) (string, bool) { return "", false }
	r.held.Store(&free)
	reads := 0
	r.onRead(func() {
		var probes corev1.PodList
		if err := r.client.List(t.Context(), &probes, client.InNamespace(r.member.probeNamespace())); err != nil || len(probes.Items) != 1 {
			t.Errorf("%d probes are there when orphans are looked after, error %v", len(probes.Items), err)
		}
		reads++
	})
	if _, err := r.member.tendOnce(t.Context(), dir, now); err != nil || reads == 0 || !slices.Equal(r.evicted, []string{"old"}) {
		t.Errorf("%d reads, evicted %v, error %v", reads, r.evicted, err)
	}
}
