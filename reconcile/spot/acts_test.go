package spot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// noEvents drops Events.
type noEvents struct{}

func (noEvents) Normal(string, string, ...any)  {}
func (noEvents) Warning(string, string, ...any) {}

// writing makes a client that answers patches and evictions of pods by functions of their names, and counts both. It reads the pods
// that it is made with.
type writing struct {
	client.Client
	patches, evictions atomic.Int32
	mu                 sync.Mutex
	order              []string
}

func newWriting(patch, evict func(pod string) error, pods ...plan.Pod) *writing {
	w := &writing{}
	cached := make([]client.Object, 0, len(pods))
	for i := range pods {
		cached = append(cached, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pods[i].Name, UID: pods[i].UID}})
	}
	note := func(what, pod string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.order = append(w.order, what+" "+pod)
	}
	w.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cached...).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			w.patches.Add(1)
			note("patch", obj.GetName())
			return patch(obj.GetName())
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, pod client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
			w.evictions.Add(1)
			note("evict", pod.GetName())
			return evict(pod.GetName())
		},
	})
	return w
}

func succeed(string) error { return nil }

var notFound = apierrors.NewNotFound(corev1.Resource("pods"), "web-1-0")

// deniedByPolicy is what the API server says when an admission webhook refuses a request.
func deniedByPolicy(pod string) error {
	return apierrors.NewForbidden(corev1.Resource("pods"), pod, errors.New(`admission webhook "validate.kyverno.svc" denied the request: labels are immutable`))
}

// acting is a workload whose pods are in the accounting of the shell.
func (s *shell) acting(c client.Client, pods []plan.Pod) *subject {
	o := s.follower.directory.ensureOwner(ownerKey{"shop", spottest.OwnerUID}, kindReplicaSet)
	for i := range pods {
		o.slots.Observe(&pods[i], time.Now())
	}
	return &subject{member: testMember, key: policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
		meta: &metav1.ObjectMeta{}, replicas: len(pods), client: c, live: c, events: noEvents{}}
}

func TestAPodThatCannotBeAssignedItsSlotStopsNoUrgentEvictionAndNoOtherAssignment(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		failed bool // the reconcile: it is tried again with a back-off
	}{
		"a policy forbids it": {deniedByPolicy("web-0"), false},
		"the server fails":    {apierrors.NewInternalError(errors.New("etcd is gone")), true},
		"nobody answers":      {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
			pods[0].Slot, pods[1].Slot = plan.NoSlot, plan.NoSlot // they slipped past the webhook
			plantest.InterruptSlots(pods, plan.Interruption{Node: "s", Notice: "spot-itn", Since: spottest.Epoch, By: spottest.Epoch.Add(2 * time.Minute)}, 5, 6, 7, 8, 9)
			plan := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
			if len(plan.Assignments) != 2 || len(plan.Evictions) != 5 {
				t.Fatalf("%d assignments and %d evictions planned", len(plan.Assignments), len(plan.Evictions))
			}
			w := newWriting(func(pod string) error {
				if pod == pods[0].Name {
					return c.answer
				}
				return nil
			}, succeed)
			s := newShell(t, nil, false)
			_, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &plan, spottest.Epoch)
			if w.evictions.Load() != 5 || w.patches.Load() != 2 {
				t.Errorf("%d evictions and %d patches, want 5 and 2", w.evictions.Load(), w.patches.Load())
			}
			if (err != nil) != c.failed || (err != nil && !strings.Contains(err.Error(), pods[0].Name)) {
				t.Errorf("error %v", err)
			}
			if order := strings.Join(w.order[:5], " "); strings.Contains(order, "patch") {
				t.Errorf("urgent evictions wait for assignments: %s", w.order)
			}
		})
	}
}

func TestAReleaseThatFailsStopsNoUrgentEvictionAndNoOtherRelease(t *testing.T) {
	pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
	}
	plantest.InterruptSlots(pods, plan.Interruption{Node: "s", Notice: "spot-itn", Weight: plan.WeightDeadline, Since: spottest.Epoch.Add(-100 * time.Second), By: spottest.Epoch.Add(20 * time.Second)}, 5, 6, 7, 8)
	plantest.InterruptSlots(pods, plan.Interruption{Node: "r", Notice: "shutdown", Weight: plan.WeightDeadline, Since: spottest.Epoch, By: spottest.Epoch.Add(2 * time.Minute)}, 1, 2, 9)
	settings := plantest.DefaultSettings
	settings.Strategy = policy.StrategyRelease
	plan := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(100, 0), settings, spottest.Epoch)
	if len(plan.Releases) != 3 || len(plan.Evictions) != 4 {
		t.Fatalf("%d releases and %d evictions planned", len(plan.Releases), len(plan.Evictions))
	}
	w := newWriting(func(pod string) error {
		if pod == plan.Releases[0].Name {
			return errors.New("the connection broke")
		}
		return nil
	}, succeed, pods...)
	s := newShell(t, nil, false)
	_, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &plan, spottest.Epoch)
	if w.evictions.Load() != 4 || w.patches.Load() != 3 || err == nil {
		t.Errorf("%d evictions, %d releases tried, error %v", w.evictions.Load(), w.patches.Load(), err)
	}
}

