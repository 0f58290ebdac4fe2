package spot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const testMember = "prod-eu"

// shell is an engine with one member whose cache is what the test says.
type shell struct {
	*Engine
	follower *follower
	reads    atomic.Int32
}

// apiServer is a Cluster of which only the live reader works.
type apiServer struct {
	cluster.Cluster
	reader client.Reader
}

func (s *apiServer) Live() client.Reader                         { return s.reader }
func (s *apiServer) Watch(client.Object) (<-chan struct{}, bool) { return nil, false }
func (s *apiServer) ByIndex(context.Context, client.Object, string, string, string) ([]any, error) {
	return nil, errors.New("nothing is cached")
}

// newShell creates an engine whose member has the live objects; hang makes every live read wait for its context.
func newShell(t *testing.T, change func(*Options), hang bool, live ...client.Object) *shell {
	t.Helper()
	keys, err := policy.NewKeys("")
	if err != nil {
		t.Fatal(err)
	}
	capacityType, err := capacity.NewLabels()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Keys: keys, Capacity: capacityType, Settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second}}
	if change != nil {
		change(&o)
	}
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{Engine: e}
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(live...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			s.reads.Add(1)
			if hang {
				<-ctx.Done()
				return ctx.Err()
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	m := newMember(e, testMember, &apiServer{reader: reader})
	s.follower = &follower{member: m, directory: newDirectory(e.options.Keys, e.options.Defaults, e.options.Namespaces)}
	s.follower.directory.kinds = e.kinds
	s.follower.directory.nodes.Census.Begin(e.options.Capacity, m.steerBy, m.steered)
	m.publish(s.follower.directory)
	e.members[testMember] = m
	return s
}

func (s *shell) cache(objects ...client.Object) {
	for _, obj := range objects {
		s.follower.seen(obj)
	}
}

func (s *shell) place(pod *PodRequest) Placement {
	return s.Place(context.Background(), testMember, pod)
}

func namespace(enabled string, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labelled(enabled), Annotations: annotations}}
}

func labelled(enabled string) map[string]string {
	if enabled == "" {
		return nil
	}
	return map[string]string{"plimsoll.dev/enabled": enabled}
}

func deployment(replicas int32, enabled string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment-web", Labels: labelled(enabled), Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

func replicaSet(replicas, desired int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "set-web-1",
			Annotations:     map[string]string{annotationDesiredReplicas: fmt.Sprint(desired)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: KindDeployment, Name: "web", UID: "deployment-web", Controller: new(true)}}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
	}
}

func incoming(n int) *PodRequest {
	return &PodRequest{RequestUID: fmt.Sprintf("request-%d", n), Namespace: "shop", Incoming: admission.Incoming{ReplicaSet: true},
		Owner: OwnerRef{APIVersion: "apps/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1"}}
}

func mixed(percentage string) map[string]string {
	return map[string]string{"plimsoll.dev/spot-percentage": percentage, "plimsoll.dev/min-on-demand": "1"}
}

// stored is the pod that the API server makes of a placement.
func stored(name string, p Placement) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "10",
		Labels:          map[string]string{"plimsoll.dev/slot": fmt.Sprint(p.Reservation.Slot)},
		Annotations:     map[string]string{"plimsoll.dev/reservation": p.Reservation.ID},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1", Controller: new(true)}},
	}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"karpenter.sh/capacity-type": string(p.Reservation.Capacity)}}}
}

func TestABurstOfPodsThatTheCacheDoesNotShowHasTheExactMix(t *testing.T) {
	s := newShell(t, nil, false, namespace("true", nil), deployment(100, "true", mixed("70")), replicaSet(100, 100))
	var wg sync.WaitGroup
	var spot, onDemand atomic.Int32
	for n := range 100 {
		wg.Go(func() {
			switch s.place(incoming(n)).Outcome {
			case OutcomeSpot:
				spot.Add(1)
			case OutcomeOnDemand:
				onDemand.Add(1)
			}
		})
	}
	wg.Wait()
	if spot.Load() != 70 || onDemand.Load() != 30 {
		t.Errorf("%d on spot and %d on on-demand, want 70 and 30", spot.Load(), onDemand.Load())
	}
	if reads := s.reads.Load(); reads > 3 {
		t.Errorf("%d live reads for one owner, want one of its namespace, ReplicaSet and Deployment each", reads)
	}
}

