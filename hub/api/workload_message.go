package api

import (
	"cmp"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// workloadMessage shows a workload; now is when it is asked about.
func workloadMessage(view *report.Workload, now time.Time) *plimsollv1.Workload {
	shown := &plimsollv1.Workload{
		Cluster:   view.Member,
		Namespace: view.Namespace,
		Kind:      view.Kind,
		Name:      view.Name,
		State:     workloadStates[view.State],
		Placement: &plimsollv1.Placement{
			Replicas:             count(view.Replicas),
			SpotWanted:           count(view.SpotWanted),
			OnDemandWanted:       count(view.OnDemandWanted),
			SpotActual:           count(view.SpotActual),
			OnDemandActual:       count(view.OnDemandActual),
			Unassigned:           count(view.Unassigned),
			Pending:              count(view.Pending),
			SpotPercentage:       optional(view.Policy.Percentage),
			SpotPercentageSource: sources[view.Policy.PercentageSource],
			MinOnDemand:          optional(view.Policy.MinOnDemand),
			MinOnDemandSource:    sources[view.Policy.MinOnDemandSource],
			Reason:               view.Reason,
			NextCheckAt:          moment(view.NextCheck),
			Interrupted:          count(view.Interrupted),
			Released:             count(view.Released),
			Window:               windowMessage(&view.Policy, now),
			Strategy:             strategies[cmp.Or(view.Settings.Strategy, policy.StrategyEvict)],
			PendingTimeout:       durationpb.New(view.Settings.PendingTimeout),
			Paused:               view.Settings.Paused,
			Unprotected:          view.Unprotected,
		},
		Explanation: view.Explanation,
	}
	if view.Settings.ReadOnly {
		shown.Placement.ReadOnlyBy = strings.TrimPrefix(cmp.Or(view.Settings.ReadOnlyBy, "hub"), "the ")
	}
	for i := range view.Waits {
		shown.Waits = append(shown.Waits, waitMessage(&view.Waits[i]))
	}
	for i := range view.Moves {
		shown.LastMoves = append(shown.LastMoves, moveMessage(&view.Moves[i]))
	}
	for _, problem := range view.Policy.Problems {
		shown.Placement.Problems = append(shown.Placement.Problems, &plimsollv1.PolicyProblem{
			Key: problem.Key, Value: problem.Value, Rule: problem.Rule,
		})
	}
	for i := range view.Pods {
		shown.Pods = append(shown.Pods, podMessage(&view.Pods[i]))
	}
	return shown
}

func podMessage(view *report.Pod) *plimsollv1.Pod {
	shown := &plimsollv1.Pod{
		Name:               view.Name,
		CapacityTypeWanted: capacities[view.Wanted],
		CapacityTypeActual: capacities[view.Actual],
		Node:               view.Node,
		Phase:              view.Phase,
		Ready:              view.Ready,
		Reason:             view.Reason,
		Interrupted:        view.Interrupted,
		Released:           view.Released,
		WaitsFor:           waitKinds[view.Waits],
	}
	if view.Slot >= 0 {
		shown.Slot = optional(&view.Slot)
	}
	return shown
}

// windowMessage shows the disruption window; nil: there is none.
func windowMessage(pol *policy.Policy, now time.Time) *plimsollv1.DisruptionWindow {
	w := pol.Window
	if w == nil {
		return nil
	}
	return &plimsollv1.DisruptionWindow{
		Schedule: w.Schedule, TimeZone: w.Zone, Duration: durationpb.New(w.Duration), Source: sources[pol.WindowSource],
		Open: w.Contains(now), NextOpening: moment(w.Next(now)),
	}
}

func waitMessage(w *plan.Wait) *plimsollv1.Wait {
	return &plimsollv1.Wait{
		Kind: waitKinds[w.Kind], Subject: w.Subject, Replicas: count(w.Replicas), Since: moment(w.Since), Until: moment(w.Until), Reason: w.Reason,
	}
}

func moveMessage(m *report.Move) *plimsollv1.Move {
	return &plimsollv1.Move{
		MovedAt: moment(m.At), Pod: m.Pod, From: capacities[m.From], Strategy: strategies[m.Strategy], Purpose: purposes[m.For], Reason: m.Why,
	}
}

// nameOfWorkload is where a workload is in lists by name.
func nameOfWorkload(shown *plimsollv1.Workload) lists.Position {
	return lists.Position{shown.GetCluster(), shown.GetNamespace(), shown.GetKind(), shown.GetName()}
}

var workloadStates = map[plan.State]plimsollv1.WorkloadState{
	plan.StateUnmanaged: plimsollv1.WorkloadState_WORKLOAD_STATE_UNMANAGED,
	plan.StateConverged: plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED,
	plan.StateMoving:    plimsollv1.WorkloadState_WORKLOAD_STATE_MOVING,
	plan.StateWaiting:   plimsollv1.WorkloadState_WORKLOAD_STATE_WAITING,
	plan.StateInvalid:   plimsollv1.WorkloadState_WORKLOAD_STATE_INVALID,
	plan.StateReadOnly:  plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY,
}

var sources = map[policy.Source]plimsollv1.ValueSource{
	policy.SourceWorkload:  plimsollv1.ValueSource_VALUE_SOURCE_WORKLOAD,
	policy.SourceNamespace: plimsollv1.ValueSource_VALUE_SOURCE_NAMESPACE,
	policy.SourceDefault:   plimsollv1.ValueSource_VALUE_SOURCE_DEFAULT,
	policy.SourceRequest:   plimsollv1.ValueSource_VALUE_SOURCE_REQUEST,
	policy.SourceFleet:     plimsollv1.ValueSource_VALUE_SOURCE_FLEET,
}

var strategies = map[policy.Strategy]plimsollv1.MoveStrategy{
	policy.StrategyEvict:   plimsollv1.MoveStrategy_MOVE_STRATEGY_EVICT,
	policy.StrategyRelease: plimsollv1.MoveStrategy_MOVE_STRATEGY_RELEASE,
}

var purposes = map[plan.Purpose]plimsollv1.MovePurpose{
	plan.PurposeMove:                 plimsollv1.MovePurpose_MOVE_PURPOSE_MIX,
	plan.PurposeInsufficientCapacity: plimsollv1.MovePurpose_MOVE_PURPOSE_INSUFFICIENT_CAPACITY,
	plan.PurposeInterruption:         plimsollv1.MovePurpose_MOVE_PURPOSE_INTERRUPTION,
	plan.PurposeFinish:               plimsollv1.MovePurpose_MOVE_PURPOSE_FINISH,
	plan.PurposeAdvisory:             plimsollv1.MovePurpose_MOVE_PURPOSE_ADVISORY,
}

var waitKinds = map[plan.WaitKind]plimsollv1.WaitKind{
	plan.WaitWindow:      plimsollv1.WaitKind_WAIT_KIND_WINDOW,
	plan.WaitCooldown:    plimsollv1.WaitKind_WAIT_KIND_COOLDOWN,
	plan.WaitBudget:      plimsollv1.WaitKind_WAIT_KIND_BUDGET,
	plan.WaitRollout:     plimsollv1.WaitKind_WAIT_KIND_ROLLOUT,
	plan.WaitUnexplained: plimsollv1.WaitKind_WAIT_KIND_UNEXPLAINED,
	plan.WaitReplacement: plimsollv1.WaitKind_WAIT_KIND_REPLACEMENT,
	plan.WaitDry:         plimsollv1.WaitKind_WAIT_KIND_DRY,
	plan.WaitCapacity:    plimsollv1.WaitKind_WAIT_KIND_CAPACITY,
	plan.WaitCeiling:     plimsollv1.WaitKind_WAIT_KIND_CEILING,
	plan.WaitPaused:      plimsollv1.WaitKind_WAIT_KIND_PAUSED,
	plan.WaitReadOnly:    plimsollv1.WaitKind_WAIT_KIND_READ_ONLY,
	plan.WaitTemplate:    plimsollv1.WaitKind_WAIT_KIND_TEMPLATE,
	plan.WaitProtected:   plimsollv1.WaitKind_WAIT_KIND_PROTECTED,
	plan.WaitRefused:     plimsollv1.WaitKind_WAIT_KIND_REFUSED,
}

var capacities = map[capacity.Type]plimsollv1.CapacityType{
	capacity.Spot:     plimsollv1.CapacityType_CAPACITY_TYPE_SPOT,
	capacity.OnDemand: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
}

// count fits a number of replicas into a message.
func count(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

func optional(n *int) *int32 {
	if n == nil {
		return nil
	}
	fits := count(*n)
	return &fits
}
