package spot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// running is a pod of web-1 that runs on a node and serves; slot empty: it has none.
func running(name, slot, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "5", Labels: map[string]string{"app": "web", plan.TemplateHash: "abc"},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1", Controller: new(true)}}},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if slot != "" {
		p.Labels[spottest.DefaultKeys.Slot()] = slot
	}
	return p
}

// indexed is a client of the objects with the indexes of a member's cache.
func indexed(funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, podOwnerIndex, ownerOfPod(spottest.DefaultKeys)).WithIndex(&corev1.Pod{}, releasedIndex, releasedPod(spottest.DefaultKeys)).
		WithIndex(&appsv1.ReplicaSet{}, object.ControllerIndex, object.ControllerUID).Build()
}

// counted is the ReplicaSet web-1 whose controller counts so many pods.
func counted(replicas int32) *appsv1.ReplicaSet {
	set := replicaSet(replicas, replicas)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Status.Replicas = replicas
	return set
}

// listed reads pods from a client that has the indexes of a member's cache.
func listed(cache client.Reader) podsOf {
	return func(ctx context.Context, namespace string, owner types.UID) ([]any, error) {
		var list corev1.PodList
		err := cache.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{podOwnerIndex: string(owner)})
		pods := make([]any, len(list.Items))
		for i := range list.Items {
			pods[i] = &list.Items[i]
		}
		return pods, err
	}
}

// webOf is the Deployment web, as it is reconciled.
func webOf(set *appsv1.ReplicaSet, cache client.Client, live client.Reader) *subject {
	return &subject{member: testMember, key: policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
		meta: &metav1.ObjectMeta{}, replicas: replicasOf(set.Spec.Replicas), sources: []source{replicaSetSource(set)}, client: cache, pods: listed(cache), live: live, events: noEvents{}}
}

func spotAndOnDemandNodes() []client.Object {
	node := func(name, capacityType string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{spottest.SteerKey: capacityType}}}
	}
	return []client.Object{node("node-od", "on-demand"), node("node-spot", "spot")}
}

// The on-demand node became unreachable and its pods hang; their replacements came while no hub answered, on spot.
func TestPodsThatHangInTerminatingHideNoneWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cached, live []client.Object
		for i := range 5 {
			hanging := running(fmt.Sprintf("gone-%d", i), fmt.Sprint(i), "node-od")
			hanging.DeletionTimestamp, hanging.Finalizers = new(metav1.NewTime(time.Now().Add(-30*time.Minute))), []string{"example.com/hangs"}
			cached = append(cached, hanging, running(fmt.Sprintf("spot-%d", i), fmt.Sprint(i+5), "node-spot"))
			live = append(live, running(fmt.Sprintf("slipped-%d", i), "", "node-spot"))
		}
		s := newShell(t, nil, false)
		s.cache(spotAndOnDemandNodes()...)
		set := counted(10) // its controller does not count those that are being deleted
		s.cache(namespace("true", nil), deployment(10, "true", spottest.Annotations("spot-percentage", "50", "min-on-demand", "5")), set)
		sub := webOf(set, indexed(interceptor.Funcs{}, cached...), indexed(interceptor.Funcs{}, append(live, cached...)...))
		var r plan.Result
		for range 2 {
			o, recheck, err := s.observeSubject(t.Context(), s.follower.directory, sub, plantest.DefaultSettings)
			if err != nil {
				t.Fatal(err)
			}
			r = plan.Plan(o, spottest.PolicyOf(50, 5), plantest.DefaultSettings, time.Now())
			time.Sleep(time.Until(recheck))
		}
		slipped := 0
		for _, assignment := range r.Assignments {
			if strings.HasPrefix(assignment.Name, "slipped") {
				slipped++
			}
		}
		if slipped != 5 || r.SpotActual != 10 {
			t.Errorf("%d of 5 pods without a slot get one, %d of 10 are seen: %s: %s", slipped, r.SpotActual, r.State, r.Reason)
		}
	})
}

// In read-only mode pods keep having no slot; so do those that a policy lets nobody label.
func TestPodsThatGetNoSlotAreListedLessAndLessOftenAndRememberedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live []client.Object
		for i := range 10 {
			live = append(live, running(fmt.Sprintf("web-1-%d", i), "", "node-spot"))
		}
		lists := 0
		apiServer := indexed(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		}}, live...)
		s := newShell(t, nil, false)
		s.cache(spotAndOnDemandNodes()...)
		set := counted(10)
		s.cache(namespace("true", nil), deployment(10, "true", mixed("50")), set)
		sub := webOf(set, indexed(interceptor.Funcs{}), apiServer)
		settings := plantest.DefaultSettings
		settings.ReadOnly = true
		began := time.Now()
		for time.Since(began) < time.Hour {
			o, _, err := s.observeSubject(t.Context(), s.follower.directory, sub, settings)
			if err != nil {
				t.Fatal(err)
			}
			if r := plan.Plan(o, spottest.PolicyOf(50, 1), settings, time.Now()); lists > 0 && (r.SpotActual != 10 || r.State != plan.StateReadOnly) {
				t.Fatalf("after %s the plan sees %d of 10 pods: %s: %s", time.Since(began), r.SpotActual, r.State, r.Reason)
			}
			time.Sleep(10 * time.Second)
		}
		if lists < 3 || lists > 8 {
			t.Errorf("%d live lists in an hour", lists)
		}
		before := lists
		set.Status.Replicas = 11 // something happened
		sub.sources = []source{replicaSetSource(set)}
		for range 2 {
			if _, _, err := s.observeSubject(t.Context(), s.follower.directory, sub, settings); err != nil {
				t.Fatal(err)
			}
			time.Sleep(plan.SearchPatience)
		}
		if lists != before+1 {
			t.Errorf("%d live lists after a change", lists-before)
		}
	})
}