func TestAnOwnerTheCacheKnowsCostsNoRead(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	if p := s.place(incoming(1)); p.Outcome != OutcomeOnDemand || s.reads.Load() != 0 {
		t.Errorf("outcome %s after %d reads, want %s after none", p.Outcome, s.reads.Load(), OutcomeOnDemand)
	}
}

// The watches of a member are independent: that of namespaces may be later than those of workloads.
func TestANamespaceThatTheCacheDoesNotShowYetIsReadLive(t *testing.T) {
	s := newShell(t, nil, false, namespace("true", mixed("0")))
	s.cache(deployment(10, "true", nil), replicaSet(10, 10))
	for n := range 10 {
		if p := s.place(incoming(n)); p.Outcome != OutcomeOnDemand {
			t.Errorf("pod %d: outcome %s, want %s", n, p.Outcome, OutcomeOnDemand)
		}
	}
	if reads := s.reads.Load(); reads != 1 {
		t.Errorf("%d live reads, want one of the namespace", reads)
	}
}

func TestPodsAreLetThroughWhileTheirOwnerCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t, nil, true)
		start := time.Now()
		if p := s.place(incoming(1)); p.Outcome != OutcomeUnknown || p.Patch != nil {
			t.Errorf("outcome %s, patch %s, want %s and none", p.Outcome, p.Patch, OutcomeUnknown)
		}
		if took := time.Since(start); took != liveReadTimeout {
			t.Errorf("answered after %s, want the live read's %s", took, liveReadTimeout)
		}
	})
}

// Trap 24: whatever half of the labels and annotations is missing, webhook and controller agree to do nothing.
func TestOnlyExactlyEnabledWorkloadsInEnabledNamespacesArePlaced(t *testing.T) {
	for _, test := range []struct{ namespace, workload string }{{"true", "TRUE"}, {"true", ""}, {"", "true"}, {"True", "true"}, {"true", "yes"}} {
		for _, cached := range []bool{true, false} {
			objects := []client.Object{namespace(test.namespace, nil), deployment(10, test.workload, mixed("70")), replicaSet(10, 10)}
			s := newShell(t, nil, false, objects...)
			if cached {
				s.cache(objects...)
			}
			if p := s.place(incoming(1)); p.Outcome != OutcomeNotEnabled || p.Patch != nil {
				t.Errorf("namespace %q, workload %q, cached %t: outcome %s, patch %s", test.namespace, test.workload, cached, p.Outcome, p.Patch)
			}
		}
	}
}

func TestAWorkloadThatIsEnabledLaterIsPlacedThen(t *testing.T) {
	s := newShell(t, nil, false, namespace("true", nil), deployment(10, "", mixed("70")), replicaSet(10, 10))
	if p := s.place(incoming(1)); p.Outcome != OutcomeNotEnabled {
		t.Fatalf("outcome %s before it is enabled", p.Outcome)
	}
	s.cache(deployment(10, "true", mixed("70")))
	if p := s.place(incoming(2)); p.Outcome != OutcomeOnDemand {
		t.Errorf("outcome %s after it is enabled, want %s", p.Outcome, OutcomeOnDemand)
	}
}

func TestAnInvalidPolicySendsNewPodsOnDemand(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("170")), replicaSet(10, 10))
	for n := range 10 {
		if p := s.place(incoming(n)); p.Outcome != OutcomeOnDemand {
			t.Fatalf("pod %d: outcome %s, want %s", n, p.Outcome, OutcomeOnDemand)
		}
	}
}

func TestNamespaceAnnotationsCountWhereTheWorkloadSaysNothing(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", mixed("100")), deployment(2, "true", nil), replicaSet(2, 2))
	first, second := s.place(incoming(1)), s.place(incoming(2))
	if first.Outcome != OutcomeOnDemand || second.Outcome != OutcomeSpot {
		t.Errorf("outcomes %s and %s, want %s for the floor and then %s", first.Outcome, second.Outcome, OutcomeOnDemand, OutcomeSpot)
	}
}

func TestADeploymentThatWasScaledIsBelievedBeforeItsReplicaSet(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("50")), replicaSet(10, 10))
	for n := range 10 {
		s.cache(stored(fmt.Sprint("web-1-", n), s.place(incoming(n))))
	}
	s.cache(deployment(20, "true", mixed("50")))
	spot := 0
	for n := range 10 {
		if s.place(incoming(10+n)).Outcome == OutcomeSpot {
			spot++
		}
	}
	if spot != 5 {
		t.Errorf("%d of 10 further replicas on spot, want 5", spot)
	}
}

