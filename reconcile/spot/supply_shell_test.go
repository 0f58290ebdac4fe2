package spot

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/admissiontest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// poolAtZero is a member where team a has an on-demand pool, and a spot pool without nodes; the spot nodes are team b's.
func poolAtZero(t *testing.T) (*shell, policy.WorkloadKey) {
	t.Helper()
	s := newShell(t, nil, false)
	s.follower.directory.capacity = s.options.Capacity
	node := func(name, team string, spot bool) *corev1.Node {
		labels := map[string]string{"cloud.google.com/gke-nodepool": name, "team": team}
		if spot {
			labels["cloud.google.com/gke-spot"] = "true"
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	s.cache(node("a-od", "a", false), node("b-spot", "b", true))
	set := replicaSet(10, 10)
	set.Spec.Template.Spec.NodeSelector = map[string]string{"team": "a"}
	keepTemplate(set, &set.Spec.Template, &set.Spec.Template, s.options.Capacity)
	s.cache(namespace("true", nil), deployment(10, "true", mixed("90")), set)
	return s, policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
}

// observePool observes ten on-demand replicas of the workload, and plans them.
func observePool(s *shell, key policy.WorkloadKey, now time.Time) plan.Result {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Managed: true}), 10)
	o.Owners[0].UID = "set-web-1"
	for i := range o.Pods {
		o.Pods[i].Owner = "set-web-1"
	}
	s.follower.directory.observeSupply(context.Background(), key, &o, plan.Settings{PendingTimeout: time.Minute}, now)
	return plan.Plan(o, spottest.PolicyOf(90, 1), plantest.DefaultSettings, now)
}

func TestAProbeAsksForASpotPoolThatWasScaledToZero(t *testing.T) {
	s, key := poolAtZero(t)
	dir, now := s.follower.directory, time.Now()
	if p := s.place(incoming(5)); p.Reservation.Capacity != capacity.OnDemand {
		t.Errorf("a pod is sent where no node fits: %s", p.Reason)
	}
	r := observePool(s, key, now)
	if r.State != plan.StateWaiting || !strings.Contains(r.Reason, plan.ContradictionSpot.Message()) {
		t.Errorf("%s: %s", r.State, r.Reason)
	}
	decided := dir.droughts.Step(now)
	if len(decided.Create) != 1 || decided.Create[0].Capacity != capacity.Spot || s.probePod(&decided.Create[0], "x", spottest.ByConfiguration).Spec.NodeSelector["team"] != "a" {
		t.Fatalf("no probe asks for the pool: %+v", decided.Create)
	}
	for _, p := range decided.Create {
		dir.droughts.Of(capacity.Spot).ObserveProbe(p, now)
	}
	later := now.Add(shortage.DefaultSettings().FirstProbe + time.Second)
	observePool(s, key, later)
	if plan := dir.droughts.Step(later); len(plan.Open) != 1 {
		t.Fatalf("the probe is not opened: %+v", plan)
	}

	// An autoscaler brings a node for it.
	s.cache(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-spot", Labels: map[string]string{"cloud.google.com/gke-nodepool": "a-spot", "team": "a", "cloud.google.com/gke-spot": "true"}}})
	if r := observePool(s, key, later); len(r.Evictions) != 1 || r.Contradiction != plan.ContradictionNone {
		t.Errorf("replicas do not move to it: %s: %s", r.State, r.Reason)
	}
	if plan := dir.droughts.Step(later); len(plan.Delete) != 1 || dir.droughts.Decisions(capacity.Spot) > 0 {
		t.Errorf("the probe is not over: %+v", plan)
	}
}

func TestWhereAnAutoscalerWasSeenPodsAskForAPoolAtZeroThemselves(t *testing.T) {
	s, _ := poolAtZero(t)
	s.follower.directory.nodes.Autoscaled()
	n := 0
	for i := range 10 {
		if s.place(incoming(i)).Reservation.Capacity == capacity.Spot {
			n++
		}
	}
	if n != 9 {
		t.Errorf("%d of 9 replicas are sent to spot", n)
	}
}

func TestANodeHurriesTheProbeWhoeverHearsOfItFirst(t *testing.T) {
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		s := newShell(t, nil, false)
		dir, now := s.follower.directory, time.Now()
		drought := dir.droughts.Of(capacityType)
		drought.ObserveProbe(shortage.Probe{Name: "p", Decision: shortage.Decision{Capacity: capacityType, Since: now.Add(-time.Hour), Tries: 10, NextProbe: now.Add(20 * time.Minute)}}, now)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{spottest.SteerKey: string(capacityType)}}}
		c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node).Build()
		s.nodeChanged(context.Background(), dir, c, node) // what the controllers' handler does
		s.follower.seen(node)                             // what the directory's handler does, a moment later
		if next := drought.Decisions()[0].NextProbe; time.Until(next) > time.Minute {
			t.Errorf("%s: the next probe is in %s", capacityType, time.Until(next))
		}
	}
}

