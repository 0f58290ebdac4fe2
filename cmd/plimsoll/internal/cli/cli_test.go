package cli

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when the tests run.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// canary represents a token.
const canary = "canary-token"

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// plimsoll runs a command line with an environment.
func plimsoll(t *testing.T, environment map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), append([]string{"plimsoll"}, args...), Environment{
		Out: &out, Err: &errs, Getenv: func(key string) string { return environment[key] }, Now: func() time.Time { return now },
	})
	if strings.Contains(out.String()+errs.String(), canary) {
		t.Errorf("the output holds the token:\n%s%s", out.String(), errs.String())
	}
	return result{code, out.String(), errs.String()}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// hub is a fake of the API.
type hub struct {
	plimsollv1.UnimplementedClusterServiceServer
	plimsollv1.UnimplementedWorkloadServiceServer
	plimsollv1.UnimplementedObjectServiceServer
	plimsollv1.UnimplementedEventServiceServer
	plimsollv1.UnimplementedFleetServiceServer
	address string

	ahead time.Duration // of its clock

	mu         sync.Mutex
	tokens     []string                // that were sent
	fail       error                   // what every call fails with
	fails      int                     // how many calls that is; 0: all
	pages      int                     // of clusters that were asked for
	operations []*plimsollv1.Operation // that GetOperation answers, one after the other
	asked      []*plimsollv1.GetOperationRequest
	deadline   time.Duration   // of the last of these
	requests   []proto.Message // that came
	supposed   *plimsollv1.WhatIfFleetPlacementRequest
	watches    []watchScript // of clusters, one after the other
	filters    []string      // of these watches
}

func startHub(t *testing.T) *hub {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{address: listener.Addr().String()}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		h.keep(request)
		h.mu.Lock()
		h.tokens = append(h.tokens, strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ","))
		fail := h.fail
		if h.fails > 0 {
			if h.fails--; h.fails == 0 {
				h.fail = nil
			}
		}
		h.mu.Unlock()
		if err := grpc.SetHeader(ctx, metadata.Pairs(versionHeader, "v1.2.3", timeHeader, now.Add(h.ahead).Format(time.RFC3339Nano))); err != nil {
			return nil, err
		}
		if fail != nil {
			return nil, fail
		}
		return next(ctx, request)
	}), grpc.StreamInterceptor(h.keepWatched))
	plimsollv1.RegisterClusterServiceServer(server, h)
	plimsollv1.RegisterWorkloadServiceServer(server, h)
	plimsollv1.RegisterObjectServiceServer(server, h)
	plimsollv1.RegisterEventServiceServer(server, h)
	plimsollv1.RegisterFleetServiceServer(server, h)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return h
}

// run calls the hub.
func (h *hub) run(t *testing.T, args ...string) result {
	t.Helper()
	return plimsoll(t, map[string]string{"PLIMSOLL_TOKEN": canary}, append(args, "--api", h.address, "--insecure-plaintext")...)
}

func (h *hub) ListClusters(_ context.Context, request *plimsollv1.ListClustersRequest) (*plimsollv1.ListClustersResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages++
	if request.GetPageToken() == "" {
		return &plimsollv1.ListClustersResponse{NextPageToken: "2", AsOf: timestamppb.New(now), Clusters: []*plimsollv1.Cluster{{
			Name: "prod-eu", State: plimsollv1.ClusterState_CLUSTER_STATE_READY, Reason: "Healthy", KubernetesVersion: "v1.36.1",
			Owner: "10.0.0.1:9444", RegisteredAt: timestamppb.New(now.Add(-26 * time.Hour)),
			Workloads: &plimsollv1.WorkloadCounts{Managed: 3, SpotActual: 68, SpotWanted: 70, OnDemandActual: 32, OnDemandWanted: 30},
		}}}, nil
	}
	return &plimsollv1.ListClustersResponse{
		AsOf: timestamppb.New(now.Add(-time.Second)),
		Clusters: []*plimsollv1.Cluster{{
			Name: "us", State: plimsollv1.ClusterState_CLUSTER_STATE_UNREACHABLE, Reason: "ConnectionRefused", RegisteredAt: timestamppb.New(now.Add(-90 * time.Second)),
		}, {Name: "zz\x1b[31m", State: 99}},
		Unreachable: []*plimsollv1.UnreachableMember{{Member: "us", Reason: "no replica owns it at the moment"}},
	}, nil
}

func (h *hub) ListWorkloads(_ context.Context, request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	if request.GetNamespace() == "empty" {
		return &plimsollv1.ListWorkloadsResponse{}, nil
	}
	db := &plimsollv1.Workload{
		Cluster: "prod-us", Namespace: "data", Kind: "StatefulSet", Name: "database-primary", State: plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY,
		Placement: &plimsollv1.Placement{Replicas: 3, SpotWanted: 1, OnDemandWanted: 2, OnDemandActual: 3, Reason: "the hub is read-only"},
	}
	return &plimsollv1.ListWorkloadsResponse{AsOf: timestamppb.New(now), Workloads: []*plimsollv1.Workload{cart(), db}}, nil
}

