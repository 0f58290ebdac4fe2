package cli

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func (h *hub) keep(request any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, request.(proto.Message))
}

// keepWatched keeps the request of a watch.
func (h *hub) keepWatched(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(service, &keeping{stream, h})
}

type keeping struct {
	grpc.ServerStream
	hub *hub
}

func (k *keeping) RecvMsg(message any) error {
	if err := k.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	k.hub.keep(message)
	return nil
}

// take returns the requests that came since the last time.
func (h *hub) take() []proto.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := slices.Clone(h.requests)
	h.requests = nil
	return taken
}

func (h *hub) WatchWorkloads(_ *plimsollv1.WatchWorkloadsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchWorkloadsResponse]) error {
	return stream.Send(&plimsollv1.WatchWorkloadsResponse{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, Workload: cart()})
}

// A flag that is lost on the way shows in nothing else: the fake answers the same without it, and so may a hub.
func TestTheHubIsAskedForWhatTheCommandLineSays(t *testing.T) {
	h := startHub(t)
	h.watches = []watchScript{shows(nil, memberAt("1", ready))}
	for line, want := range map[string]proto.Message{
		"get clusters --filter true --order-by name": &plimsollv1.ListClustersRequest{PageSize: pageOf, Filter: "true", OrderBy: "name"},
		"get clusters --filter true --watch":         &plimsollv1.WatchClustersRequest{Filter: "true"},
		"get controllers --cluster prod-eu":          &plimsollv1.ListControllersRequest{Cluster: "prod-eu", PageSize: pageOf},
		"get workloads --cluster prod-eu -n shop --filter true --order-by name": &plimsollv1.ListWorkloadsRequest{
			Cluster: "prod-eu", Namespace: "shop", PageSize: pageOf, Filter: "true", OrderBy: "name",
		},
		"get workloads --cluster prod-eu -n shop --filter true --watch": &plimsollv1.WatchWorkloadsRequest{Cluster: "prod-eu", Namespace: "shop", Filter: "true"},
		"get objects --cluster prod-eu --controller webapp -n shop --filter true --order-by name": &plimsollv1.ListObjectsRequest{
			Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", PageSize: pageOf, Filter: "true", OrderBy: "name",
		},
		"get objects --cluster prod-eu --controller webapp -n shop --filter true --watch": &plimsollv1.WatchObjectsRequest{
			Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", Filter: "true",
		},
		"get events --cluster prod-eu -n shop --filter true --order-by at": &plimsollv1.ListEventsRequest{
			Cluster: "prod-eu", Namespace: "shop", PageSize: pageOf, Filter: "true", OrderBy: "at",
		},
		"get events --cluster prod-eu -n shop --filter true --watch": &plimsollv1.WatchEventsRequest{Cluster: "prod-eu", Namespace: "shop", Filter: "true"},
		"get operations --cluster prod-eu -n shop --filter true --order-by accepted_at": &plimsollv1.ListOperationsRequest{
			Cluster: "prod-eu", Namespace: "shop", PageSize: pageOf, Filter: "true", OrderBy: "accepted_at",
		},
		"get operations --cluster prod-eu -n shop --filter true --watch": &plimsollv1.ListOperationsRequest{
			Cluster: "prod-eu", Namespace: "shop", PageSize: pageOf, Filter: "true",
		},
		"get fleetplacements -n shop --filter true --order-by name": &plimsollv1.ListFleetPlacementsRequest{
			Namespace: "shop", PageSize: pageOf, Filter: "true", OrderBy: "name",
		},
		"get fleetplacements -n shop --filter true --watch": &plimsollv1.WatchFleetPlacementsRequest{Namespace: "shop", Filter: "true"},
		"requeue prod-eu shop/deployment/cart":              &plimsollv1.RequeueWorkloadRequest{Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: "cart"},
		"requeue prod-eu shop/deployment/cart --force": &plimsollv1.RequeueWorkloadRequest{
			Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: "cart", Force: true,
		},
		"requeue prod-eu shop/limits --controller fleet-config": &plimsollv1.RequeueObjectRequest{
			Cluster: "prod-eu", Controller: "fleet-config", Namespace: "shop", Name: "limits",
		},
		"requeue prod-eu shop/limits --controller fleet-config --force": &plimsollv1.RequeueObjectRequest{
			Cluster: "prod-eu", Controller: "fleet-config", Namespace: "shop", Name: "limits", Force: true,
		},
		"requeue --filter true --cluster prod-eu --controller webapp -n shop --dry-run": &plimsollv1.RequeueMatchingRequest{
			Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", Filter: "true", ValidateOnly: true,
		},
		"requeue --filter true --cluster prod-eu --controller webapp --per-second 5 --request-id once --force": &plimsollv1.RequeueMatchingRequest{
			Cluster: "prod-eu", Controller: "webapp", Filter: "true", PerSecond: 5, RequestId: "once", Force: true,
		},
	} {
		got := h.follow(t, atOnce, strings.Fields(line)...)
		if asked := h.take(); got.code != exitOK || len(asked) == 0 || !proto.Equal(asked[0], want) {
			t.Errorf("plimsoll %s: exit code %d, asked for %v, want %v\n%s", line, got.code, asked, want, got.err)
		}
	}
}
