package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// web is a FleetPlacement in two members, one of which has no spot.
func web() *plimsollv1.FleetPlacement {
	counts := func(wanted, running int32) *plimsollv1.FleetCounts {
		return &plimsollv1.FleetCounts{Wanted: wanted, Set: wanted, Running: running, Ready: running}
	}
	return &plimsollv1.FleetPlacement{
		Namespace: "shop", Name: "web", Target: &plimsollv1.FleetTarget{ApiVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		State: plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_MOVING, Reason: "Moving", Message: "11 of 12 replicas are ready",
		Policy:  &plimsollv1.FleetPolicy{Replicas: 12, MinOnDemand: 3, SpotPercentage: 100, Spread: &plimsollv1.FleetSpread{MaxPercentPerMember: 60}},
		Running: 12, Ready: 11, Spot: counts(9, 8), OnDemand: counts(3, 3), CreatedAt: timestamppb.New(now.Add(-time.Hour)), HiddenMembers: 1,
		Members: []*plimsollv1.FleetMember{
			{Name: "prod-eu", Tier: 1, State: plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_MOVING, Spot: counts(9, 8), OnDemand: counts(0, 0), Reason: "tier 1, weight 1"},
			{Name: "prod-us", Tier: 1, State: plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_PLACED, Spot: counts(0, 0), OnDemand: counts(3, 3), Reason: "spot has had no room"},
		},
		LastMoves:  []*plimsollv1.FleetMove{{MovedAt: timestamppb.New(now.Add(-time.Minute)), Member: "prod-eu", Capacity: plimsollv1.CapacityType_CAPACITY_TYPE_SPOT, By: 4, Reason: "tier 1"}},
		Conditions: []*plimsollv1.Condition{{Type: "Feasible", Status: "False", Reason: "BoundsTooLow", Message: "maxima allow no more"}},
	}
}

func (h *hub) ListFleetPlacements(_ context.Context, request *plimsollv1.ListFleetPlacementsRequest) (*plimsollv1.ListFleetPlacementsResponse, error) {
	if request.GetNamespace() == "empty" {
		return &plimsollv1.ListFleetPlacementsResponse{}, nil
	}
	return &plimsollv1.ListFleetPlacementsResponse{Placements: []*plimsollv1.FleetPlacement{web()}, AsOf: timestamppb.New(now)}, nil
}

func (h *hub) GetFleetPlacement(_ context.Context, request *plimsollv1.GetFleetPlacementRequest) (*plimsollv1.GetFleetPlacementResponse, error) {
	if request.GetNamespace() != "shop" || request.GetName() != "web" {
		return nil, status.Error(codes.NotFound, "there is none")
	}
	return &plimsollv1.GetFleetPlacementResponse{Placement: web(), AsOf: timestamppb.New(now)}, nil
}

func (h *hub) WatchFleetPlacements(_ *plimsollv1.WatchFleetPlacementsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchFleetPlacementsResponse]) error {
	for _, m := range []*plimsollv1.WatchFleetPlacementsResponse{
		{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, Placement: web()}, {Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED},
	} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func (h *hub) ExplainFleetPlacement(context.Context, *plimsollv1.ExplainFleetPlacementRequest) (*plimsollv1.ExplainFleetPlacementResponse, error) {
	return &plimsollv1.ExplainFleetPlacementResponse{
		Placement: web(), Summary: []string{"12 replicas are asked for: at least 3 on on-demand, and up to 100 % on spot."},
		Members: []*plimsollv1.FleetMemberExplanation{{
			Name: "prod-us", WhyMember: "tier 1, weight 1", WhyOnDemand: "3 replicas are on on-demand: floor and percentage require 3 in the fleet",
			Spot:        &plimsollv1.FleetSupply{DrySince: timestamppb.New(now.Add(-time.Minute)), TryAt: timestamppb.New(now.Add(time.Minute)), Price: 1, Life: durationpb.New(time.Hour)},
			WouldChange: []*plimsollv1.FleetObstacle{{Obstacle: "spot has no room for more", Change: "spot must have room again", Spot: 5, OnDemand: 1}},
		}},
		Later: []*plimsollv1.FleetMove{{Member: "prod-us", Capacity: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, By: -1, Reason: "it waits until replacements are ready"}},
		AsOf:  timestamppb.New(now),
	}, nil
}

func (h *hub) WhatIfFleetPlacement(_ context.Context, request *plimsollv1.WhatIfFleetPlacementRequest) (*plimsollv1.WhatIfFleetPlacementResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.supposed = request
	return &plimsollv1.WhatIfFleetPlacementResponse{
		Now: web(), Then: []*plimsollv1.FleetMember{{Name: "prod-eu", Spot: &plimsollv1.FleetCounts{Wanted: 6}, OnDemand: &plimsollv1.FleetCounts{Wanted: 6}}},
		Spot: 6, OnDemand: 6, CostNow: 18, CostThen: 24, Later: 2,
		FirstMoves: []*plimsollv1.FleetMove{{Member: "prod-eu", Capacity: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, By: 3, Reason: "tier 1"}},
		Conditions: []*plimsollv1.Condition{{Type: "BoundsTooLow", Message: "maxima allow no more"}}, AsOf: timestamppb.New(now),
	}, nil
}

func TestFleetPlacementsAreShown(t *testing.T) {
	h := startHub(t)
	for name, args := range map[string]string{
		"fleetplacements.golden": "get fleetplacements -o wide", "fleetplacement.golden": "describe fleetplacement web -n shop",
		"fleetexplain.golden": "explain fleetplacement/web -n shop", "fleetwhatif.golden": "what-if fp/web -n shop --min-on-demand 6",
	} {
		got := h.run(t, strings.Fields(args)...)
		if got.code != exitOK {
			t.Errorf("%s: %+v", args, got)
		}
		golden(t, name, got.out)
	}
	for args, want := range map[string]string{
		"fleet -o name":   "fleetplacement/shop/web\n",
		"get fp -n empty": "",
		"get fleetplacements -o jsonpath={.placements[*].members[*].name}": "prod-eu prod-us",
		"describe fp shop/web -o name":                                     "fleetplacement/shop/web\n",
		"explain fleetplacement/shop/web -o name":                          "fleetplacement/shop/web\n",
		"get fleetplacements --watch":                                      "shop/web  Moving  ready 11/12  spot 8/9  on-demand 3/3  prod-eu 8+0  prod-us 0+3\n",
	} {
		if got := h.run(t, strings.Fields(args)...); got.code != exitOK || got.out != want {
			t.Errorf("plimsoll %s: %+v, want %q", args, got, want)
		}
	}
}

func TestFlagsOfWhatIfBecomeTheQuestion(t *testing.T) {
	h := startHub(t)
	args := []string{"what-if", "fleetplacement/web", "-n", "shop", "--replicas", "20", "--spot-percentage", "50", "--extra-spot", "2", "--ignore-window", "--max-per-domain", "70",
		"--domain-label", "region", "--tier", "region=eu,zone!=b;weight=2;max=10|region=us", "--tier", "", "--price", "spot=1;on-demand=2.5", "--price", "region=eu;spot=2;on-demand=3"}
	if got := h.run(t, args...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	want := &plimsollv1.WhatIfFleetPlacementRequest{
		Namespace: "shop", Name: "web", Replicas: new(int32(20)), SpotPercentage: new(int32(50)), ExtraSpot: new(int32(2)), IgnoreWindow: true,
		Spread: &plimsollv1.FleetSpread{MaxPercentPerMember: 60, MaxPercentPerDomain: 70, DomainLabel: "region"},
		Tiers: []*plimsollv1.FleetTier{
			{Members: []*plimsollv1.FleetChoice{{Selector: "region=eu,zone!=b", Weight: 2, Max: 10}, {Selector: "region=us"}}}, {Members: []*plimsollv1.FleetChoice{{}}},
		},
		Prices: []*plimsollv1.FleetPrice{{Spot: "1", OnDemand: "2.5"}, {Selector: "region=eu", Spot: "2", OnDemand: "3"}},
	}
	if got := h.supposed; !proto.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

func TestWhatNamesNoFleetPlacementIsRefused(t *testing.T) {
	h := startHub(t)
	for args, want := range map[string]string{
		"explain fleetplacement/web":                               "namespace in -n",
		"explain fleetplacement/shop/web -n other":                 "give one namespace",
		"explain fleetplacement/web more -n shop":                  "too many arguments",
		"what-if fleetplacement/web -n shop --strategy evict":      "--strategy: is for workloads of one cluster",
		"what-if prod-eu deployment/cart -n shop --tier a=b":       "--tier: is for FleetPlacements",
		"what-if fleetplacement/web -n shop --tier a=b;nonsense=1": "nonsense=1",
		"what-if fleetplacement/web -n shop --tier a=b;weight=-1":  "whole number",
		"what-if fleetplacement/web -n shop --price a=b;spot=1":    "on-demand",
		"describe fleetplacement":                                  "missing: NAME",
		"get fleetplacements --watch --order-by ready":             "give one of them",
	} {
		if got := h.run(t, strings.Fields(args)...); got.code == exitOK || !strings.Contains(got.err, want) {
			t.Errorf("plimsoll %s: %+v, want an error with %q", args, got, want)
		}
	}
	if got := h.run(t, "what-if", "fleetplacement/none", "-n", "shop", "--replicas", "2"); got.code != exitNotFound {
		t.Errorf("%+v", got)
	}
}