func TestNewsOfTheOwnerEndTheWaitOfAnAdmissionInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t, nil, false)
		s.cache(namespace("true", nil), deployment(1, "true", mixed("100")), replicaSet(1, 1))
		s.cache(stored("web-1-0", s.place(incoming(0))))
		answer := make(chan Placement, 1)
		start := time.Now()
		go func() { answer <- s.place(incoming(1)) }()
		time.Sleep(doubtTimeout / 5)
		s.cache(replicaSet(2, 2))
		if p := <-answer; p.Outcome != OutcomeSpot || p.Reservation.Slot != 1 {
			t.Errorf("outcome %s in slot %d, want %s in slot 1", p.Outcome, p.Reservation.Slot, OutcomeSpot)
		}
		if took := time.Since(start); took != doubtTimeout/5 {
			t.Errorf("answered after %s, want at the news after %s", took, doubtTimeout/5)
		}
	})
}

func TestADryRunReservesNothing(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	request := incoming(1)
	request.DryRun = true
	if p := s.place(request); len(p.Patch) == 0 {
		t.Error("a dry run got no patch")
	}
	if n := s.reservations()[testMember]; n != 0 {
		t.Errorf("%d reservations after a dry run", n)
	}
}

func TestReadOnlyModePatchesNothing(t *testing.T) {
	s := newShell(t, func(o *Options) { o.Settings.ReadOnly = true }, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	if p := s.place(incoming(1)); p.Outcome != OutcomeReadOnly || p.Patch != nil {
		t.Errorf("outcome %s, patch %s", p.Outcome, p.Patch)
	}
}

func TestPodsWithoutAPlacedOwnerStayAsTheyAre(t *testing.T) {
	others := replicaSet(1, 1)
	others.OwnerReferences[0].APIVersion = "example.com/v1"
	s := newShell(t, nil, false, namespace("true", nil), others)
	for name, owner := range map[string]OwnerRef{
		"none": {}, "job": {APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j"},
		"a group that begins like apps":                  {APIVersion: "apps.example.com/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1"},
		"a ReplicaSet of a controller that nobody named": {APIVersion: "apps/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1"},
	} {
		request := incoming(1)
		request.Owner = owner
		if p := s.place(request); p.Outcome != OutcomeNotOwned || p.Patch != nil {
			t.Errorf("%s: outcome %s, patch %s", name, p.Outcome, p.Patch)
		}
	}
}

func TestAMemberThatIsNotFollowedPlacesNothing(t *testing.T) {
	s := newShell(t, nil, false)
	if p := s.Place(context.Background(), "elsewhere", incoming(1)); p.Outcome != OutcomeWarming {
		t.Errorf("outcome %s, want %s", p.Outcome, OutcomeWarming)
	}
}

func TestThePatchSteersThePodAndKeepsItsOtherKeys(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("0")), replicaSet(10, 10))
	request := incoming(1)
	request.NodeSelector = map[string]string{"zone": "a", "karpenter.sh/capacity-type": "spot"}
	var ops []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(s.place(request).Patch, &ops); err != nil {
		t.Fatal(err)
	}
	paths := map[string]any{}
	for _, op := range ops {
		paths[op.Path] = op.Value
	}
	if paths["/spec/nodeSelector/karpenter.sh~1capacity-type"] != "on-demand" || paths["/spec/nodeSelector"] != nil {
		t.Errorf("patch %v, want the capacity type replaced and the map kept", ops)
	}
}

func TestTheEndOfAPodWhoseOwnerIsGoneLeavesNothing(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(1, "true", mixed("70")), replicaSet(1, 1))
	pod := stored("web-1-0", s.place(incoming(0)))
	s.cache(pod)
	s.follower.gone(replicaSet(1, 1))
	dying := pod.DeepCopy()
	dying.ResourceVersion, dying.DeletionTimestamp = "11", new(metav1.Now())
	s.cache(dying)
	s.follower.gone(dying)
	if n := len(s.follower.directory.owners); n != 0 {
		t.Errorf("%d owners are kept", n)
	}
}
