package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

var cart = policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}}

// planned is the plan of ten replicas on spot, of which seven belong there and two on-demand are the floor.
func planned() report.Planned {
	p := report.Planned{
		Observed: plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10), Policy: spottest.PolicyOf(70, 2),
		Settings: plantest.DefaultSettings, At: spottest.Epoch,
	}
	p.Plan = plan.Plan(p.Observed, p.Policy, p.Settings, p.At)
	return p
}

// Every count of a workload has another value here, so that none can stand for another.
func TestEverySeriesOfAWorkloadHasItsOwnValue(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := report.NewMetrics(registry, 0,
		func() map[string]int { return map[string]int{"prod": 17} },
		func(of capacity.Type) map[string]int {
			return map[string]map[string]int{string(capacity.Spot): {"prod": 18}, string(capacity.OnDemand): {"prod": 19}}[string(of)]
		})
	if err != nil {
		t.Fatal(err)
	}
	floor := 6
	metrics.ShowWorkload(&report.Workload{Member: "prod", WorkloadKey: cart, Replicas: 18, Policy: spottest.PolicyOf(60, floor),
		SpotWanted: 11, SpotActual: 14, OnDemandWanted: 7, OnDemandActual: 2})
	metrics.CountMoves("prod", map[plan.Purpose]int{plan.PurposeMove: 21, plan.PurposeInsufficientCapacity: 22, plan.PurposeInterruption: 23, plan.PurposeAdvisory: 24})
	metrics.CountUndecided("prod", 25)
	metrics.ObservePlan(time.Millisecond)

	want := map[string]map[string]float64{
		"plimsoll_workload_replicas": {
			"spot/wanted/Deployment/prod/cart/shop": 11, "spot/actual/Deployment/prod/cart/shop": 14,
			"on-demand/wanted/Deployment/prod/cart/shop": 7, "on-demand/actual/Deployment/prod/cart/shop": 2,
		},
		"plimsoll_workload_floor_missing": {"Deployment/prod/cart/shop": 4},
		"plimsoll_workload_misplaced":     {"Deployment/prod/cart/shop": 3},
		"plimsoll_reservations_live":      {"prod": 17},
		"plimsoll_spot_dry":               {"spot/prod": 18, "on-demand/prod": 19},
		"plimsoll_moves_total":            {"prod": 21},
		"plimsoll_replacements_total":     {"insufficient-capacity/prod": 22, "interruption/prod": 23, "advisory/prod": 24},
		"plimsoll_pods_undecided_total":   {"prod": 25},
	}
	for name, values := range want {
		if diff := cmp.Diff(values, spottest.Series(t, registry, name)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}

	metrics.ForgetMember("prod")
	for name := range want {
		if left := spottest.Series(t, registry, name); len(left) > 0 && name != "plimsoll_reservations_live" && name != "plimsoll_spot_dry" {
			t.Errorf("%s of a member that is gone: %v", name, left)
		}
	}
}

func TestAViewCountsReplicasByCapacityType(t *testing.T) {
	p := planned()
	view := report.Of("prod", cart, &p)
	if view.SpotWanted != 7 || view.OnDemandWanted != 3 || view.SpotActual != 10 || view.OnDemandActual != 0 || view.Replicas != 10 || view.Member != "prod" || view.WorkloadKey != cart {
		t.Errorf("%+v", view)
	}
	if text := p.Explain(); len(text) == 0 {
		t.Error("there is nothing to say of a workload that has to move")
	}
}

func TestAHypothesisIsAnsweredAndTheLastPlanStays(t *testing.T) {
	p, before := planned(), planned()
	view := report.Of("prod", cart, &p)
	got := report.Suppose(&view, p, report.Hypothesis{Percentage: ptr.To(50)}, spottest.DefaultKeys, spottest.Epoch)
	if got.Now.OnDemandWanted != 3 || got.Then.OnDemandWanted != 5 || got.Then.SpotWanted != 5 || got.Moves != 5 {
		t.Errorf("wanted on-demand %d, then %d; %d moves", got.Now.OnDemandWanted, got.Then.OnDemandWanted, got.Moves)
	}
	if len(got.First) != 1 || got.First[0].From != capacity.Spot || got.First[0].For != plan.PurposeMove || !got.First[0].At.IsZero() {
		t.Errorf("the first moves are %+v", got.First)
	}
	if diff := cmp.Diff(before.Observed, p.Observed); diff != "" {
		t.Errorf("the question changed what was observed: %s", diff)
	}
}

func TestWhatAPlanSaysOfAPodIsShownWithIt(t *testing.T) {
	pods := []report.Pod{{Name: "a", Reason: "not ready"}, {Name: "b"}, {Name: "c", Reason: "stays as it is"}}
	report.AddPlans(pods, []plan.PodPlan{{Name: "b", Interrupted: true, Waits: plan.WaitBudget, Reason: "its node goes"}, {Name: "a", Released: true}})
	want := []report.Pod{{Name: "a", Released: true, Reason: "not ready"}, {Name: "b", Interrupted: true, Waits: plan.WaitBudget, Reason: "its node goes"}, {Name: "c", Reason: "stays as it is"}}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Error(diff)
	}
}

func TestAMoveIsRememberedAsWhatItWas(t *testing.T) {
	var journal report.Journal
	evicted := report.MoveOfEviction(&plan.Eviction{Name: "cart-1", From: capacity.Spot, For: plan.PurposeMove}, spottest.Epoch)
	journal.RecordMove(cart, evicted)
	if moves := journal.LastMoves(cart); len(moves) != 1 || moves[0].Pod != "cart-1" || moves[0].From != capacity.Spot || moves[0].Strategy != policy.StrategyEvict {
		t.Errorf("%+v", moves)
	}
	journal.Forget(cart)
	if moves := journal.LastMoves(cart); len(moves) > 0 {
		t.Errorf("a workload that is gone is remembered: %+v", moves)
	}
}
