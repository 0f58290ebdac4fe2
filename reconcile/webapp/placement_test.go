package webapp

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// placer knows of one Deployment, and counts how often it is asked.
type placer struct {
	mu      sync.Mutex
	view    report.Workload
	known   bool
	asked   int
	changed func(member, kind, namespace, name string)
}

func (p *placer) Summary(string, string, string, string) (report.Workload, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.view, p.known
}

func (p *placer) Notify(changed func(member, kind, namespace, name string)) { p.changed = changed }

func (p *placer) plan(view report.Workload) {
	p.mu.Lock()
	p.view, p.known = view, true
	p.mu.Unlock()
	p.changed("eu", spot.KindDeployment, "eu", "shop")
}

// runs is how often it was asked in so much time.
func (p *placer) runs(in time.Duration) int {
	p.mu.Lock()
	before := p.asked
	p.mu.Unlock()
	time.Sleep(in)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked - before
}

// quietMember is a member in which nothing happens, but for what the hub does.
type quietMember struct {
	cluster.Cluster // nil: nothing else of it is used

	client client.Client
	ctx    context.Context
	listed []client.Object

	mu         sync.Mutex
	namespaces *framework.FakeControllerSource
}

func (m *quietMember) GetClient() client.Client       { return m.client }
func (m *quietMember) GetAPIReader() client.Reader    { return m.client }
func (m *quietMember) GetScheme() *runtime.Scheme     { return m.client.Scheme() }
func (m *quietMember) GetRESTMapper() meta.RESTMapper { return m.client.RESTMapper() }
func (m *quietMember) GetCache() cache.Cache          { return quietCache{member: m} }

type quietCache struct {
	cache.Cache // nil: nothing else of it is used
	member      *quietMember
}

func (c quietCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.member.client.Get(ctx, key, obj, opts...)
}

func (c quietCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.member.client.List(ctx, list, opts...)
}

func (c quietCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	source := framework.NewFakeControllerSource()
	for _, there := range c.member.listed {
		if reflect.TypeOf(there) == reflect.TypeOf(obj) {
			source.Add(there)
		}
	}
	if _, is := obj.(*corev1.Namespace); is {
		c.member.mu.Lock()
		c.member.namespaces = source
		c.member.mu.Unlock()
	}
	informer := toolscache.NewSharedIndexInformer(source, obj, 0, toolscache.Indexers{})
	go func() {
		informer.RunWithContext(c.member.ctx)
		source.Broadcaster.Shutdown()
	}()
	return informer, nil
}

// reconciled has the WebApp shop, which is to be placed, reconciled as a hub does until the test ends, in the member that it returns.
func reconciled(t *testing.T, p *placer) *quietMember {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	app := shop(func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{} })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{keys.Enabled(): "true"}}}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	m := &quietMember{ctx: ctx, listed: []client.Object{app, namespace}}
	m.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(app).WithObjects(app, namespace).Build()
	rt, err := reconcile.NewRuntime(reconcile.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	controller, err := (&Reconciler{Keys: keys, Placer: p}).Register(rt, Schedule{})
	if err != nil {
		t.Fatal(err)
	}
	if err := controller.Engage(ctx, "eu", m); err != nil {
		t.Fatal(err)
	}
	ended.Go(func() { _ = controller.Start(ctx) }) // fails only when it is started twice
	synctest.Wait()
	return m
}

func placedIn(t *testing.T, m *quietMember) string {
	t.Helper()
	var app v1.WebApp
	if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(shop()), &app); err != nil {
		t.Fatal(err)
	}
	if is := meta.FindStatusCondition(app.Status.Conditions, v1.ConditionPlaced); is != nil {
		return string(is.Status) + " " + is.Reason
	}
	return ""
}

// Whoever has many of them takes the processor from nobody.
func TestAWebAppThatCannotBePlacedIsSeldomLookedAtAndTheNewsOfItAtOnce(t *testing.T) {
	waits := report.Workload{State: plan.StateMoving, Reason: "waits for a window", SpotWanted: 1, OnDemandActual: 1}
	done := report.Workload{State: plan.StateConverged}
	for what, before := range map[string]struct {
		placer *placer
		is     string
	}{
		"it waits":            {&placer{view: waits, known: true}, "False Moving"},
		"it is never planned": {&placer{}, "Unknown Placing"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := reconciled(t, before.placer)
				if is := placedIn(t, m); is != before.is {
					t.Fatalf("Placed is %s, want %s", is, before.is)
				}
				if runs := before.placer.runs(10 * time.Minute); runs < 5 || runs > 60 {
					t.Errorf("%d runs in 10 minutes, want a few", runs)
				}
				before.placer.plan(done)
				synctest.Wait() // no time passes
				if is := placedIn(t, m); is != "True Placed" {
					t.Errorf("Placed is %s when it is done", is)
				}
			})
		})
	}
}

func TestOfANamespaceOnlyItsEnabledLabelWakesWebApps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &placer{known: true, view: report.Workload{State: plan.StateConverged}}
		m := reconciled(t, p)
		for what, c := range map[string]struct {
			labels map[string]string
			wakes  bool
		}{
			"another label": {map[string]string{keys.Enabled(): "true", "team": "blue"}, false},
			"the label":     {map[string]string{"team": "blue"}, true},
		} {
			of := func(labels map[string]string) {
				m.namespaces.Modify(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: labels}})
			}
			of(map[string]string{keys.Enabled(): "true"})
			synctest.Wait()
			of(c.labels)
			if runs := p.runs(time.Millisecond); (runs > 0) != c.wakes {
				t.Errorf("%s: %d runs", what, runs)
			}
		}
	})
}

// Placement may plan a Deployment before it has seen it, and tells nobody when it has.
func TestAPlanThatComesWithoutNewsIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &placer{}
		m := reconciled(t, p)
		p.mu.Lock()
		p.view, p.known = report.Workload{State: plan.StateConverged}, true
		p.mu.Unlock()
		if p.runs(2 * time.Second); placedIn(t, m) != "True Placed" {
			t.Errorf("Placed is %s two seconds later", placedIn(t, m))
		}
	})
}

// A status may have been written by anybody.
func TestAWaitThatBeganInTheFutureIsNoReasonToLookOften(t *testing.T) {
	conditions := &reconcile.Conditions{}
	conditions.Unknown(v1.ConditionPlaced, v1.ReasonPlacing, "")
	if d := untilPlanned(conditions); d != planRetry {
		t.Errorf("looks again in %s at first", d)
	}
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		if d := untilPlanned(conditions); d != placementRecheck {
			t.Errorf("looks again in %s", d)
		}
	})
}
