package api

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

func TestACallerHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(10)
		calls := func(user string, n int) (refused int) {
			for range n {
				if _, err := p.keepPace(context.WithValue(t.Context(), identityKey{}, Identity{User: user}), nil, nil,
					func(context.Context, any) (any, error) { return nil, nil }); err != nil {
					if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != "TOO_MANY_CALLS" {
						t.Fatal(err)
					}
					refused++
				}
			}
			return refused
		}
		if refused := calls("alice", 50); refused != 30 {
			t.Errorf("%d of 50 calls at once are refused, want all but 20", refused)
		}
		if refused := calls("bob", 20); refused != 0 {
			t.Errorf("%d calls of another are refused", refused)
		}
		time.Sleep(time.Second)
		if refused := calls("alice", 15); refused != 5 {
			t.Errorf("%d of 15 calls a second later are refused, want 5", refused)
		}
		if refused := func() int { p = newPace(-1); return calls("alice", 10_000) }(); refused != 0 {
			t.Errorf("%d calls are refused without a limit", refused)
		}
	})
}

// The limit holds on every way in.
func TestTheLimitOfACallerHoldsForRESTAndStreams(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) { o.CallsPerSecond = 1 })
	for range 2 {
		if _, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a call is refused", func() bool { // the limit may have grown by one meanwhile
		response, _ := s.call(t, http.MethodGet, "/v1/clusters", "", bearing("admin"))
		return response.StatusCode == http.StatusTooManyRequests
	})
	eventually(t, "a stream is refused", func() bool {
		stream, err := s.clusters().WatchClusters(as(t, "admin"), &plimsollv1.WatchClustersRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return status.Code(err) == codes.ResourceExhausted
	})
}
