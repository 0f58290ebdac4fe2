package spot

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// shopSet is the key of the ReplicaSet web-1.
var shopSet = ownerKey{"shop", "set-web-1"}

// naming is a pod on spot whose controller reference names the UID of the ReplicaSet web-1.
func naming(namespace, name, apiVersion, kind string) *corev1.Pod {
	pod := running(name, "0", "")
	pod.Namespace, pod.UID = namespace, types.UID(namespace+name)
	pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = apiVersion, kind
	pod.Annotations = map[string]string{annotationShape: capacity.Requirements{CPU: 64_000}.String()}
	pod.Spec.NodeSelector = map[string]string{spottest.SteerKey: string(capacity.Spot)}
	return pod
}

// Whoever may create pods writes the UIDs of their controller references, and the garbage collector leaves those alone whose API
// version is not served.
func TestPodsThatNameTheReplicaSetOfAnotherNamespaceConcernNobody(t *testing.T) {
	for name, before := range map[string]bool{"seen before the ReplicaSet": true, "seen after it": false} {
		for _, reference := range [][2]string{{"apps/v9", kindReplicaSet}, {"apps/v9", KindStatefulSet}, {"example.com/v1", "Thing"}} {
			t.Run(fmt.Sprintf("%s, as %s %s", name, reference[0], reference[1]), func(t *testing.T) {
				s := newShell(t, nil, false)
				foreign := make([]*corev1.Pod, 5)
				seen := func() {
					for i := range foreign {
						foreign[i] = naming("intruder", fmt.Sprint("x-", i), reference[0], reference[1])
						s.cache(foreign[i])
					}
				}
				if before {
					seen()
				}
				s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
				count := capacity.Tally{}
				for n := range 5 {
					count.Add(s.place(incoming(n)).Reservation.Capacity, 1)
				}
				if !before {
					seen()
				}
				o := s.follower.directory.owner(shopSet)
				if n := o.slots.Summary(10, time.Now()).Unexplained; o.slots.Known() != 0 || o.slots.Reservations() != 5 || n != 0 {
					t.Errorf("of the ReplicaSet %d pods are known, %d reservations are live, and %d pods are unexplained", o.slots.Known(), o.slots.Reservations(), n)
				}
				if shape, known := s.follower.directory.shape(o); known {
					t.Errorf("its pods ask for what foreign ones do: %v", shape)
				}
				for n := range 5 {
					count.Add(s.place(incoming(5+n)).Reservation.Capacity, 1)
				}
				if count.Spot != 7 || count.OnDemand != 3 {
					t.Errorf("%d on spot and %d on on-demand, want 7 and 3", count.Spot, count.OnDemand)
				}
				for _, pod := range foreign {
					s.follower.gone(pod)
				}
				if len(s.follower.directory.owners) != 1 || s.follower.directory.owner(shopSet) != o {
					t.Errorf("%d owners are known when the foreign pods are gone", len(s.follower.directory.owners))
				}
			})
		}
	}
}

func TestTheAdmissionOfAPodTakesNoReservationFromTheReplicaSetOfAnotherNamespace(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	first := s.place(incoming(0))
	s.cache(stored("web-1-0", first))
	for n := range 20 {
		foreign := incoming(100 + n)
		foreign.Namespace = "intruder"
		if p := s.place(foreign); p.Outcome != OutcomeUnknown || p.Patch != nil {
			t.Fatalf("a foreign pod: outcome %s, patch %s", p.Outcome, p.Patch)
		}
	}
	o := s.follower.directory.owner(shopSet)
	if o.slots.Reservations() != 0 || o.slots.Held() != 1 {
		t.Errorf("%d reservations are live, %d slots are held", o.slots.Reservations(), o.slots.Held())
	}
	if p := s.place(incoming(1)); p.Reservation.Slot != 1 {
		t.Errorf("the next pod of the ReplicaSet gets slot %d", p.Reservation.Slot)
	}
}

// One read answers all pods of an owner, and not those that only name it.
func TestAReadForAForeignPodAnswersNoPodOfTheReplicaSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t, nil, false, namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
		member := s.members[testMember].cluster.(*apiServer)
		member.reader = interceptor.NewClient(member.reader.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == "intruder" {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		foreign := incoming(100)
		foreign.Namespace = "intruder"
		done := make(chan Placement)
		go func() { done <- s.place(foreign) }()
		synctest.Wait()
		if p := s.place(incoming(0)); p.Outcome != OutcomeOnDemand {
			t.Errorf("a pod of the ReplicaSet: outcome %s, want %s", p.Outcome, OutcomeOnDemand)
		}
		<-done
	})
}