// A plan of a large workload is done in a few round trips, whatever it writes.
func TestTheWritesOfAPlanAreUnderWaySideBySide(t *testing.T) {
	const pods = 4 * parallelWrites
	all := plantest.Replicas(pods, policy.Mix{Percent: 100, Managed: true})
	assignments, releases, evictions := plan.Result{}, plan.Result{}, plan.Result{}
	for i := range all {
		p := &all[i]
		assignments.Assignments = append(assignments.Assignments, plan.Assignment{Pod: p.UID, Name: p.Name, Slot: i})
		releases.Releases = append(releases.Releases, plan.Release{Pod: p.UID, Name: p.Name, Released: plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeInterruption}})
		evictions.Evictions = append(evictions.Evictions, plan.Eviction{Pod: p.UID, Name: p.Name, Owner: spottest.OwnerUID, For: plan.PurposeInterruption})
	}
	for name, decided := range map[string]*plan.Result{"assignments": &assignments, "releases": &releases, "evictions": &evictions} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(string) error {
				time.Sleep(time.Second)
				return nil
			}
			w := newWriting(answer, answer, all...)
			s := newShell(t, nil, false)
			subject, began := s.acting(w, all), time.Now()
			if _, err := s.act(t.Context(), s.follower.directory, subject, decided, began); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); len(w.order) != pods || took != pods/parallelWrites*time.Second {
				t.Errorf("%d of %d %s took as long as %s where the server takes a second for each", len(w.order), pods, name, took)
			}
		})
	}
}

func TestEveryErrorOfAPlanIsToldUpToABound(t *testing.T) {
	pods := plantest.Replicas(40, policy.Mix{Percent: 100, Managed: true})
	plantest.InterruptSlots(pods, plan.Interruption{Node: "s", Notice: "spot-itn", Since: spottest.Epoch, By: spottest.Epoch.Add(2 * time.Minute)}, spottest.UpTo(40)...)
	plan := plan.Plan(plantest.ObservedOf(pods, 40), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	w := newWriting(succeed, func(string) error { return apierrors.NewInternalError(errors.New("etcd is gone")) })
	s := newShell(t, nil, false)
	_, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &plan, spottest.Epoch)
	if w.evictions.Load() != 40 || err == nil || strings.Count(err.Error(), "etcd is gone") != keptErrors || !strings.HasSuffix(err.Error(), "32 further writes failed") {
		t.Errorf("%d evictions tried, error %v", w.evictions.Load(), err)
	}
}

// What a policy refuses is reported with the pod's name, and not repeated with every plan.
func TestAnAssignmentThatAPolicyRefusesIsAWaitAndIsTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
		pods[0].Slot = plan.NoSlot
		w := newWriting(deniedByPolicy, succeed)
		s := newShell(t, nil, false)
		sub := s.acting(w, pods)
		var decided plan.Result
		for range 120 { // an hour, planned twice a minute
			decided = plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(100, 0), plantest.DefaultSettings, time.Now())
			result, err := s.act(t.Context(), s.follower.directory, sub, &decided, time.Now())
			if err != nil {
				t.Fatalf("a refusal is an error: %v, %v", result, err)
			}
			time.Sleep(30 * time.Second)
		}
		if n := w.patches.Load(); n > 6 {
			t.Errorf("a pod was assigned without effect %d times in an hour", n)
		}
		wait := plantest.WaitOf(&decided, plan.WaitRefused)
		if decided.State != plan.StateWaiting || wait == nil || wait.Replicas != 1 || !wait.Until.After(time.Now().Add(-time.Minute)) || decided.Recheck.IsZero() {
			t.Fatalf("%s: %s, wait %+v, next %s", decided.State, decided.Reason, wait, decided.Recheck)
		}
		for _, want := range []string{pods[0].Name, "validate.kyverno.svc", "labels are immutable"} {
			if !strings.Contains(decided.Reason, want) {
				t.Errorf("the reason does not name %q: %s", want, decided.Reason)
			}
		}
	})
}

func TestAssignmentsThatAreAllRefusedEndBeforeThousandsAreTried(t *testing.T) {
	pods := plantest.Replicas(1000, policy.Mix{Percent: 100, Managed: true})
	for i := range pods {
		pods[i].Slot = plan.NoSlot
	}
	w := newWriting(deniedByPolicy, succeed)
	s := newShell(t, nil, false)
	plan := plan.Plan(plantest.ObservedOf(pods, 1000), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	if _, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &plan, spottest.Epoch); err != nil {
		t.Fatal(err)
	}
	if n := w.patches.Load(); n < maxDenials || n > maxDenials+parallelWrites {
		t.Errorf("%d assignments tried", n)
	}
}

