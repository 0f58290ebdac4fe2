package api

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

var then = time.Unix(1_700_000_000, 0).UTC()

func TestAClusterIsShownWhole(t *testing.T) {
	got := clusterMessage(clusters.Status{
		Name: "prod", State: clusters.StateDegraded, Reason: "Kinds", Message: "a kind is missing", Server: "h:1", Version: "v1", UID: "u",
		Conditions:   []metav1.Condition{{Type: "Warm", Status: metav1.ConditionFalse, Reason: "Kinds", Message: "m", LastTransitionTime: metav1.NewTime(then)}},
		Kinds:        []clusters.KindStatus{{Kind: "v1 Pod", Engaged: true}, {Kind: "v1 Node", Reason: "forbidden"}},
		RegisteredAt: then, Since: then,
	})
	want := &plimsollv1.Cluster{
		Name: "prod", State: plimsollv1.ClusterState_CLUSTER_STATE_DEGRADED, Reason: "Kinds", Message: "a kind is missing",
		Server: "h:1", KubernetesVersion: "v1", ClusterUid: "u",
		Conditions:   []*plimsollv1.Condition{{Type: "Warm", Status: "False", Reason: "Kinds", Message: "m", LastTransitionTime: timestamppb.New(then)}},
		Kinds:        []*plimsollv1.ClusterKind{{Name: "v1 Pod", Engaged: true}, {Name: "v1 Node", Reason: "forbidden"}},
		RegisteredAt: timestamppb.New(then), StateChangedAt: timestamppb.New(then),
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWorkloadIsShownWhole(t *testing.T) {
	floor := math.MaxInt
	nightly, err := policy.ParseWindow("0 0 * * *", "1h", "Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	view := report.Workload{
		Member: "prod", WorkloadKey: workloadKey("shop", spot.KindStatefulSet, "db"), State: plan.StateInvalid, Reason: "why",
		Policy: policy.Policy{
			MinOnDemand: &floor, MinOnDemandSource: policy.SourceDefault, PercentageSource: policy.SourceWorkload,
			Window: nightly, WindowSource: policy.SourceNamespace,
			Problems: []policy.Problem{{Key: "k", Value: "v", Rule: "r", Source: policy.SourceWorkload}},
		},
		Replicas: 9, SpotWanted: 1, OnDemandWanted: 2, SpotActual: 3, OnDemandActual: 4, Unassigned: 5, Pending: 6, NextCheck: then,
		Interrupted: 7, Released: 8, Unprotected: true, Settings: plan.Settings{ReadOnly: true, Paused: true, Strategy: policy.StrategyRelease, PendingTimeout: time.Minute},
		Waits:       []plan.Wait{{Kind: plan.WaitBudget, Subject: "db", Replicas: 2, Since: then, Until: then, Reason: "no"}},
		Moves:       []report.Move{{At: then, Pod: "db-2", From: capacity.OnDemand, For: plan.PurposeInsufficientCapacity, Strategy: policy.StrategyEvict, Why: "dry"}},
		Explanation: []string{"So it is."},
		Pods: []report.Pod{
			{Name: "db-0", Slot: 0, Wanted: capacity.Spot, Actual: capacity.OnDemand, Node: "n", Phase: "Running", Ready: true, Reason: "moves",
				Interrupted: true, Released: true, Waits: plan.WaitWindow},
			{Name: "db-1", Slot: -1},
		},
	}
	most, first := int32(math.MaxInt32), int32(0)
	want := &plimsollv1.Workload{
		Cluster: "prod", Namespace: "shop", Kind: "StatefulSet", Name: "db", State: plimsollv1.WorkloadState_WORKLOAD_STATE_INVALID,
		Placement: &plimsollv1.Placement{
			Replicas: 9, SpotWanted: 1, OnDemandWanted: 2, SpotActual: 3, OnDemandActual: 4, Unassigned: 5, Pending: 6,
			SpotPercentageSource: plimsollv1.ValueSource_VALUE_SOURCE_WORKLOAD,
			MinOnDemand:          &most, MinOnDemandSource: plimsollv1.ValueSource_VALUE_SOURCE_DEFAULT,
			Problems: []*plimsollv1.PolicyProblem{{Key: "k", Value: "v", Rule: "r"}}, Reason: "why", NextCheckAt: timestamppb.New(then),
			Interrupted: 7, Released: 8, ReadOnlyBy: "hub", Paused: true, Unprotected: true, Strategy: plimsollv1.MoveStrategy_MOVE_STRATEGY_RELEASE,
			PendingTimeout: durationpb.New(time.Minute),
			Window: &plimsollv1.DisruptionWindow{
				Schedule: "0 0 * * *", TimeZone: "Asia/Tokyo", Duration: durationpb.New(time.Hour), Source: plimsollv1.ValueSource_VALUE_SOURCE_NAMESPACE,
				NextOpening: timestamppb.New(time.Date(2023, 11, 15, 15, 0, 0, 0, time.UTC)),
			},
		},
		Waits: []*plimsollv1.Wait{{
			Kind: plimsollv1.WaitKind_WAIT_KIND_BUDGET, Subject: "db", Replicas: 2, Since: timestamppb.New(then), Until: timestamppb.New(then), Reason: "no",
		}},
		LastMoves: []*plimsollv1.Move{{
			MovedAt: timestamppb.New(then), Pod: "db-2", From: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
			Strategy: plimsollv1.MoveStrategy_MOVE_STRATEGY_EVICT, Purpose: plimsollv1.MovePurpose_MOVE_PURPOSE_INSUFFICIENT_CAPACITY, Reason: "dry",
		}},
		Explanation: []string{"So it is."},
		Pods: []*plimsollv1.Pod{
			{
				Name: "db-0", Slot: &first, CapacityTypeWanted: plimsollv1.CapacityType_CAPACITY_TYPE_SPOT,
				CapacityTypeActual: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, Node: "n", Phase: "Running", Ready: true, Reason: "moves",
				Interrupted: true, Released: true, WaitsFor: plimsollv1.WaitKind_WAIT_KIND_WINDOW,
			},
			{Name: "db-1"},
		},
	}
	if diff := cmp.Diff(want, workloadMessage(&view, then), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnObjectIsShownWhole(t *testing.T) {
	key := reconcile.Key{Controller: "c", Member: "prod"}
	key.Namespace, key.Name = "shop", "db"
	got := objectMessage(&reconcile.Record{
		Key: key, State: reconcile.StateWaiting, Reason: "back-off", Attempts: 3, LastOutcome: reconcile.OutcomeTimeout, LastError: "deadline",
		LastStarted: then, LastEnded: then, NextTry: then, Priority: reconcile.PriorityChanged, Failing: then,
	})
	want := &plimsollv1.ObjectState{
		Key:   &plimsollv1.ObjectKey{Cluster: "prod", Controller: "c", Namespace: "shop", Name: "db"},
		State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, Reason: "back-off", Attempts: 3,
		LastOutcome: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TIMEOUT, LastError: "deadline",
		LastStartedAt: timestamppb.New(then), LastFinishedAt: timestamppb.New(then), NextTryAt: timestamppb.New(then),
		Priority: plimsollv1.ReconcilePriority_RECONCILE_PRIORITY_CHANGED, FailingSince: timestamppb.New(then),
	}
	if diff := cmp.Diff(proto.Message(want), proto.Message(got), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryWordOfTheHubHasItsOwnOnTheWire: a state that is added there and forgotten here would be sent as unspecified.
func TestEveryWordOfTheHubHasItsOwnOnTheWire(t *testing.T) {
	distinct(t, "cluster states", clusterStates, plimsollv1.ClusterState_name, 1)
	distinct(t, "workload states", workloadStates, plimsollv1.WorkloadState_name, 2) // lists have no workloads that are off
	distinct(t, "reconcile states", reconcileStates, plimsollv1.ReconcileState_name, 1)
	distinct(t, "outcomes", outcomes, plimsollv1.ReconcileOutcome_name, 1)
	distinct(t, "sources", sources, plimsollv1.ValueSource_name, 1)
	distinct(t, "strategies", strategies, plimsollv1.MoveStrategy_name, 1)
	distinct(t, "purposes", purposes, plimsollv1.MovePurpose_name, 1)
	distinct(t, "waits", waitKinds, plimsollv1.WaitKind_name, 1)
	distinct(t, "capacities", capacities, plimsollv1.CapacityType_name, 1)
}

// distinct checks that all values but the first ones, which have no word, are used once.
func distinct[K comparable, V ~int32](t *testing.T, what string, words map[K]V, values map[int32]string, without int) {
	t.Helper()
	used := map[V]K{}
	for word, value := range words {
		if other, twice := used[value]; twice || value == 0 {
			t.Errorf("%s: %v is sent as %d, as is %v", what, word, value, other)
		}
		used[value] = word
	}
	if len(used) != len(values)-without {
		t.Errorf("%s: %d words for %d values", what, len(used), len(values)-without)
	}
}
