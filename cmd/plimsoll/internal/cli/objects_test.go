package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func (h *hub) ListControllers(_ context.Context, request *plimsollv1.ListControllersRequest) (*plimsollv1.ListControllersResponse, error) {
	if request.GetCluster() == "empty" {
		return &plimsollv1.ListControllersResponse{}, nil
	}
	if request.GetPageToken() == "" {
		return &plimsollv1.ListControllersResponse{NextPageToken: "2", Controllers: []*plimsollv1.Controller{
			{Cluster: "prod-eu", Name: "deployment-spot", Kind: "apps/v1 Deployment", Objects: 1200, Queued: 3, Running: 5},
		}}, nil
	}
	return &plimsollv1.ListControllersResponse{
		Controllers: []*plimsollv1.Controller{{Cluster: "us", Name: "fleet-config", Kind: "v1 ConfigMap", Objects: 2, Queued: 2, Held: "the member does not answer"}},
		Unreachable: []*plimsollv1.UnreachableMember{{Member: "us", Reason: "the member is Unreachable"}},
	}, nil
}

func (h *hub) ListObjects(_ context.Context, request *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	if request.GetFilter() == topFilter {
		return &plimsollv1.ListObjectsResponse{Objects: busyObjects()}, nil
	}
	if request.GetCluster() != "prod-eu" || request.GetController() != "fleet-config" || request.GetNamespace() != "shop" {
		return &plimsollv1.ListObjectsResponse{}, nil
	}
	return &plimsollv1.ListObjectsResponse{Objects: []*plimsollv1.ObjectState{
		{
			Key:   &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "fleet-config", Namespace: "shop", Name: "limits"},
			State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, LastOutcome: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR,
			Attempts: 6, FailingSince: timestamppb.New(now.Add(-14 * time.Minute)), LastError: "no source", Reason: "backing off after an error", NextTryAt: timestamppb.New(now.Add(32 * time.Second)),
		},
		{
			Key:   &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "fleet-config", Name: "whole"},
			State: plimsollv1.ReconcileState_RECONCILE_STATE_IDLE,
		},
	}}, nil
}

func (h *hub) RequeueObject(_ context.Context, request *plimsollv1.RequeueObjectRequest) (*plimsollv1.RequeueObjectResponse, error) {
	if request.GetController() != "fleet-config" || request.GetNamespace()+"/"+request.GetName() != "shop/limits" && request.GetNamespace()+request.GetName() != "whole" {
		return nil, status.Errorf(codes.NotFound, "no object %q", request.GetNamespace()+"/"+request.GetName())
	}
	return &plimsollv1.RequeueObjectResponse{Operation: operation(plimsollv1.OperationState_OPERATION_STATE_PENDING, "it waits for a worker")}, nil
}

func TestControllersAndObjectsAreShown(t *testing.T) {
	h := startHub(t)
	got := h.run(t, "controllers")
	if got.code != exitOK || !strings.Contains(got.err, "us") {
		t.Errorf("%+v", got)
	}
	golden(t, "controllers.golden", got.out)
	got = h.run(t, "objects", "--cluster", "prod-eu", "--controller", "fleet-config", "-n", "shop")
	if got.code != exitOK {
		t.Errorf("%+v", got)
	}
	golden(t, "objects.golden", got.out)
	if got := h.run(t, "controllers", "--cluster", "empty"); got.code != exitOK || got.out != "" || !strings.HasPrefix(got.err, "No controllers found") {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "objects"); got.code != exitOK || got.out != "" || !strings.HasPrefix(got.err, "No objects found") {
		t.Errorf("%+v", got)
	}
}

func TestAnyObjectOfAnyControllerCanBeOrdered(t *testing.T) {
	h := startHub(t)
	for args, want := range map[string]string{
		"shop/limits": "shop/limits (fleet-config) of prod-eu: Pending: it waits for a worker\noperation w.prod-eu.1\n",
		"whole":       "whole (fleet-config) of prod-eu: Pending: it waits for a worker\noperation w.prod-eu.1\n",
	} {
		if got := h.run(t, "requeue", "prod-eu", args, "--controller", "fleet-config"); got.code != exitOK || got.out != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
	for args, want := range map[string]int{"shop/other": exitNotFound, "shop/deployment/limits": exitUsage, "/limits": exitUsage, "shop/": exitUsage} {
		if got := h.run(t, "requeue", "prod-eu", args, "--controller", "fleet-config"); got.code != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
