package placing_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const enabled = "plimsoll.dev/enabled"

// fleet is a few members whose Deployments do what they are asked. It stands for spot placement as well.
type fleet struct {
	mu    sync.Mutex
	views map[string]spot.FleetView
	slow  string // a member whose spot replicas start, and do not become ready
}

func (f *fleet) FleetView(member string, _ policy.WorkloadKey) (spot.FleetView, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view, known := f.views[member]
	view.At = time.Now()
	return view, known
}

func (f *fleet) SetFleetSplits(member string, splits map[policy.WorkloadKey]policy.FleetSplit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := f.views[member]
	for _, split := range splits {
		view.Split, view.Settled = &split, true
	}
	f.views[member] = view
}

func (*fleet) Revisit(string, policy.WorkloadKey) {}

func (*fleet) Placed() []spot.PlacedKind { return []spot.PlacedKind{{Name: "Deployment"}} }

// scale is what a member makes of so many replicas.
func (f *fleet) scale(member string, replicas int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := f.views[member]
	view.Replicas = replicas
	view.OnDemand.Ready = min(view.Split.OnDemand, replicas)
	onSpot := spot.FleetCount{Ready: replicas - view.OnDemand.Ready}
	if member == f.slow {
		onSpot = spot.FleetCount{Starting: onSpot.Ready}
	}
	view.Spot = onSpot
	f.views[member] = view
}

// connect reaches a member with the Deployment, whose scale subresource scales it.
func (f *fleet) connect(member string) (placing.Connection, bool) {
	return placing.ScaledMember(func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.views[member].Replicas
	}, func(n int, dryRun bool) error {
		if !dryRun {
			f.scale(member, n)
		}
		return nil
	}), true
}

// run has a controller keep a FleetPlacement of nine replicas, three of them on-demand, until a minute has passed.
func run(t *testing.T, f *fleet, registry *prometheus.Registry) (*placing.Controller, *v1alpha1.FleetPlacement) {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}, Spec: v1alpha1.FleetPlacementSpec{
		TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Replicas: ptr.To[int32](9),
		Capacity: v1alpha1.Capacity{MinOnDemand: 3, SpotPercentage: ptr.To[int32](70)},
	}}
	hub := fake.NewClientBuilder().WithScheme(kinds).WithStatusSubresource(object).WithObjects(object).WithInterceptorFuncs(interceptor.Funcs{
		// The fake knows no watch that begins with what there is. API servers of before answer like this.
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, given ...client.ListOption) (watch.Interface, error) {
			var options client.ListOptions
			options.ApplyOptions(given)
			if options.Raw != nil && options.Raw.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			return c.Watch(ctx, list, given...)
		},
	}).Build()
	var members []placing.Member
	f.views = map[string]spot.FleetView{}
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, placing.Member{Name: name, Reachable: true})
		f.views[name] = spot.FleetView{Settled: true}
	}
	ctx, cancel := context.WithCancel(t.Context())
	controller, err := placing.New(ctx, placing.Options{
		Hub: hub, Workloads: f, Enabled: enabled, Registerer: registry, Connect: f.connect,
		Members: func() []placing.Member { return append([]placing.Member(nil), members...) },
		Acts:    func(string) bool { return true }, ActsAny: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- controller.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(time.Minute) // of the bubble's clock
	known, ok := controller.Placement("shop", "web")
	if !ok || !controller.Synced() {
		t.Fatal("the controller does not know its FleetPlacement")
	}
	return controller, known.DeepCopy()
}

func TestAFleetPlacementIsCarriedOutInTheMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		controller, known := run(t, f, prometheus.NewRegistry())
		onSpot, onDemand := 0, 0
		for _, view := range f.views {
			onSpot, onDemand = onSpot+view.Spot.Ready, onDemand+view.OnDemand.Ready
		}
		if onSpot != 6 || onDemand != 3 {
			t.Errorf("%d on spot and %d on-demand, want 6 and 3: %+v", onSpot, onDemand, f.views)
		}
		if !apimeta.IsStatusConditionTrue(known.Status.Conditions, reconcile.ConditionReady) || known.Status.ReadyReplicas != 9 {
			t.Errorf("the status says %+v", known.Status)
		}
		if names := controller.Namespaces(); len(names) != 1 || len(controller.Placements("shop")) != 1 {
			t.Errorf("namespaces %v", names)
		}
		supposed, ok := controller.Suppose("shop", "web", placing.Hypothesis{Change: func(spec *v1alpha1.FleetPlacementSpec) { spec.Replicas = ptr.To[int32](12) }})
		wanted := 0
		for _, m := range supposed.Result.Members {
			wanted += m.Spot + m.OnDemand
		}
		if !ok || wanted != 12 {
			t.Errorf("with 12 replicas there would be %d: %+v", wanted, supposed)
		}
	})
}

// Every count has another value here, so that none can stand for another.
func TestTheSeriesOfAFleetCountWhatIsWantedRunsAndIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, registry := &fleet{slow: "b"}, prometheus.NewRegistry()
		_, known := run(t, f, registry)
		if apimeta.IsStatusConditionTrue(known.Status.Conditions, reconcile.ConditionReady) {
			t.Fatalf("two replicas are not ready, and the status says %+v", known.Status)
		}
		reason := apimeta.FindStatusCondition(known.Status.Conditions, reconcile.ConditionReady).Reason
		got := series(t, registry)
		for name, want := range map[string]float64{
			"plimsoll_fleet_placements/" + reason:       1,
			"plimsoll_fleet_replicas/spot/b/wanted":     2,
			"plimsoll_fleet_replicas/spot/b/running":    2,
			"plimsoll_fleet_replicas/spot/b/ready":      0,
			"plimsoll_fleet_replicas/spot/a/ready":      2,
			"plimsoll_fleet_replicas/on-demand/a/ready": 1,
			"plimsoll_fleet_replicas/on-demand/b/ready": 1,
			"plimsoll_fleet_members/a/Placed":           1,
			"plimsoll_fleet_members/b/Moving":           1,
			"plimsoll_fleet_moves_total/spot/up/a":      2,
			"plimsoll_fleet_moves_total/on-demand/up/a": 1,
		} {
			if value, there := got[name]; !there || value != want {
				t.Errorf("%s is %v, want %v", name, value, want)
			}
		}
		if got["plimsoll_fleet_plan_seconds"] < 30 {
			t.Errorf("%v plans are counted in a minute", got["plimsoll_fleet_plan_seconds"])
		}
	})
}

// series are the values of gauges and counters, and how often histograms observed, by name and the values of labels.
func series(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += "/" + label.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
