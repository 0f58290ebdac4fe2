package plimsollv1_test

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// What the examples of the OpenAPI document are made of.
var (
	exampleTime    = timestamppb.New(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	exampleKey     = &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "deployment-spot", Namespace: "shop", Name: "cart"}
	exampleCluster = &plimsollv1.Cluster{Name: "prod-eu", State: plimsollv1.ClusterState_CLUSTER_STATE_READY, Reason: "Healthy", KubernetesVersion: "v1.36.1"}
	exampleObject  = &plimsollv1.ObjectState{
		Key: exampleKey, State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, Attempts: 4,
		LastOutcome: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR, LastError: "conflict", NextTryAt: exampleTime,
		FailingSince: timestamppb.New(exampleTime.AsTime().Add(-10 * time.Minute)),
	}
	exampleOperation = &plimsollv1.Operation{
		Id: "o.prod-eu.shop.4f6c", Key: exampleKey, AcceptedAt: exampleTime, State: plimsollv1.OperationState_OPERATION_STATE_PENDING,
		Message: "it waits for a worker", User: "alice",
	}
	exampleEvent = &plimsollv1.Event{
		Id: "0631-01", At: exampleTime, Type: plimsollv1.EventType_EVENT_TYPE_MOVE, Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment",
		Name: "cart", Subject: "cart-6d5f9-x2x7k", Reason: "move", Message: "pod cart-6d5f9-x2x7k was evicted from on-demand",
	}
)

// exampleWorkload is a workload of which some replicas belong on spot capacity.
func exampleWorkload(spot int32) *plimsollv1.Workload {
	return &plimsollv1.Workload{
		Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: "cart", State: plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED,
		Placement: &plimsollv1.Placement{Replicas: 10, SpotWanted: spot, SpotActual: 7, OnDemandWanted: 10 - spot, OnDemandActual: 3},
	}
}

// exampleMember is the part of a FleetPlacement in a member, with some replicas on spot capacity.
func exampleMember(spot int32) *plimsollv1.FleetMember {
	return &plimsollv1.FleetMember{
		Name: "prod-eu", Tier: 1, State: plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_PLACED, Reason: "it is in the first tier",
		Spot: &plimsollv1.FleetCounts{Wanted: spot, Set: spot, Running: spot, Ready: spot}, OnDemand: &plimsollv1.FleetCounts{Wanted: 4, Set: 4, Running: 4, Ready: 4},
	}
}