func TestAProbeForOnDemandIsSteeredThereAndKeepsWhatItKnows(t *testing.T) {
	e := probingEngine(t)
	want := someProbe(e)
	want.Capacity, want.Relapses = capacity.OnDemand, 3
	pod := e.probePod(want, "plimsoll-system", spottest.ByConfiguration)
	got, ok := shortage.ProbeOf(e.options.Keys, pod)
	if !ok || got.Capacity != capacity.OnDemand || got.Relapses != 3 {
		t.Errorf("%+v", got)
	}
	if key, value := spottest.SteersBy(e.options.Capacity, capacity.OnDemand); pod.Spec.NodeSelector[key] != value || len(pod.Spec.Tolerations) > 0 {
		t.Errorf("it is steered by %v and tolerates %v", pod.Spec.NodeSelector, pod.Spec.Tolerations)
	}
	v := want.Decision
	name := shortage.ProbeName(v.Requirements.String(), &v)
	if v.Capacity = capacity.Spot; shortage.ProbeName(v.Requirements.String(), &v) == name {
		t.Error("probes for both types have one name")
	}
}

func TestNewPodsAboveTheFloorGoToSpotWhileOnDemandIsDry(t *testing.T) {
	s := newShell(t, nil, false)
	set := replicaSet(10, 10)
	keepTemplate(set, &set.Spec.Template, &set.Spec.Template, s.options.Capacity)
	s.cache(namespace("true", nil), deployment(10, "true", spottest.Annotations("spot-percentage", "50", "min-on-demand", "2")), set)
	dir, now := s.follower.directory, time.Now()
	dir.droughts.Observe(capacity.OnDemand, shortage.Pod{UID: "p", Namespace: "shop", Timeout: time.Minute, UnschedulableSince: now.Add(-2 * time.Minute)}, now)
	dir.droughts.Judge(now)
	n := map[capacity.Type]int{}
	for i := range 10 {
		n[s.place(incoming(i)).Reservation.Capacity]++
	}
	if n[capacity.OnDemand] != 2 || n[capacity.Spot] != 8 {
		t.Errorf("%v, want the floor of 2 on-demand", n)
	}
}

