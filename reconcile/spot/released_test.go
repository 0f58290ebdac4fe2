package spot

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// site is a member whose cache and API server hold the same objects.
type site struct {
	apiServer
	client client.Client
}

func (s *site) GetClient() client.Client { return s.client }

func (s *site) ByIndex(ctx context.Context, _ client.Object, _, namespace, value string) ([]any, error) {
	return listed(s.client)(ctx, namespace, types.UID(value))
}

// standIn is a pod that was released from a ReplicaSet of web two hours ago.
func standIn(name string, set types.UID, setName string) *corev1.Pod {
	pod := running(name, "3", "node-spot")
	pod.OwnerReferences = nil
	released := plan.Released{Owner: set, OwnerName: setName, Workload: "web", Hash: "old", For: plan.PurposeMove, At: time.Now().Add(-2 * time.Hour).Truncate(time.Second)}
	pod.Labels[plan.TemplateHash] = plan.ReleasedHash("old")
	pod.Annotations = map[string]string{spottest.DefaultKeys.Released(): released.String()}
	return pod
}

// releases is the shell of a member in which pods were released, and what it evicts.
type releases struct {
	*shell
	member  *member
	client  client.WithWatch
	evicted []string
	// evictedFrom are the same with their namespaces.
	evictedFrom []string
}

func newReleases(t *testing.T, change func(*Options), objects ...client.Object) *releases {
	t.Helper()
	r := &releases{shell: newShell(t, change, false)}
	r.client = indexed(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, pod client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
			r.evicted = append(r.evicted, pod.GetName())
			r.evictedFrom = append(r.evictedFrom, pod.GetNamespace()+"/"+pod.GetName())
			return nil
		},
	}, objects...)
	r.cache(spotAndOnDemandNodes()...)
	r.cache(objects...)
	r.member = &member{engine: r.Engine, name: testMember, cluster: &site{apiServer{reader: r.client}, r.client}}
	r.members[testMember].cluster = r.member.cluster
	return r
}

