package cli

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func (h *hub) WatchObjects(request *plimsollv1.WatchObjectsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchObjectsResponse]) error {
	if request.GetFilter() == "true" { // it has nothing to tell but one object
		if err := stream.Send(&plimsollv1.WatchObjectsResponse{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return status.FromContextError(stream.Context().Err()).Err()
	}
	if request.GetFilter() != "object.attempts > 3" {
		return status.Error(codes.InvalidArgument, "another filter")
	}
	key := &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", Name: "cart"}
	for _, message := range []*plimsollv1.WatchObjectsResponse{
		{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, Object: &plimsollv1.ObjectState{Key: key, State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, LastError: "no\x1b quota"}},
		{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC, Reason: "the reader is\x1b too slow"},
		{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED, Unreachable: []*plimsollv1.UnreachableMember{{Member: "us", Reason: "gone"}}},
		{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED, Object: &plimsollv1.ObjectState{Key: key}},
	} {
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	return nil
}

func (h *hub) RequeueMatching(_ context.Context, request *plimsollv1.RequeueMatchingRequest) (*plimsollv1.RequeueMatchingResponse, error) {
	if request.GetFilter() != "true" || request.GetCluster() != "prod-eu" || request.GetController() != "webapp" {
		return nil, status.Error(codes.InvalidArgument, "another request")
	}
	return &plimsollv1.RequeueMatchingResponse{
		Matched: 1, NothingOrdered: request.GetValidateOnly(),
		Sample: []*plimsollv1.ObjectKey{{Cluster: "prod-eu", Controller: "webapp", Namespace: "shop", Name: "cart"}},
	}, nil
}

func TestObjectsAreWatched(t *testing.T) {
	h := startHub(t)
	got := h.run(t, "objects", "--watch", "--filter", "object.attempts > 3")
	if got.code != exitOK || !strings.Contains(got.out, "shop/cart  Waiting  no  quota") || !strings.Contains(got.out, "REMOVED") ||
		!strings.Contains(got.err, "listing everything again: the reader is  too slow\n") || !strings.Contains(got.err, "us") {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "objects", "-w", "--filter", "object.attempts > 3", "-o", "json"); got.code != exitOK || strings.Count(got.out, "\n") != 4 {
		t.Errorf("%+v", got)
	}
	for format, want := range map[string]string{
		"name": "object/prod-eu/webapp/shop/cart\nobject/prod-eu/webapp/shop/cart\n", "jsonpath={.object.lastError}": "no\x1b quota\n\n", "wide": "prod-eu  webapp  shop/cart  Waiting",
		"yaml": "object:\n",
	} {
		if got := h.run(t, "objects", "-w", "--filter", "object.attempts > 3", "-o", format); got.code != exitOK || !strings.HasPrefix(got.out, want) || format != "json" && format != "yaml" && !strings.Contains(got.err, "us") {
			t.Errorf("-o %s: %+v", format, got)
		}
	}
	if got := h.run(t, "objects", "--watch", "--order-by", "attempts"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

// Ctrl-C is how people end a watch, and no error.
func TestAWatchThatIsInterruptedEndsWell(t *testing.T) {
	if got := startHub(t).follow(t, atOnce, "get", "objects", "--watch", "--filter", "true"); got.code != exitOK || got.err != "" {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestAListThatIsInterruptedSaysSo(t *testing.T) {
	h := startHub(t)
	h.fail = status.Error(codes.Canceled, "context canceled")
	if got := h.run(t, "get", "objects"); got.code != exitFailed || got.err != "error: interrupted\n" {
		t.Errorf("%+v", got)
	}
}

func TestWhatMatchesIsRequeued(t *testing.T) {
	h := startHub(t)
	for _, c := range []struct{ flag, want string }{{"--dry-run", "1 objects match; nothing was requeued"}, {"--per-second=5", "1 objects are being requeued"}} {
		got := h.run(t, "requeue", "--filter", "true", "--cluster", "prod-eu", "--controller", "webapp", c.flag)
		if got.code != exitOK || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, "shop/cart") {
			t.Errorf("%+v", got)
		}
	}
	for _, args := range []string{
		"--filter true prod-eu shop/deployment/cart", "--filter true --wait", "prod-eu shop/deployment/cart --dry-run", "prod-eu shop/deployment/cart --request-id x",
		"prod-eu shop/deployment/cart --cluster prod-us", "prod-eu shop/cart --controller webapp --per-second 5", "prod-eu shop/deployment/cart --filter= --dry-run",
	} {
		if got := h.run(t, append([]string{"requeue"}, strings.Fields(args)...)...); got.code != exitUsage || got.out != "" {
			t.Errorf("requeue %s: %+v", args, got)
		}
	}
}