func TestTheMetricTellsWhichTypeIsDry(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newShell(t, func(o *Options) { o.Registerer = registry }, false)
	dir, now := s.follower.directory, time.Now()
	for i := range 2 {
		shape := capacity.Requirements{Constraints: []string{capacity.ConstraintSelector + "zone=" + string(rune('a'+i))}}
		dir.droughts.Observe(capacity.OnDemand, shortage.Pod{UID: types.UID(shape.String()), Requirements: shape, Timeout: time.Minute, UnschedulableSince: now.Add(-time.Hour)}, now)
	}
	dir.droughts.Judge(now)
	want := `
# HELP plimsoll_spot_dry Shapes of pods for which the member's capacity of the type (spot or on-demand) has no room.
# TYPE plimsoll_spot_dry gauge
plimsoll_spot_dry{capacity="on-demand",member="` + testMember + `"} 2
plimsoll_spot_dry{capacity="spot",member="` + testMember + `"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "plimsoll_spot_dry"); err != nil {
		t.Error(err)
	}
}

// A hub finds out that an ordinal has no spot node, and writes that on the pod that comes in its place; the next hub reads it there.
func TestAnOrdinalThatFoundNoNodeIsLeftAloneAfterARestart(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "set-db", Labels: labelled("true"), Annotations: mixed("0")},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(4))},
	}
	before, now := newShell(t, nil, false), time.Now()
	before.cache(namespace("true", nil), set)
	before.follower.directory.droughts.Tried(capacity.OnDemand, "set-db/db-3", now.Add(policy.TriedTime-time.Hour), now)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-3", UID: "u", ResourceVersion: "10",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: KindStatefulSet, Name: "db", UID: "set-db", Controller: new(true)}}}}
	request := &PodRequest{RequestUID: "r", Namespace: "shop", Name: "db-3", Owner: OwnerRef{APIVersion: "apps/v1", Kind: KindStatefulSet, Name: "db", UID: "set-db"}}
	placed := before.place(request)
	pod = admissiontest.Patched(t, pod, placed.Patch)
	pod.Name = "db-3" // which patched changes
	if placed.Reservation.Capacity != capacity.OnDemand || pod.Annotations["plimsoll.dev/tried"] != now.Add(-time.Hour).UTC().Format(time.RFC3339) {
		t.Fatalf("%s, %v", placed.Reservation.Capacity, pod.Annotations)
	}

	after := newShell(t, nil, false)
	after.follower.directory.capacity = after.options.Capacity
	after.cache(namespace("true", nil), set, pod)
	o := plan.Observed{Ordinals: true, Replicas: 4, Owners: []plan.Owner{{UID: "set-db", Name: "db", Replicas: 4}}, Pods: []plan.Pod{after.podFacts(after.follower.directory, pod)}}
	after.follower.directory.observeDry("shop", &o, now)
	if until := o.Pods[0].TriedUntil; now.Add(policy.TriedTime-time.Hour).Sub(until).Abs() > time.Second {
		t.Errorf("left alone until %s", until)
	}
	again := after.place(&PodRequest{RequestUID: "s", Namespace: "shop", Name: "db-3", Owner: request.Owner})
	if admissiontest.Patched(t, &corev1.Pod{}, again.Patch).Annotations["plimsoll.dev/tried"] != pod.Annotations["plimsoll.dev/tried"] {
		t.Errorf("what it found is lost with the next pod: %s", again.Patch)
	}
}

// Any tenant may create a pod with the label of a probe, and would turn a capacity type off for everybody.
func TestATenantsPodIsNoProbe(t *testing.T) {
	s, now := newShell(t, nil, false), time.Now()
	dir := s.follower.directory
	dir.probes = s.options.Probes.Namespace
	everything := shortage.Probe{Decision: shortage.Decision{Capacity: capacity.Spot, Since: now, NextProbe: now.Add(time.Hour)}, Gated: true}
	everything.Name = shortage.ProbeName(everything.Requirements.String(), &everything.Decision)
	foreign := s.probePod(&everything, "shop", spottest.ByConfiguration)
	s.follower.seen(foreign)
	if s.workloadsOfPod(KindDeployment)(t.Context(), &reconcile.Member{Name: testMember}, foreign); dir.droughts.AnyDry.Load() {
		t.Error("spot is dry, because a tenant says so")
	}
	own := s.probePod(&everything, dir.probes, spottest.ByConfiguration)
	if s.follower.seen(own); !dir.droughts.AnyDry.Load() {
		t.Error("what the hub knew before a restart is not read")
	}
	if s.follower.gone(foreign); len(dir.droughts.Step(now).Create) > 0 {
		t.Error("the hub's probe counts as gone, because a tenant's pod of that name is")
	}
}

// A tenant can create a small pod on a spot node, which its ReplicaSet of large pods adopts.
func TestAPodThatWasMadeOnItsNodeEndsNoShortage(t *testing.T) {
	now := time.Now()
	for name, seenBefore := range map[string]bool{"made on its node": false, "seen before it had one": true} {
		s := newShell(t, nil, false)
		dir := s.follower.directory
		dir.capacity = s.options.Capacity
		set := replicaSet(1, 1)
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}}}}
		keepTemplate(set, &set.Spec.Template, &set.Spec.Template, s.options.Capacity)
		s.cache(namespace("true", nil), deployment(1, "true", mixed("100")), set)
		dir.droughts.Observe(capacity.Spot, shortage.Pod{UID: "another", Namespace: "shop", Requirements: capacity.Requirements{CPU: 100_000}, Timeout: time.Minute, UnschedulableSince: now.Add(-time.Hour)}, now)
		dir.droughts.Judge(now)
		dir.droughts.Gone("another")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "p", ResourceVersion: "1", Labels: map[string]string{s.options.Keys.Slot(): "0"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)}}},
			Spec: corev1.PodSpec{Containers: set.Spec.Template.Spec.Containers}}
		kind := podKind(s.options.Keys, s.options.Capacity)
		follow := func(version, node string) {
			pod.ResourceVersion, pod.Spec.NodeName = version, node
			cached := &corev1.Pod{ObjectMeta: *pod.ObjectMeta.DeepCopy()}
			kind.Keep(pod, cached)
			s.follower.seen(cached)
		}
		if seenBefore {
			follow("2", "")
		}
		follow("3", "n")
		o := plan.Observed{Owners: []plan.Owner{{UID: set.UID}}, Pods: []plan.Pod{{UID: "p", Name: "web-1", Owner: set.UID, Capacity: capacity.Spot, Bound: true, Node: "n", Created: now.Add(time.Minute)}}}
		key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
		dir.observeSupply(t.Context(), key, &o, plan.Settings{PendingTimeout: time.Minute}, now.Add(2*time.Minute))
		if stands := dir.droughts.Decisions(capacity.Spot) == 1; stands == seenBefore {
			t.Errorf("%s: the shortage stands: %t", name, stands)
		}
	}
}