func cart() *plimsollv1.Workload {
	percentage, slot := int32(70), int32(0)
	return &plimsollv1.Workload{
		Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: "cart", State: plimsollv1.WorkloadState_WORKLOAD_STATE_MOVING,
		Placement: &plimsollv1.Placement{
			Replicas: 10, SpotWanted: 7, SpotActual: 6, OnDemandWanted: 3, OnDemandActual: 4, Pending: 1, Reason: "1 replica is being moved to spot",
			SpotPercentage: &percentage, SpotPercentageSource: plimsollv1.ValueSource_VALUE_SOURCE_NAMESPACE,
			MinOnDemandSource: plimsollv1.ValueSource_VALUE_SOURCE_WORKLOAD,
			Problems:          []*plimsollv1.PolicyProblem{{Key: "plimsoll.dev/min-on-demand", Value: "many", Rule: "a whole number from 0 to 10000"}},
			NextCheckAt:       timestamppb.New(now.Add(10 * time.Second)), Unprotected: true,
			Window: &plimsollv1.DisruptionWindow{Schedule: "0 14 * * *", TimeZone: "UTC", NextOpening: timestamppb.New(now.Add(2 * time.Hour))},
		},
		Explanation: []string{"Of 10 replicas, 7 belong on spot and 3 on-demand.", "1 replica is being moved to spot."},
		Waits: []*plimsollv1.Wait{
			{Kind: plimsollv1.WaitKind_WAIT_KIND_COOLDOWN, Until: timestamppb.New(now.Add(8 * time.Second)), Reason: "the next batch waits for the cool-down"},
			{Kind: plimsollv1.WaitKind_WAIT_KIND_BUDGET, Subject: "cart", Replicas: 2, Reason: "the disruption budget allows no more"},
		},
		LastMoves: []*plimsollv1.Move{{
			MovedAt: timestamppb.New(now.Add(-2 * time.Minute)), Pod: "cart-6f-xxxxx", From: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
			Strategy: plimsollv1.MoveStrategy_MOVE_STRATEGY_EVICT, Purpose: plimsollv1.MovePurpose_MOVE_PURPOSE_MIX, Reason: "there were too many",
		}},
		Pods: []*plimsollv1.Pod{
			{
				Name: "cart-6f-abcde", Slot: &slot, CapacityTypeWanted: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
				CapacityTypeActual: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, Node: "node-1", Phase: "Running", Ready: true,
			},
			{Name: "cart-6f-vwxyz", CapacityTypeActual: plimsollv1.CapacityType_CAPACITY_TYPE_SPOT, Phase: "Pending", Reason: "it has no slot"},
		},
	}
}

func (h *hub) GetWorkload(_ context.Context, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	if request.GetCluster() != "prod-eu" || request.GetNamespace() != "shop" || request.GetKind() != "Deployment" || request.GetName() != "cart" {
		return nil, status.Errorf(codes.NotFound, "member %q: no such workload", request.GetCluster())
	}
	answer := &plimsollv1.GetWorkloadResponse{Workload: cart(), AsOf: timestamppb.New(now)}
	// A pod a page: whoever shows fewer than all has not followed.
	if pods := answer.GetWorkload().GetPods(); request.GetPageToken() == "" {
		answer.Workload.Pods, answer.NextPageToken = pods[:1], "second"
	} else {
		answer.Workload.Pods = pods[1:]
	}
	return answer, nil
}

func (h *hub) WhatIf(_ context.Context, request *plimsollv1.WhatIfRequest) (*plimsollv1.WhatIfResponse, error) {
	then := cart()
	then.Placement.SpotPercentage, then.Placement.SpotPercentageSource = request.SpotPercentage, plimsollv1.ValueSource_VALUE_SOURCE_REQUEST
	then.Placement.SpotWanted, then.Placement.OnDemandWanted = 3, 7
	then.Explanation = []string{"Of 10 replicas, 3 belong on spot and 7 on-demand."}
	then.LastMoves = nil
	moves := []*plimsollv1.Move{{
		Pod: "cart-6f-vwxyz", From: plimsollv1.CapacityType_CAPACITY_TYPE_SPOT, Strategy: plimsollv1.MoveStrategy_MOVE_STRATEGY_RELEASE,
		Purpose: plimsollv1.MovePurpose_MOVE_PURPOSE_MIX, Reason: "spot has 3 replicas more than the policy's 3",
	}}
	return &plimsollv1.WhatIfResponse{Now: cart(), Then: then, Moves: 3, FirstMoves: moves, AsOf: timestamppb.New(now)}, nil
}

func (h *hub) RequeueWorkload(context.Context, *plimsollv1.RequeueWorkloadRequest) (*plimsollv1.RequeueWorkloadResponse, error) {
	return &plimsollv1.RequeueWorkloadResponse{Operation: operation(plimsollv1.OperationState_OPERATION_STATE_PENDING, "it waits for a worker")}, nil
}

func (h *hub) GetOperation(ctx context.Context, request *plimsollv1.GetOperationRequest) (*plimsollv1.GetOperationResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, request)
	if deadline, ok := ctx.Deadline(); ok {
		h.deadline = time.Until(deadline)
	}
	next := h.operations[0]
	if len(h.operations) > 1 {
		h.operations = h.operations[1:]
	}
	return &plimsollv1.GetOperationResponse{Operation: next}, nil
}

func operation(state plimsollv1.OperationState, message string) *plimsollv1.Operation {
	r := &plimsollv1.Operation{Id: "w.prod-eu.1", State: state, Message: message, AcceptedAt: timestamppb.New(now)}
	if final(r) {
		r.FinishedAt = timestamppb.New(now.Add(1234567 * time.Microsecond))
	}
	return r
}
