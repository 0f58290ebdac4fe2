package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func moved() *plimsollv1.Event {
	return &plimsollv1.Event{
		Id: "prod-eu.7", At: timestamppb.New(now.Add(-90 * time.Second)), Type: plimsollv1.EventType_EVENT_TYPE_MOVE, Cluster: "prod-eu", Namespace: "shop",
		Kind: "Deployment", Name: "cart", Subject: "cart-6f-abcde", Reason: "mix", Message: "evicted from on-demand capacity",
	}
}

func (h *hub) ListEvents(_ context.Context, request *plimsollv1.ListEventsRequest) (*plimsollv1.ListEventsResponse, error) {
	if request.GetNamespace() == "empty" {
		return &plimsollv1.ListEventsResponse{}, nil
	}
	if request.GetPageToken() == "" {
		return &plimsollv1.ListEventsResponse{NextPageToken: "2", Events: []*plimsollv1.Event{moved()}}, nil
	}
	return &plimsollv1.ListEventsResponse{Events: []*plimsollv1.Event{{
		Id: "us.1", At: timestamppb.New(now.Add(-time.Hour)), Type: plimsollv1.EventType_EVENT_TYPE_INSUFFICIENT_CAPACITY_BEGAN, Cluster: "us", Subject: "spot", Message: "no room\x1b for 2 replicas",
	}}}, nil
}

func (h *hub) WatchEvents(_ *plimsollv1.WatchEventsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchEventsResponse]) error {
	return stream.Send(&plimsollv1.WatchEventsResponse{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, Event: moved()})
}

func (h *hub) ListOperations(_ context.Context, request *plimsollv1.ListOperationsRequest) (*plimsollv1.ListOperationsResponse, error) {
	if request.GetNamespace() == "empty" {
		return &plimsollv1.ListOperationsResponse{}, nil
	}
	one := operation(plimsollv1.OperationState_OPERATION_STATE_PENDING, "it waits for a worker")
	one.Key, one.User = &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", Name: "cart"}, "alice"
	many := operation(plimsollv1.OperationState_OPERATION_STATE_RUNNING, "ordering")
	many.Id, many.Key, many.Filter, many.Matched, many.Ordered = "m.prod-us.1", &plimsollv1.ObjectKey{Cluster: "prod-us"}, "true", 900, 50
	return &plimsollv1.ListOperationsResponse{Operations: []*plimsollv1.Operation{one, many}}, nil
}

func (h *hub) CancelOperation(_ context.Context, request *plimsollv1.CancelOperationRequest) (*plimsollv1.CancelOperationResponse, error) {
	if request.GetOperation() != "w.prod-eu.1" {
		return nil, status.Errorf(codes.NotFound, "no operation %q", request.GetOperation())
	}
	return &plimsollv1.CancelOperationResponse{Operation: operation(plimsollv1.OperationState_OPERATION_STATE_CANCELLED, "alice took it back")}, nil
}

func TestEventsAndOperationsAreListed(t *testing.T) {
	h := startHub(t)
	for _, resource := range []string{"events", "operations"} {
		got := h.run(t, "get", resource)
		if got.code != exitOK {
			t.Errorf("%+v", got)
		}
		golden(t, resource+".golden", got.out)
		if got := h.run(t, "get", resource, "-n", "empty"); got.code != exitOK || got.out != "" || !strings.HasPrefix(got.err, "No ") {
			t.Errorf("%+v", got)
		}
	}
	if events, get := h.run(t, "events", "-o", "wide"), h.run(t, "get", "events", "-o", "wide"); events != get || !strings.Contains(get.out, "cart-6f-abcde") {
		t.Errorf("%+v\n%+v", events, get)
	}
	if got := h.run(t, "events", "-o", "name"); got.out != "event/prod-eu.7\nevent/us.1\n" {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "events", "--watch"); got.code != exitOK || !strings.Contains(got.out, "prod-eu  Move  shop/deployment/cart  evicted from on-demand capacity\n") {
		t.Errorf("%+v", got)
	}
}

func TestOperationsAreCancelled(t *testing.T) {
	h := startHub(t)
	if got := h.run(t, "cancel", "operation/w.prod-eu.1"); got.code != exitOK || got.out != "operation/w.prod-eu.1: Cancelled: alice took it back\n" {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "cancel", "w.prod-eu.1", "none"); got.code != exitNotFound || !strings.Contains(got.err, "none") {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "cancel"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}
