package spot

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

func probingEngine(t *testing.T) *Engine {
	t.Helper()
	s := newShell(t, nil, false)
	s.options.SpotTolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	return s.Engine
}

func someProbe(e *Engine) *shortage.Probe {
	since := time.Now().Truncate(time.Second).UTC()
	shape := capacity.Requirements{CPU: 500, Memory: 1 << 30, Constraints: []string{"select:disk=ssd"}}
	return &shortage.Probe{Name: "plimsoll-probe-1", Gated: true, Decision: shortage.Decision{Requirements: shape, Capacity: capacity.Spot, Since: since, Tries: 2, NextProbe: since.Add(time.Minute)}}
}

func TestAProbeKeepsItsDecisionAndGivesWayToEveryOtherPod(t *testing.T) {
	e := probingEngine(t)
	want := someProbe(e)
	pod := e.probePod(want, "plimsoll-system", spottest.ByConfiguration)

	got, ok := shortage.ProbeOf(e.options.Keys, pod)
	if !ok || got.Name != want.Name || got.Requirements.String() != want.Requirements.String() || !got.Since.Equal(want.Since) || got.Tries != 2 ||
		!got.NextProbe.Equal(want.NextProbe) || !got.Gated {
		t.Errorf("what is read off the pod is %+v, want %+v", got, want)
	}
	key, value := spottest.SteersBy(e.options.Capacity, capacity.Spot)
	if pod.Spec.NodeSelector[key] != value || pod.Spec.NodeSelector["disk"] != "ssd" || len(pod.Spec.Tolerations) != 1 {
		t.Errorf("it is steered by %v and tolerates %v", pod.Spec.NodeSelector, pod.Spec.Tolerations)
	}
	if pod.Spec.PriorityClassName != ProbePriorityClass || *priorityClass().PreemptionPolicy != corev1.PreemptNever || priorityClass().Value >= 0 {
		t.Errorf("priority class %q", pod.Spec.PriorityClassName)
	}
	d := newDirectory(e.options.Keys, policy.Defaults{}, nil)
	d.probes = pod.Namespace
	if !d.isProbe(pod) {
		t.Error("it is not known for a probe")
	}
	d.probes = "elsewhere"
	if d.isProbe(pod) {
		t.Error("a tenant's pod is taken for a probe")
	}
	d.probes = pod.Namespace
	pod.Labels[e.options.Keys.Slot()] = "3"
	if d.isProbe(pod) {
		t.Error("a replica is taken for a probe")
	}
}

func TestAProbeIsMadeWithoutAPriorityClassWhereThereIsNone(t *testing.T) {
	e := probingEngine(t)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "plimsoll-probe-1", errors.New("no PriorityClass with name plimsoll-probe was found"))
	for name, mayMake := range map[string]bool{"and it may be made": true, "and it may not be made": false} {
		made := false
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
				pod, isPod := obj.(*corev1.Pod)
				switch {
				case !isPod && !mayMake:
					return apierrors.NewForbidden(schema.GroupResource{Resource: "priorityclasses"}, obj.GetName(), errors.New("no"))
				case !isPod:
					made = true
				case pod.Spec.PriorityClassName != "" && !made:
					return refused
				}
				return c.Create(ctx, obj, o...)
			},
		})
		if err := e.createProbe(context.Background(), c, "plimsoll-system", spottest.ByConfiguration, someProbe(e)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var pod corev1.Pod
		if err := c.Get(context.Background(), client.ObjectKey{Namespace: "plimsoll-system", Name: "plimsoll-probe-1"}, &pod); err != nil {
			t.Fatal(err)
		}
		if has := pod.Spec.PriorityClassName != ""; has != mayMake {
			t.Errorf("%s: the probe's class is %q", name, pod.Spec.PriorityClassName)
		}
		if err := e.createProbe(context.Background(), c, "plimsoll-system", spottest.ByConfiguration, someProbe(e)); err != nil {
			t.Errorf("%s: a probe that is there already: %v", name, err)
		}
	}
}

func TestAnOpenedProbeHasNoGateAndSaysSinceWhen(t *testing.T) {
	e := probingEngine(t)
	pod := e.probePod(someProbe(e), "plimsoll-system", spottest.ByConfiguration)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod).Build()
	now := time.Now().Truncate(time.Second)
	if err := e.openProbe(context.Background(), c, pod.Namespace, pod.Name, now); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	if probe, ok := shortage.ProbeOf(e.options.Keys, pod); !ok || probe.Gated || !probe.OpenedAt.Equal(now) {
		t.Errorf("got %+v", probe)
	}
	for _, name := range []string{pod.Name, pod.Name} { // the second time it is gone already
		if err := deleteProbe(context.Background(), c, pod.Namespace, name); err != nil {
			t.Error(err)
		}
	}
}

func TestAProbeSaysForWhichNamespacesItsDecisionHoldsNow(t *testing.T) {
	s := newShell(t, nil, false)
	probe := someProbe(s.Engine)
	probe.Namespaces = []string{"a"}
	pod := s.probePod(probe, "plimsoll-system", spottest.ByConfiguration)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod).Build()
	m := s.member(testMember)
	m.cluster = &probeWriter{m.cluster, c}
	for _, namespaces := range [][]string{{"a", "b"}, nil} {
		probe.Namespaces = namespaces
		if err := m.applyProbes(context.Background(), spottest.ByConfiguration, shortage.Plan{Note: []shortage.Probe{*probe}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		if got, ok := shortage.ProbeOf(s.options.Keys, pod); !ok || !got.Gated || !slices.Equal(got.Namespaces, namespaces) || got.Tries != probe.Tries {
			t.Errorf("%v: %+v is read", namespaces, got)
		}
	}
}

// What is known about the nodes may change while a probe stands behind its gate, where its way to spot cannot be changed any more.
func TestAProbeThatGoesAnotherWayThanReplicasIsMadeAgainBeforeItIsOpened(t *testing.T) {
	s := newShell(t, nil, false)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	m := s.member(testMember)
	m.cluster = &probeWriter{m.cluster, c}
	probe, now := someProbe(s.Engine), time.Now()
	apply := func(plan shortage.Plan) *corev1.Pod {
		t.Helper()
		if err := m.applyProbes(context.Background(), s.follower.directory.nodes.Census.Steering(), plan, now); err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := c.Get(context.Background(), client.ObjectKey{Namespace: "plimsoll-system", Name: probe.Name}, &pod); err != nil {
			return nil
		}
		return &pod
	}
	apply(shortage.Plan{Create: []shortage.Probe{*probe}})
	s.cache(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{labelGKEPool: "a"}}})
	if pod := apply(shortage.Plan{Open: []string{probe.Name}}); pod != nil {
		t.Fatalf("the probe that was sent by %v is kept", pod.Spec.NodeSelector)
	}
	pod := apply(shortage.Plan{Create: []shortage.Probe{*probe}})
	if !schedulable(&pod.Spec, map[string]string{labelGKEPool: "b", labelGKESpot: "true", "disk": "ssd"}, noSchedule(labelGKESpot, "true")) {
		t.Errorf("the new probe fits no spot node of the member: %s", capacity.JSONOf(pod.Spec))
	}
	if pod = apply(shortage.Plan{Open: []string{probe.Name}}); pod == nil || len(pod.Spec.SchedulingGates) > 0 {
		t.Errorf("it is not opened: %v", pod)
	}
}

// probeWriter is a Cluster with a client.
type probeWriter struct {
	Cluster
	client client.Client
}

func (w *probeWriter) GetClient() client.Client { return w.client }