func examplePlacement() *plimsollv1.FleetPlacement {
	return &plimsollv1.FleetPlacement{
		Namespace: "shop", Name: "web", Target: &plimsollv1.FleetTarget{ApiVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		State: plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_PLACED, Reason: "Placed",
		Policy:  &plimsollv1.FleetPolicy{Replicas: 12, MinOnDemand: 4, SpotPercentage: 70},
		Running: 12, Ready: 12, Members: []*plimsollv1.FleetMember{exampleMember(8)}, CreatedAt: exampleTime,
	}
}

// exampleAnswers are answers as the hub gives them, by call, of watches the first message. The validator checks them against the document.
func exampleAnswers() map[string]proto.Message {
	const put = plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT
	moves := []*plimsollv1.Move{{
		Pod: "cart-6d5f9-x2x7k", From: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, Strategy: plimsollv1.MoveStrategy_MOVE_STRATEGY_EVICT,
		Purpose: plimsollv1.MovePurpose_MOVE_PURPOSE_MIX, Reason: "slot 7 belongs on spot",
	}}
	return map[string]proto.Message{
		"ClusterService_ListClusters":        &plimsollv1.ListClustersResponse{Clusters: []*plimsollv1.Cluster{exampleCluster}, AsOf: exampleTime},
		"ClusterService_WatchClusters":       &plimsollv1.WatchClustersResponse{Type: put, Cluster: exampleCluster},
		"ClusterService_GetCluster":          &plimsollv1.GetClusterResponse{Cluster: exampleCluster, AsOf: exampleTime},
		"WorkloadService_ListWorkloads":      &plimsollv1.ListWorkloadsResponse{Workloads: []*plimsollv1.Workload{exampleWorkload(7)}, AsOf: exampleTime},
		"WorkloadService_WatchWorkloads":     &plimsollv1.WatchWorkloadsResponse{Type: put, Workload: exampleWorkload(7)},
		"WorkloadService_GetWorkload":        &plimsollv1.GetWorkloadResponse{Workload: exampleWorkload(7), AsOf: exampleTime},
		"WorkloadService_WhatIf":             &plimsollv1.WhatIfResponse{Now: exampleWorkload(7), Then: exampleWorkload(8), Moves: 1, FirstMoves: moves, AsOf: exampleTime},
		"WorkloadService_RequeueWorkload":    &plimsollv1.RequeueWorkloadResponse{Operation: exampleOperation},
		"ObjectService_ListControllers":      &plimsollv1.ListControllersResponse{Controllers: []*plimsollv1.Controller{{Cluster: "prod-eu", Name: "deployment-spot", Kind: "apps/v1 Deployment", Objects: 120, Queued: 2}}, AsOf: exampleTime},
		"ObjectService_ListObjects":          &plimsollv1.ListObjectsResponse{Objects: []*plimsollv1.ObjectState{exampleObject}, AsOf: exampleTime},
		"ObjectService_WatchObjects":         &plimsollv1.WatchObjectsResponse{Type: put, Object: exampleObject},
		"ObjectService_GetObjectState":       &plimsollv1.GetObjectStateResponse{Object: exampleObject, AsOf: exampleTime},
		"ObjectService_RequeueObject":        &plimsollv1.RequeueObjectResponse{Operation: exampleOperation},
		"ObjectService_RequeueMatching":      &plimsollv1.RequeueMatchingResponse{Matched: 1, Sample: []*plimsollv1.ObjectKey{exampleKey}, Operations: []string{"m.prod-eu.shop.77aa"}},
		"ObjectService_GetOperation":         &plimsollv1.GetOperationResponse{Operation: exampleOperation, AsOf: exampleTime},
		"ObjectService_ListOperations":       &plimsollv1.ListOperationsResponse{Operations: []*plimsollv1.Operation{exampleOperation}, AsOf: exampleTime},
		"ObjectService_CancelOperation":      &plimsollv1.CancelOperationResponse{Operation: exampleOperation},
		"EventService_ListEvents":            &plimsollv1.ListEventsResponse{Events: []*plimsollv1.Event{exampleEvent}, AsOf: exampleTime},
		"EventService_WatchEvents":           &plimsollv1.WatchEventsResponse{Type: put, Event: exampleEvent},
		"FleetService_ListFleetPlacements":   &plimsollv1.ListFleetPlacementsResponse{Placements: []*plimsollv1.FleetPlacement{examplePlacement()}, AsOf: exampleTime},
		"FleetService_WatchFleetPlacements":  &plimsollv1.WatchFleetPlacementsResponse{Type: put, Placement: examplePlacement()},
		"FleetService_GetFleetPlacement":     &plimsollv1.GetFleetPlacementResponse{Placement: examplePlacement(), AsOf: exampleTime},
		"FleetService_ExplainFleetPlacement": &plimsollv1.ExplainFleetPlacementResponse{Placement: examplePlacement(), Summary: []string{"12 replicas are planned: 8 on spot and 4 on on-demand"}},
		"FleetService_WhatIfFleetPlacement":  &plimsollv1.WhatIfFleetPlacementResponse{Now: examplePlacement(), Then: []*plimsollv1.FleetMember{exampleMember(10)}, Spot: 10, OnDemand: 4, AsOf: exampleTime},
	}
}

// exampleBodies are requests that have one, by call.
func exampleBodies() map[string]proto.Message {
	spot, replicas := int32(80), int32(14)
	return map[string]proto.Message{
		"ObjectService_RequeueMatching":     &plimsollv1.RequeueMatchingRequest{Filter: `object.last_outcome == "ERROR"`, ValidateOnly: true, RequestId: "incident-7"},
		"WorkloadService_WhatIf":            &plimsollv1.WhatIfRequest{SpotPercentage: &spot},
		"FleetService_WhatIfFleetPlacement": &plimsollv1.WhatIfFleetPlacementRequest{Replicas: &replicas},
	}
}