// round reconciles the Deployment, if there is one, as its controller does, and then manages orphans.
func (r *releases) round(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	if d != nil {
		_, err := deploymentReconciler{r.Engine}.Reconcile(t.Context(), reconcile.Request[*appsv1.Deployment]{
			Member: testMember, Object: d, Client: r.client, Live: r.client, Events: noEvents{}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.member.finishOrphans(t.Context(), r.follower.directory, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// Its ReplicaSet has fallen out of the history, or the Deployment was deleted and created again: a Deployment of the name does not
// know the pod.
func TestAReleasedPodWhoseReplicaSetIsGoneIsTakenAwayWhateverHasItsWorkloadsName(t *testing.T) {
	for name, enabled := range map[string]string{"the Deployment is enabled": "true", "it is disabled": "false"} {
		t.Run(name, func(t *testing.T) {
			set := counted(10)
			set.Name, set.UID = "web-2", "set-web-2"
			objects := []client.Object{namespace("true", nil), deployment(10, enabled, spottest.Annotations("spot-percentage", "100")), set, standIn("old", "set-web-1", "web-1")}
			for i := range 10 {
				pod := running(fmt.Sprintf("new-%d", i), fmt.Sprint(i), "node-spot")
				pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = set.Name, set.UID
				objects = append(objects, pod)
			}
			r := newReleases(t, nil, objects...)
			r.round(t, deployment(10, enabled, spottest.Annotations("spot-percentage", "100")))
			if !slices.Equal(r.evicted, []string{"old"}) {
				t.Errorf("evicted %v, want the released pod", r.evicted)
			}
		})
	}
}

func TestAReleasedPodIsInExactlyOneCare(t *testing.T) {
	unlabelled := deployment(2, "", nil)
	recreated := deployment(2, "true", mixed("50"))
	recreated.UID = "another"
	bare := ofController("", "", 2)
	bare.Labels, bare.Annotations = labelled("true"), mixed("50")
	for name, c := range map[string]struct {
		cached []client.Object
		live   *appsv1.Deployment // read for an admission
		want   bool
	}{
		"its Deployment is there":                      {cached: []client.Object{deployment(2, "true", nil), replicaSet(2, 2)}, want: true},
		"its Deployment is disabled":                   {cached: []client.Object{deployment(2, "false", nil), replicaSet(2, 2)}, want: true},
		"its Deployment has lost the label":            {cached: []client.Object{replicaSet(2, 2)}, live: unlabelled},
		"the Deployment of the name is another one":    {cached: []client.Object{recreated, replicaSet(2, 2)}},
		"the ReplicaSet is gone":                       {cached: []client.Object{deployment(2, "true", nil)}},
		"the ReplicaSet is a workload of its own now":  {cached: []client.Object{bare}, want: true},
		"the ReplicaSet belongs to something unplaced": {cached: []client.Object{ofController("example.com/v1", "Thing", 2)}},
	} {
		s := newShell(t, nil, false)
		s.cache(append([]client.Object{namespace("true", nil)}, c.cached...)...)
		if c.live != nil {
			s.follower.directory.setWorkload(keyOf(KindDeployment, c.live), &c.live.ObjectMeta, 2, true, time.Now())
		}
		if got := s.follower.directory.inCare(ownerKey{"shop", "set-web-1"}); got != c.want {
			t.Errorf("%s: in care %v", name, got)
		}
	}
}

func TestReleasedPodsStayWhereNothingMayBeEvicted(t *testing.T) {
	switchOn := func(keys ...string) map[string]string {
		on := map[string]string{}
		for _, key := range keys {
			on[key] = "true"
		}
		return on
	}
	readOnly, paused := spottest.DefaultKeys.ReadOnly(), spottest.DefaultKeys.Paused()
	for name, c := range map[string]struct {
		options             func(*Options)
		namespace, workload map[string]string
		evicted             bool
	}{
		"nothing is switched on":     {evicted: true},
		"the member is read-only":    {options: func(o *Options) { o.ReadOnlyBy = func(string) string { return "the member" } }},
		"the member is cordoned":     {options: func(o *Options) { o.CordonedMember = func(string) bool { return true } }},
		"the hub is read-only":       {options: func(o *Options) { o.Settings.ReadOnly = true }},
		"the namespace is read-only": {namespace: switchOn(readOnly)},
		"the namespace is paused":    {namespace: switchOn(paused)},
		"the workload is read-only":  {workload: switchOn(readOnly)},
		"the workload is paused":     {workload: switchOn(paused)},
	} {
		for _, label := range []string{"false", ""} { // disabled, and gone from the cache
			t.Run(fmt.Sprintf("%s, the label is %q", name, label), func(t *testing.T) {
				d, set := deployment(0, label, c.workload), counted(0)
				ended := standIn("ended", set.UID, set.Name)
				ended.Status.Phase = corev1.PodFailed
				r := newReleases(t, c.options, namespace("true", c.namespace), d, set, standIn("old", set.UID, set.Name), ended)
				if label == "" {
					r.follower.gone(d)
					r.round(t, nil)
				} else {
					r.round(t, d)
				}
				if c.evicted && len(r.evicted) != 2 || !c.evicted && len(r.evicted) > 0 {
					t.Errorf("evicted %v", r.evicted)
				}
			})
		}
	}
}

// The label is taken off and not set to "false": the Deployment leaves the cache, and everything of it has to go all the same.
func TestAWorkloadWhoseLabelIsTakenOffLeavesNothingBehind(t *testing.T) {
	d, set := deployment(2, "true", spottest.Annotations("spot-percentage", "100")), counted(2)
	replacement := running("new-1", "", "node-od") // it came after the label went, and has no slot
	replacement.Status.Conditions[0].Status = corev1.ConditionFalse
	replacement.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	r := newReleases(t, nil, namespace("true", nil), d, set, running("new-0", "0", "node-spot"), replacement, standIn("old", set.UID, set.Name))
	r.round(t, d)
	r.place(incoming(0))
	dir, key := r.follower.directory, keyOf(KindDeployment, d)
	r.moves.Grant(plan.MoveKey{Member: testMember, WorkloadKey: key}, 1, 0, time.Now())
	dir.waits.note(key, []plan.Wait{{Kind: plan.WaitBudget, Subject: "web"}})
	if len(r.List(testMember, "")) != 1 || len(r.evicted) != 0 {
		t.Fatalf("%d workloads are shown, evicted %v", len(r.List(testMember, "")), r.evicted)
	}

	d.Labels = nil
	if err := r.client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	r.follower.gone(d) // what the cache's selector makes of it
	deploymentReconciler{r.Engine}.Forget(t.Context(), testMember, client.ObjectKeyFromObject(d))
	_, planned := dir.journal.LastPlan(keyOf(KindDeployment, d))
	if len(r.List(testMember, "")) != 0 || planned || r.moves.(*plan.Ceiling).Movers() != 0 || len(dir.waits.of) != 0 {
		t.Error("something is kept of a workload that is not enabled any more")
	}
	if placed := r.place(incoming(1)); placed.Outcome == OutcomeSpot || placed.Outcome == OutcomeOnDemand {
		t.Errorf("a new pod is placed: %s", placed.Outcome)
	}
	if now := time.Now(); dir.reserved(now) != 1 || dir.reserved(now.Add(slots.ReservationTTL+time.Second)) != 0 {
		t.Error("a reservation is kept, and nobody plans any more")
	}

	if r.round(t, nil); len(r.evicted) != 0 {
		t.Fatalf("evicted %v while the replacement is not ready", r.evicted)
	}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(replacement), replacement); err != nil {
		t.Fatal(err)
	}
	replacement.Status.Conditions[0].Status = corev1.ConditionTrue
	if err := r.client.Status().Update(t.Context(), replacement); err != nil {
		t.Fatal(err)
	}
	if r.round(t, nil); !slices.Equal(r.evicted, []string{"old"}) {
		t.Errorf("evicted %v when the replacement is ready", r.evicted)
	}
}

// The floor is released whatever the strategy where its nodes go: then it matters whether a Service would lose it.
func TestWhetherPodsCanBeReleasedIsFoundOutWhereTheirNodesGo(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{plan.TemplateHash: "abc"}}}
	for name, c := range map[string]struct {
		taint    string
		strategy policy.Strategy
		want     string
	}{
		"nothing is to be released": {"example.com/any", policy.StrategyEvict, ""},
		"that is the strategy":      {"example.com/any", policy.StrategyRelease, "Service shop/web selects pod-template-hash"},
		"a node goes":               {"karpenter.sh/disrupted", policy.StrategyEvict, "Service shop/web selects pod-template-hash"},
	} {
		s, set := newShell(t, nil, false), counted(1)
		node := spotAndOnDemandNodes()[0].(*corev1.Node)
		node.Spec.Taints = []corev1.Taint{{Key: c.taint}}
		s.cache(node, namespace("true", nil), deployment(1, "true", mixed("50")), set)
		settings := plantest.DefaultSettings
		settings.Strategy = c.strategy
		sub := webOf(set, indexed(interceptor.Funcs{}, running("web-1-0", "0", node.Name)), indexed(interceptor.Funcs{}, service))
		o, _, err := s.observeSubject(t.Context(), s.follower.directory, sub, settings)
		if err != nil || o.NoRelease != c.want {
			t.Errorf("%s: %q, error %v", name, o.NoRelease, err)
		}
	}
}

func TestAStrayIsLeftAloneWhileItIsNotKnownWhetherItsReplicaSetIsGone(t *testing.T) {
	r := newReleases(t, nil, namespace("true", nil), standIn("old", "set-web-1", "web-1"))
	r.member.cluster = &site{apiServer{reader: failingReader{r.client}}, r.client}
	if err := r.member.finishOrphans(t.Context(), r.follower.directory, time.Now()); err == nil || len(r.evicted) > 0 {
		t.Errorf("evicted %v, error %v", r.evicted, err)
	}
}

// One refused write stops nothing else: what cannot be done about orphans is logged once, and the probes are looked after.
func TestAStrayThatCannotBeTakenAwayStopsNoProbes(t *testing.T) {
	var log bytes.Buffer
	r := newReleases(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }, namespace("true", nil), standIn("old", "set-web-1", "web-1"))
	r.member.cluster = &site{apiServer{reader: failingReader{r.client}}, r.client}
	r.member.directory.Store(r.follower.directory)
	free := func(string) (string, bool) { return "", false }
	r.held.Store(&free)
	for range 3 {
		if _, err := r.member.tendOnce(t.Context(), r.follower.directory, time.Now()); err != nil {
			t.Errorf("probes are not looked after: %v", err)
		}
	}
	if n := strings.Count(log.String(), "released pods without a workload"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// failingReader cannot read anything.
type failingReader struct{ client.Reader }

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.DeadlineExceeded
}

func TestADeploymentThatHasTheLabelAndIsNotCachedYetKeepsItsReleasedPods(t *testing.T) {
	d, set := deployment(0, "true", nil), counted(0)
	r := newReleases(t, nil, namespace("true", nil), d, set, standIn("old", set.UID, set.Name))
	r.follower.gone(d)
	if r.round(t, nil); len(r.evicted) > 0 {
		t.Errorf("evicted %v", r.evicted)
	}
}

func TestPodsOfAReleaseThatHaveEndedAreRemoved(t *testing.T) {
	d, set := deployment(2, "true", spottest.Annotations("spot-percentage", "100")), counted(2)
	ended := standIn("ended", set.UID, set.Name)
	ended.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}
	r := newReleases(t, nil, namespace("true", nil), d, set, running("new-0", "0", "node-spot"), running("new-1", "1", "node-spot"), ended)
	if r.round(t, d); !slices.Equal(r.evicted, []string{"ended"}) {
		t.Errorf("evicted %v", r.evicted)
	}
}

func TestAReleasedPodWakesTheWorkloadThatItsReplicaSetBelongsTo(t *testing.T) {
	set := counted(2)
	set.OwnerReferences[0].Name = "adopter"
	r := newReleases(t, nil, set)
	member := &reconcile.Member{Name: testMember, Reader: r.client}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"its ReplicaSet was adopted": {standIn("old", set.UID, set.Name), "adopter"},
		"its ReplicaSet is gone":     {standIn("old", "gone", "web-0"), "web"},
		"another took its name":      {standIn("old", "gone", set.Name), "web"},
	} {
		got := r.workloadsOfPod(KindDeployment)(t.Context(), member, c.pod)
		if len(got) != 1 || got[0].Name != c.want {
			t.Errorf("%s: wakes %v, want %s", name, got, c.want)
		}
	}
}