func TestPodsWhoseReleaseAPolicyRefusesAreEvictedForAWhile(t *testing.T) {
	pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
	for i := range pods {
		pods[i].Hash = "abc"
	}
	w := newWriting(deniedByPolicy, succeed, pods...)
	s := newShell(t, nil, false)
	dir, now := s.follower.directory, time.Now()
	settings := plantest.DefaultSettings
	settings.Strategy = policy.StrategyRelease
	decided := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(0, 0), settings, now)
	if len(decided.Releases) == 0 {
		t.Fatal("nothing is released")
	}
	_, err := s.act(t.Context(), dir, s.acting(w, pods), &decided, now)
	if err != nil || decided.State != plan.StateWaiting || !strings.Contains(decided.Reason, "cannot be released") {
		t.Errorf("%s: %s, error %v", decided.State, decided.Reason, err)
	}
	o := plantest.ObservedOf(pods, 10)
	o.NoRelease = dir.releaseDenied(o.Owners, now.Add(time.Second))
	again := plan.Plan(o, spottest.PolicyOf(0, 0), settings, now.Add(time.Second))
	if !strings.Contains(strings.Join(again.Notes, " "), "labels are immutable") || len(again.Releases) != 0 {
		t.Errorf("plan after the refusal: %+v", again)
	}
	if reason := dir.releaseDenied(o.Owners, now.Add(denialRetry)); reason != "" {
		t.Errorf("releases are never tried again: %s", reason)
	}
}

func TestAnEvictionThatAPolicyRefusesHoldsUpNoOther(t *testing.T) {
	pods := plantest.Replicas(3, policy.Mix{Percent: 100, Managed: true})
	plantest.InterruptSlots(pods, plan.Interruption{Node: "s", Notice: "spot-itn", Since: spottest.Epoch, By: spottest.Epoch.Add(2 * time.Minute)}, 0, 1, 2)
	decided := plan.Plan(plantest.ObservedOf(pods, 3), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	w := newWriting(succeed, func(pod string) error {
		if pod == pods[1].Name {
			return deniedByPolicy(pod)
		}
		return nil
	})
	s := newShell(t, nil, false)
	_, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &decided, spottest.Epoch)
	wait := plantest.WaitOf(&decided, plan.WaitRefused)
	if err != nil || w.evictions.Load() != 3 || wait == nil || wait.Replicas != 1 || !strings.Contains(wait.Reason, pods[1].Name) {
		t.Errorf("%d evictions, wait %+v, error %v", w.evictions.Load(), wait, err)
	}
}

func TestADenialIsARefusalOfThisWriteAndNotOfTheMoment(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a policy":        {deniedByPolicy("web"), true},
		"a validation":    {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web", nil), true},
		"gone":            {apierrors.NewNotFound(corev1.Resource("pods"), "web"), false},
		"changed":         {apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("uid")), false},
		"too many":        {apierrors.NewTooManyRequests("busy", 1), false},
		"who are you":     {apierrors.NewUnauthorized("token"), false},
		"the server":      {apierrors.NewInternalError(errors.New("etcd")), false},
		"no API server":   {errors.New("broken"), false},
		"wrapped, of one": {fmt.Errorf("member a: %w", deniedByPolicy("web")), true},
	} {
		if _, got := denialOf(c.err); got != c.want {
			t.Errorf("%s: denied %v", name, got)
		}
	}
	long := deniedByPolicy(strings.Repeat("x", 4*maxDenialMessage))
	if message, _ := denialOf(long); len(message) > maxDenialMessage+len("…") {
		t.Errorf("a message of %d bytes is shown", len(message))
	}
}

func TestDenialsOfOneBatchCountAsOne(t *testing.T) {
	var d denials
	for range 8 {
		if until := d.note("set", "no", spottest.Epoch); !until.Equal(spottest.Epoch.Add(denialRetry)) {
			t.Fatalf("tried again at %s", until)
		}
	}
	if until := d.note("set", "no", spottest.Epoch.Add(denialRetry)); !until.Equal(spottest.Epoch.Add(3 * denialRetry)) {
		t.Errorf("a further refusal: tried again at %s", until)
	}
}

func TestDenialsOfPodsThatAreGoneAreForgotten(t *testing.T) {
	var d denials
	now := spottest.Epoch
	for i := range 10_000 {
		d.note(types.UID(fmt.Sprint(i)), "no", now)
		now = now.Add(time.Minute)
	}
	if n := len(d.of); n > 300 {
		t.Errorf("%d denials are remembered", n)
	}
}

// reasons keeps those of Events that say that something was done.
type reasons struct {
	noEvents
	all []string
}

func (r *reasons) Normal(reason, _ string, _ ...any) { r.all = append(r.all, reason) }

func TestEventsAboutMovesComeInOneOrder(t *testing.T) {
	s := newShell(t, nil, false)
	for range 20 { // a map's order differs sooner
		said := &reasons{}
		workload := s.acting(nil, nil)
		workload.events = said
		s.record(workload, &plan.Result{}, map[plan.Purpose]int{plan.PurposeMove: 1, plan.PurposeInsufficientCapacity: 1},
			map[plan.Purpose]int{plan.PurposeAdvisory: 1, plan.PurposeInterruption: 1, plan.PurposeFinish: 1})
		if want := []string{"Interrupted", "InsufficientCapacity", "Advised", "Moving", "Released"}; !slices.Equal(said.all, want) {
			t.Fatalf("%v, want %v", said.all, want)
		}
	}
}