// Its controller counts pods that no list shows, so nothing is remembered of them. That is no reason to list them for ever.
func TestPodsWithoutASlotThatNoListShowsAreListedLessAndLessOftenAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		apiServer := indexed(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists++
			return nil
		}})
		s := newShell(t, nil, false)
		set := counted(10)
		s.cache(namespace("true", nil), deployment(10, "true", mixed("50")), set)
		sub := webOf(set, indexed(interceptor.Funcs{}), apiServer)
		settings := plantest.DefaultSettings
		settings.ReadOnly = true
		for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(10 * time.Second) {
			if _, _, err := s.observeSubject(t.Context(), s.follower.directory, sub, settings); err != nil {
				t.Fatal(err)
			}
		}
		if lists < 3 || lists > 8 {
			t.Errorf("%d live lists in an hour", lists)
		}
	})
}

func TestWhatIsRememberedOfPodsWithoutASlotFollowsTheirNodes(t *testing.T) {
	s := newShell(t, nil, false)
	dir := s.follower.directory
	o := dir.ensureOwner(ownerKey{"shop", "set-web-1"}, kindReplicaSet)
	pod := s.podFacts(dir, running("web-1-0", "", "node-spot"))
	o.keepFound([]plan.Pod{pod}, spottest.Epoch)
	nodes := spotAndOnDemandNodes()
	s.cache(nodes...)
	if pods := s.remembered(dir, o); len(pods) != 1 || pods[0].Capacity != capacity.Spot || pods[0].Interruption != nil {
		t.Errorf("%+v", pods)
	}
	s.follower.gone(nodes[1])
	if pods := s.remembered(dir, o); pods[0].Interruption == nil {
		t.Error("its node is gone, and nobody knows")
	}
	if pods := plan.WithoutKnown(s.remembered(dir, o), []plan.Pod{{UID: pod.UID}}); len(pods) != 0 {
		t.Error("a pod that got its slot is there twice")
	}
}

func TestPodsWithoutASlotAreSearchedAnewWhenOneOfThemIsGone(t *testing.T) {
	s := newShell(t, nil, false)
	dir := s.follower.directory
	o := dir.ensureOwner(ownerKey{"shop", "set-web-1"}, kindReplicaSet)
	set := counted(1)
	search := func(at time.Time) bool { found, _ := o.wantsSearch(1, 0, at); return found }
	if search(spottest.Epoch); !search(spottest.Epoch.Add(plan.SearchPatience)) {
		t.Fatal("no search")
	}
	at := spottest.Epoch.Add(2 * plan.SearchPatience)
	o.keepFound([]plan.Pod{{UID: "gone"}}, at)
	w := newWriting(func(string) error { return notFound }, succeed)
	decided := plan.Result{Assignments: []plan.Assignment{{Pod: "gone", Name: "web-1-0"}}}
	if _, err := s.act(t.Context(), dir, webOf(set, w, w), &decided, at); err != nil || decided.Recheck.IsZero() {
		t.Errorf("next plan %s, error %v", decided.Recheck, err)
	}
	if !search(at.Add(plan.SearchPatience)) || len(s.remembered(dir, o)) != 0 {
		t.Error("what is gone is remembered")
	}
}

// No budget counts what is remembered of them, and whoever may create ReplicaSets says how many owners there are.
func TestOwnersShareTheRoomForPodsWithoutASlot(t *testing.T) {
	s := newShell(t, nil, false)
	dir := s.follower.directory
	first, second := dir.ensureOwner(ownerKey{"shop", "first"}, kindReplicaSet), dir.ensureOwner(ownerKey{"shop", "second"}, kindReplicaSet)
	first.keepFound(make([]plan.Pod, maxFound/2), spottest.Epoch)
	if room := dir.roomForFound(first); room != maxFound {
		t.Errorf("an owner has room for %d, beside nobody else", room)
	}
	if room := dir.roomForFound(second); room != maxFound-maxFound/2 {
		t.Errorf("beside one that has half of it, another has room for %d", room)
	}
	second.keepFound(make([]plan.Pod, maxFound-maxFound/2), spottest.Epoch)
	pods := make([]client.Object, 2*leastFound)
	for i := range pods {
		pods[i] = running(fmt.Sprint("web-1-", i), "", "node-spot")
	}
	set := counted(int32(len(pods)))
	cache := indexed(interceptor.Funcs{}, append(pods, set)...)
	of, src := webOf(set, cache, cache), replicaSetSource(set)
	for _, at := range []time.Time{spottest.Epoch, spottest.Epoch.Add(2 * plan.SearchPatience)} {
		found, _, err := s.unlabelled(t.Context(), dir, of, src, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		if at != spottest.Epoch && len(found) != leastFound {
			t.Errorf("where nothing is left, another has %d of its %d pods", len(found), len(pods))
		}
	}
}
