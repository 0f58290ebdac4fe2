package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// Reading a call and refusing it costs the hub as much as sending it costs the caller.
func TestNoMoreIsReadOfWhoHasNoGoodTokenThanItsRateAllows(t *testing.T) {
	const calls, padding = 20, 3000 // bytes in the headers of each call
	few := shares.StrangerLimits{Free: 8000, Rate: 1, Burst: 1000, Refused: 1, Wait: time.Second}
	strangers := func(ended *atomic.Int64) net.Listener {
		return shares.NewStrangers(few, func(netip.Addr) { ended.Add(1) }).Listener(listen(t))
	}
	var endedGRPC, endedREST atomic.Int64
	s := serveOn(t, strangers(&endedGRPC), strangers(&endedREST), shop(t), nil)
	padded := func(i int) string { return fmt.Sprint(i) + strings.Repeat("~", padding) }
	overGRPC := func(token string, i int) codes.Code {
		ctx := metadata.AppendToOutgoingContext(as(t, token), "x-padding", padded(i))
		_, err := s.clusters().GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: "prod"})
		return status.Code(err)
	}
	overREST := func(token string, i int) codes.Code {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+s.rest+"/v1/clusters/prod", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Padding", padded(i))
		response, err := s.http.Do(request)
		if err != nil {
			return codes.Unavailable
		}
		_ = response.Body.Close()
		return map[int]codes.Code{http.StatusOK: codes.OK, http.StatusUnauthorized: codes.Unauthenticated}[response.StatusCode]
	}
	for name, over := range map[string]struct {
		call  func(token string, i int) codes.Code
		ended *atomic.Int64
	}{"gRPC": {overGRPC, &endedGRPC}, "REST": {overREST, &endedREST}} {
		t.Run(name, func(t *testing.T) {
			g, call, ended := NewWithT(t), over.call, over.ended
			for i := range calls {
				g.Expect(call("admin", i)).To(Equal(codes.OK))
			}
			g.Expect(ended.Load()).To(BeZero(), "who shows a good token is read without limit")
			for i := range calls {
				g.Expect(call("impostor", i)).To(Or(Equal(codes.Unauthenticated), Equal(codes.Unavailable)))
			}
			g.Eventually(ended.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
			g.Eventually(func() codes.Code { return call("admin", 0) }).WithTimeout(time.Minute).Should(Equal(codes.OK), "on a connection of its own")
		})
	}
}
