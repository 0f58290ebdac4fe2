package spot

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

func TestWhatIsKeptOfAMemberGoesWithIt(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newShell(t, func(o *Options) { o.Registerer = registry }, false)
	view := report.Workload{Member: testMember, WorkloadKey: keyOf(KindDeployment, deployment(1, "true", nil)), SpotWanted: 7}
	s.metrics.ShowWorkload(&view)
	s.metrics.CountMoves(testMember, map[plan.Purpose]int{plan.PurposeMove: 2, plan.PurposeInsufficientCapacity: 1})
	s.leave(s.members[testMember])

	// A reconcile that was under way when the member left.
	ns := namespace("true", nil)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(ns).Build()
	s.metrics.ShowWorkload(&view)
	s.moves.Grant(plan.MoveKey{Member: testMember, WorkloadKey: view.WorkloadKey}, 1, 1, time.Now())
	sub := subject{member: testMember, key: view.WorkloadKey, meta: &metav1.ObjectMeta{}, client: c, live: c, events: noEvents{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.reconcile(ctx, sub); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plimsoll_workload_replicas", "plimsoll_moves_total", "plimsoll_replacements_total", "plimsoll_reservations_live", "plimsoll_spot_dry"} {
		if left := spottest.Series(t, registry, name); len(left) > 0 {
			t.Errorf("%s of a member that is gone: %v", name, left)
		}
	}
	if n := s.moves.(*plan.Ceiling).Movers(); n > 0 {
		t.Errorf("%d movers of a member that is gone", n)
	}
}

func TestSeriesOfWorkloadsThatWentUnseenGoWithTheNextDirectory(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newShell(t, func(o *Options) { o.Registerer = registry }, false)
	view := report.Workload{Member: testMember, WorkloadKey: keyOf(KindDeployment, deployment(1, "true", nil)), SpotWanted: 7}
	s.metrics.ShowWorkload(&view)
	m := s.members[testMember]
	m.withdraw() // a kind was lost; the workload is deleted meanwhile
	m.publish(newDirectory(s.options.Keys, s.options.Defaults, s.options.Namespaces))
	if left := spottest.Series(t, registry, "plimsoll_workload_replicas"); len(left) > 0 {
		t.Errorf("series of a workload that is gone: %v", left)
	}
}

func TestWhoAsksForItHearsWhenAPlacementHasChanged(t *testing.T) {
	s := newShell(t, nil, false)
	d := deployment(2, "true", nil)
	s.cache(namespace("true", nil), d)
	dir, sub := s.follower.directory, &subject{member: testMember, key: keyOf(KindDeployment, d), meta: &d.ObjectMeta, events: noEvents{}}
	var heard []string
	s.Notify(func(member, kind, namespace, name string) {
		view, _ := s.Summary(member, kind, namespace, name) // as it is now
		heard = append(heard, member+" "+kind+" "+namespace+"/"+name+" "+string(view.State)+" "+view.Reason)
	})
	for _, p := range []plan.Result{
		{State: plan.StateMoving, Reason: "one goes"}, {State: plan.StateMoving, Reason: "one goes"}, {State: plan.StateMoving, Reason: "it waits"}, {State: plan.StateConverged},
	} {
		s.publish(dir, sub, &report.Planned{Plan: p, At: time.Now()})
	}
	of := testMember + " Deployment shop/web "
	if diff := cmp.Diff([]string{of + "Moving one goes", of + "Moving it waits", of + "Converged "}, heard); diff != "" {
		t.Error(diff)
	}
	if _, known := s.Summary(testMember, KindDeployment, d.Namespace, "nobody"); known {
		t.Error("a workload that there is none of is known")
	}
	s.follower.gone(d)
	if _, known := s.Summary(testMember, KindDeployment, d.Namespace, d.Name); known {
		t.Error("a workload that is gone is known")
	}
}

func TestNothingIsKeptOfANamespaceOrAWorkloadThatIsGone(t *testing.T) {
	s := newShell(t, nil, false)
	ns, d, set := namespace("true", nil), deployment(2, "true", mixed("50")), replicaSet(2, 2)
	s.cache(ns, d, set)
	dir := s.follower.directory
	services := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.Service{}).Build()
	dir.selectors.reason(t.Context(), services, "shop", time.Now())
	dir.noteMove(dir.owner(ownerKey{"shop", set.UID}), report.Move{Pod: "web-1"})
	key := keyOf(KindDeployment, d)
	if len(dir.journal.LastMoves(key)) != 1 || len(dir.selectors.read) != 1 {
		t.Fatal("nothing was noted")
	}
	s.follower.gone(d)
	dir.noteMove(dir.owner(ownerKey{"shop", set.UID}), report.Move{Pod: "web-2"}) // what it had released is finished after it is gone
	if n := len(dir.journal.LastMoves(key)); n > 0 {
		t.Errorf("%d moves of a workload that is gone", n)
	}
	s.follower.gone(ns)
	if n := len(dir.selectors.read); n > 0 {
		t.Errorf("answers for %d namespaces that are gone", n)
	}
}

func TestTheAccountingForgetsPodsThatTheCacheDoesNotHave(t *testing.T) {
	o := &owner{slots: slots.NewAccounting(false)}
	pods := plantest.Replicas(3, policy.Mix{})
	for i := range pods {
		o.slots.Observe(&pods[i], spottest.Epoch)
	}
	o.retain(pods, spottest.Epoch.Add(time.Hour))
	if o.slots.Known() != 3 {
		t.Fatalf("%d pods are known of 3 that are cached", o.slots.Known())
	}
	o.retain(pods[:2], spottest.Epoch.Add(time.Hour))
	if o.slots.Known() != 2 {
		t.Errorf("%d pods are known of 2 that are cached", o.slots.Known())
	}
}

func TestTheSeriesOfAWorkloadSayWhatIsThereAndWhatWasDone(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newShell(t, func(o *Options) { o.Registerer = registry }, false)
	key := keyOf(KindDeployment, deployment(1, "true", nil))
	s.metrics.ShowWorkload(&report.Workload{Member: testMember, WorkloadKey: key, SpotWanted: 7, SpotActual: 5, OnDemandWanted: 3, OnDemandActual: 4})
	for range 2 {
		s.metrics.CountMoves(testMember, map[plan.Purpose]int{plan.PurposeMove: 2, plan.PurposeInsufficientCapacity: 1, plan.PurposeInterruption: 4, plan.PurposeFinish: 9})
	}
	s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
	s.place(incoming(0))
	for name, want := range map[string]map[string]float64{
		"plimsoll_workload_replicas": {
			"spot/wanted/Deployment/prod-eu/web/shop": 7, "spot/actual/Deployment/prod-eu/web/shop": 5,
			"on-demand/wanted/Deployment/prod-eu/web/shop": 3, "on-demand/actual/Deployment/prod-eu/web/shop": 4,
		},
		"plimsoll_moves_total":        {testMember: 4},
		"plimsoll_replacements_total": {"insufficient-capacity/" + testMember: 2, "interruption/" + testMember: 8},
		"plimsoll_reservations_live":  {testMember: 1},
	} {
		if diff := cmp.Diff(want, spottest.Series(t, registry, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	s.forget(testMember, key)
	if left := spottest.Series(t, registry, "plimsoll_workload_replicas"); len(left) != 0 {
		t.Errorf("series of a workload that is gone: %v", left)
	}
}
