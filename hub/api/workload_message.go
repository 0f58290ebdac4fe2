package api

import (
	"math"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

func workloadMessage(view *spot.WorkloadView) *plimsollv1.Workload {
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
		},
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

func podMessage(view *spot.PodView) *plimsollv1.Pod {
	shown := &plimsollv1.Pod{
		Name:               view.Name,
		CapacityTypeWanted: capacities[view.Wanted],
		CapacityTypeActual: capacities[view.Actual],
		Node:               view.Node,
		Phase:              view.Phase,
		Ready:              view.Ready,
		Reason:             view.Reason,
	}
	if view.Slot >= 0 {
		shown.Slot = optional(&view.Slot)
	}
	return shown
}

// positionOf is where a list goes on behind a workload.
func positionOf(shown *plimsollv1.Workload) position {
	return position{shown.GetCluster(), shown.GetNamespace(), shown.GetKind(), shown.GetName()}
}

var workloadStates = map[spot.State]plimsollv1.WorkloadState{
	spot.StateUnmanaged: plimsollv1.WorkloadState_WORKLOAD_STATE_UNMANAGED,
	spot.StateConverged: plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED,
	spot.StateMoving:    plimsollv1.WorkloadState_WORKLOAD_STATE_MOVING,
	spot.StateWaiting:   plimsollv1.WorkloadState_WORKLOAD_STATE_WAITING,
	spot.StateInvalid:   plimsollv1.WorkloadState_WORKLOAD_STATE_INVALID,
	spot.StateReadOnly:  plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY,
}

var sources = map[spot.Source]plimsollv1.ValueSource{
	spot.SourceWorkload:  plimsollv1.ValueSource_VALUE_SOURCE_WORKLOAD,
	spot.SourceNamespace: plimsollv1.ValueSource_VALUE_SOURCE_NAMESPACE,
	spot.SourceDefault:   plimsollv1.ValueSource_VALUE_SOURCE_DEFAULT,
}

var capacities = map[spot.Capacity]plimsollv1.CapacityType{
	spot.Spot:     plimsollv1.CapacityType_CAPACITY_TYPE_SPOT,
	spot.OnDemand: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
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