// What a pod says of the kind of its controller may be wrong.
func TestThePodsOfAnOwnerDoNotSayOfWhichKindItIs(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(naming("shop", "web-0", "apps/v1", KindStatefulSet))
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	for n := range 9 {
		s.place(incoming(n))
	}
	if o := s.follower.directory.owner(shopSet); o.slots.Reservations() != 9 || o.slots.Held() != 1 {
		t.Errorf("%d reservations are live beside %d pods: its pods count as ordinals", o.slots.Reservations(), o.slots.Held())
	}
}

func TestAnOwnerThatAPlanObservesFirstHasTheKindThatThePlanKnows(t *testing.T) {
	s := newShell(t, nil, false)
	dir := s.follower.directory
	s.cache(naming("shop", "web-0", "apps/v1", KindStatefulSet), naming("shop", "web-1", "apps/v1", KindStatefulSet))
	if n := dir.ensureOwner(shopSet, kindReplicaSet).slots.Summary(1, time.Now()).Unexplained; n != 1 {
		t.Errorf("%d pods are unexplained of two, where one is wanted", n)
	}
}

func TestTheOrdinalsOfAStatefulSetAreKnownWhateverItsPodsSayOfItsKind(t *testing.T) {
	s := newShell(t, nil, false)
	pod := naming("shop", "db-0", "apps/v9", "Thing")
	pod.OwnerReferences[0].UID = "set-db"
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "set-db", Labels: labelled("true"), Annotations: mixed("50")},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(4))}}
	s.cache(pod, namespace("true", nil), set)
	s.follower.gone(pod)
	request := &PodRequest{RequestUID: "r", Namespace: "shop", Name: "db-0", Owner: OwnerRef{"apps/v1", KindStatefulSet, "db", "set-db"}}
	if p := s.place(request); p.Outcome != OutcomeSpot {
		t.Errorf("its first ordinal was on spot, and comes with outcome %s: %s", p.Outcome, p.Reason)
	}
}

func TestAStatefulSetOfAnotherGroupHasNoOrdinals(t *testing.T) {
	s := newShell(t, func(o *Options) { o.Kinds = []WorkloadKind{workloadKind(t, "apps.kruise.io/v1beta1", KindStatefulSet)} }, false)
	set := configuredObject("apps.kruise.io/v1beta1", KindStatefulSet, 2, mixed("50"))
	pods := []*corev1.Pod{naming("shop", "web-0", "apps.kruise.io/v1beta1", KindStatefulSet), naming("shop", "web-1", "apps.kruise.io/v1beta1", KindStatefulSet)}
	for _, pod := range pods {
		pod.OwnerReferences[0].UID = set.GetUID()
		s.cache(pod)
	}
	s.cache(set)
	if n := s.follower.directory.owner(ownerKey{"shop", set.GetUID()}).slots.Summary(1, time.Now()).Unexplained; n != 1 {
		t.Errorf("%d pods are unexplained of two, where one is wanted", n)
	}
}

// A pod says itself where it was released from.
func TestOrphansOfDifferentNamespacesAreNotOneGroup(t *testing.T) {
	foreign, own := standIn("old", shopSet.uid, "web-1"), standIn("old", shopSet.uid, "web-1")
	foreign.Namespace, foreign.UID = "intruder", "foreign"
	r := newReleases(t, nil, foreign, own)
	found, err := r.member.findOrphans(t.Context(), r.follower.directory, time.Now())
	if err != nil || len(found) != 2 {
		t.Fatalf("%d groups, error %v", len(found), err)
	}
	for key, group := range found {
		if len(group.pods) != 1 || group.namespace != key.namespace {
			t.Errorf("%d pods of %v are evicted in namespace %s", len(group.pods), key, group.namespace)
		}
	}
	r = newReleases(t, nil, namespace("true", nil), deployment(2, "true", nil), replicaSet(2, 2), foreign, own)
	if found, err = r.member.findOrphans(t.Context(), r.follower.directory, time.Now()); err != nil || len(found) != 1 || found[ownerKey{"intruder", shopSet.uid}] == nil {
		t.Errorf("%v are orphans, error %v: the workload of the ReplicaSet has only its own in care", found, err)
	}
}
