package placing

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const enabled = "plimsoll.dev/enabled"

// bench is a controller over a hub cluster and members that are fakes. A member does at once what it is asked.
type bench struct {
	*testing.T
	*Controller
	hub client.WithWatch
	now time.Time

	mu      sync.Mutex
	views   map[string]spot.FleetView
	splits  map[string]map[policy.WorkloadKey]policy.FleetSplit
	refuses map[string]error // what a member answers to a change of its scale
	hubDown error            // what the hub cluster answers to a write of a status
	hubHung bool             // it answers no such write
	// refusesStatus is what it answers to a status that it does not take; nil: it takes all.
	refusesStatus func(p *v1alpha1.FleetPlacement) error
	lost          bool          // no member is in reach
	gate          chan struct{} // nobody gets to a member before it is closed; nil: there is none
	acts          bool
	cluster       map[string]Connection
	log           []string // what was done, in order

	revisited []string
}

func (b *bench) FleetView(member string, _ policy.WorkloadKey) (spot.FleetView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.views[member]
	if v.At.IsZero() {
		v.At = b.now
	}
	return v, ok
}

func (b *bench) SetFleetSplits(member string, splits map[policy.WorkloadKey]policy.FleetSplit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if maps.Equal(b.splits[member], splits) {
		return
	}
	b.splits[member] = maps.Clone(splits)
	b.log = append(b.log, "split "+member)
	if v, ok := b.views[member]; ok {
		for _, split := range splits {
			v.Split, v.Settled = &split, true
		}
		b.views[member] = v
	}
}

func (b *bench) Revisit(member string, _ policy.WorkloadKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revisited = append(b.revisited, member)
}

func (b *bench) Placed() []spot.PlacedKind { return placed }

func newBench(t *testing.T, objects ...*v1alpha1.FleetPlacement) *bench {
	return newBenchOf(t, threeMembers(), objects...)
}

func newBenchOf(t *testing.T, members []Member, objects ...*v1alpha1.FleetPlacement) *bench {
	b := &bench{
		T: t, now: epoch, views: map[string]spot.FleetView{}, splits: map[string]map[policy.WorkloadKey]policy.FleetSplit{}, refuses: map[string]error{}, acts: true,
	}
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(&v1alpha1.FleetPlacement{})
	for _, o := range objects {
		builder = builder.WithObjects(o)
	}
	b.hub = builder.WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			b.mu.Lock()
			down, hung := b.hubDown, b.hubHung
			b.log = append(b.log, "status")
			b.mu.Unlock()
			if hung {
				<-ctx.Done()
				return ctx.Err()
			}
			if down != nil {
				return down
			}
			if b.refusesStatus != nil {
				if err := b.refusesStatus(obj.(*v1alpha1.FleetPlacement)); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		},
	}).Build()
	b.cluster = map[string]Connection{}
	for _, m := range members {
		b.views[m.Name] = spot.FleetView{Settled: true}
		b.cluster[m.Name] = b.member(m.Name)
	}
	var err error
	b.Controller, err = New(t.Context(), Options{
		Hub: b.hub, Workloads: b, Enabled: enabled,
		Members: func() []Member {
			now := slices.Clone(members)
			for i := range now {
				now[i].Reachable = !b.lost
				now[i].Since = epoch
			}
			return now
		},
		Connect: func(member string) (Connection, bool) {
			if b.gate != nil {
				<-b.gate
			}
			found, ok := b.cluster[member]
			return found, ok
		},
		Acts: func(string) bool { return b.acts }, ActsAny: func() bool { return b.acts },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.clock = func() time.Time { return b.now }
	return b
}

// member is a cluster with the Deployment, whose scale subresource it keeps.
func (b *bench) member(name string) Connection {
	return ScaledMember(func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.views[name].Replicas
	}, func(n int, dryRun bool) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log = append(b.log, "scale "+name)
		if refused := b.refuses[name]; refused != nil {
			return refused
		}
		if dryRun {
			return nil
		}
		v := b.views[name]
		v.Replicas = n
		v.OnDemand.Ready = min(v.Split.OnDemand, n)
		v.Spot.Ready = n - v.OnDemand.Ready
		b.views[name] = v
		return nil
	})
}

// ScaledMember reaches a member with the Deployment, whose scale subresource reads replicas and calls scale. The external tests of this
// package use it as well.
func ScaledMember(replicas func() int, scale func(n int, dryRun bool) error) Connection {
	labels := map[string]string{enabled: "true"}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labels}},
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceGet: func(_ context.Context, _ client.Client, _ string, _, into client.Object, _ ...client.SubResourceGetOption) error {
			return unstructured.SetNestedField(into.(*unstructured.Unstructured).Object, int64(replicas()), "spec", "replicas")
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, _ client.Object, given ...client.SubResourceUpdateOption) error {
			var options client.SubResourceUpdateOptions
			options.ApplyOptions(given)
			n, _, err := unstructured.NestedInt64(options.SubResourceBody.(*unstructured.Unstructured).Object, "spec", "replicas")
			if err != nil {
				return err
			}
			return scale(int(n), len(options.DryRun) > 0)
		},
	}).Build()
	return Connection{Client: c, Live: c}
}

// rounds makes some, with all that members do about each.
func (b *bench) rounds(n int) *v1alpha1.FleetPlacement {
	b.Helper()
	for range n {
		b.see()
		b.round(b.Context(), b.now)
		b.agents.wait()
		b.now = b.now.Add(2 * time.Second)
	}
	return b.read()
}

// see has the controller know what the hub cluster has, as its watch does.
func (b *bench) see() {
	b.Helper()
	var list v1alpha1.FleetPlacementList
	if err := b.hub.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	for _, known := range b.store.List() {
		if err := b.store.Delete(known); err != nil {
			b.Fatal(err)
		}
	}
	for i := range list.Items {
		if err := b.store.Add(&list.Items[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// read returns the first FleetPlacement; nil: there is none.
func (b *bench) read() *v1alpha1.FleetPlacement {
	b.Helper()
	var list v1alpha1.FleetPlacementList
	if err := b.hub.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func (b *bench) ready() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.views {
		n += v.Spot.Ready + v.OnDemand.Ready
	}
	return n
}

// ask changes how many replicas are wanted, as a person would.
func (b *bench) ask(replicas int32) {
	b.Helper()
	p := b.read()
	p.Spec.Replicas = new(replicas)
	if err := b.hub.Update(b.Context(), p); err != nil {
		b.Fatal(err)
	}
}

// state is what the status says of a member.
func (b *bench) state(member string) v1alpha1.MemberState {
	b.Helper()
	for _, m := range b.read().Status.Members {
		if m.Name == member {
			return m.State
		}
	}
	return ""
}

// ran counts what was done, since the log had that many steps.
func (b *bench) ran(step string, since int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, done := range b.log[since:] {
		if done == step {
			n++
		}
	}
	return n
}
