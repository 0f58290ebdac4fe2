package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// What a path must not be reached by: each is refused with a status, and shows nothing of the workload that is there.
func TestNamesThatAreNoneAreRefusedOverREST(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	for _, path := range []string{
		"/v1/clusters/..", "/v1/clusters/%2e%2e", "/v1/clusters/prod%2fother", "/v1/clusters/prod%2f..%2fprod", "/v1/clusters/%00", "/v1/clusters/prod%0a",
		"/v1/clusters/prod/namespaces/%2e%2e/workloads/Deployment/cart", "/v1/clusters/prod/namespaces/shop%2fcart/workloads/Deployment/cart",
		"/v1/clusters/prod/namespaces/shop/workloads/Deployment/..", "/v1/clusters/prod/namespaces/shop/workloads/Deployment/..%2fcart",
		"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart%2f", "/v1/clusters/prod/namespaces/shop/workloads/Deployment/%3Cscript%3E",
		"/v1/clusters/prod/controllers/deployment-spot/objects/shop/cart%2f..", "/v1/clusters/prod/controllers/%2e%2e/objects/shop/cart",
		"/v1/clusters//prod", "//v1/clusters/prod", "/v1/clusters/prod/", "/v1/operations/..", "/v1/operations/w.prod.shop.id-0%2f..", "/v1/operations/w..shop.id-0",
		"/v1/objects?cluster=..", "/v1/objects?namespace=a%2fb", "/v1/events?cluster=%2e%2e",
	} {
		response, body := s.call(t, http.MethodGet, path, "", bearing("admin"))
		var got restError
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Code == 0 || response.StatusCode < 400 || response.StatusCode >= 500 {
			t.Errorf("%s: HTTP %d: %s", path, response.StatusCode, body)
		}
		if strings.Contains(body, "spotActual") {
			t.Errorf("%s shows what is there: %s", path, body)
		}
	}
}

func TestABodyThatSaysItIsNoJSONIsRefused(t *testing.T) {
	s := serve(t, shop(t), nil)
	const path = "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue"
	for kind, want := range map[string]int{
		"": 200, "application/json": 200, "application/json; charset=utf-8": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "application/grpc": 415, "/": 415,
	} {
		header := bearing("admin")
		if kind != "" {
			header.Set("Content-Type", kind)
		}
		response, body := s.call(t, http.MethodPost, path, "{}", header)
		if response.StatusCode != want || want != 200 && !strings.Contains(body, "application/json") {
			t.Errorf("%q: HTTP %d: %s", kind, response.StatusCode, body)
		}
	}
}

// A body whose length nobody knows is a body.
func TestABodyOfUnknownLengthMustBeJSONToo(t *testing.T) {
	s := serve(t, shop(t), nil)
	for kind, want := range map[string]int{"application/json": 200, "text/plain": 415} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+s.rest+"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", io.MultiReader(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = bearing("admin")
		request.Header.Set("Content-Type", kind)
		response, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: HTTP %d, want %d", kind, response.StatusCode, want)
		}
	}
}

// The rules for requests hold for those of watches too.
func TestARequestThatBreaksARuleOpensNoWatch(t *testing.T) {
	s := serve(t, shop(t), nil)
	for name, request := range map[string]*plimsollv1.WatchObjectsRequest{
		"a member":    {Cluster: ".."},
		"a namespace": {Cluster: "prod", Namespace: "a/b"},
		"a filter":    {Filter: "true" + strings.Repeat(" ", 2048)},
	} {
		stream, err := s.objects().WatchObjects(as(t, "admin"), request)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s that cannot be: %v", name, err)
		}
	}
}

// One caller opens far more streams than anybody may have, and reads none of them. Others are served.
func TestManyStreamsThatNobodyReadsHoldUpNobody(t *testing.T) {
	r := shop(t)
	s := serve(t, r, func(o *Options) { o.CallsPerSecond = -1 })
	s.give("greedy", auth.Access{Verb: "list", Resource: "objects"})
	const streams = 10_000
	ctx, cancel := context.WithCancel(as(t, "greedy"))
	defer cancel()
	var refused atomic.Int64
	var all sync.WaitGroup
	places := make(chan struct{}, 128) // so many at once; a connection carries 256
	for range streams {
		places <- struct{}{}
		all.Go(func() {
			stream, err := s.objects().WatchObjects(ctx, &plimsollv1.WatchObjectsRequest{})
			if err == nil {
				_, err = stream.Recv() // the first message, and no other
			}
			if status.Code(err) == codes.ResourceExhausted {
				refused.Add(1)
			}
			<-places
		})
	}
	all.Wait()
	if got := refused.Load(); got != streams-maxWatchesOfUser {
		t.Errorf("%d of %d streams are refused, want all but %d", got, streams, maxWatchesOfUser)
	}
	stream, err := s.objects().WatchObjects(as(t, "admin"), &plimsollv1.WatchObjectsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for synced := false; !synced; {
		message, err := stream.Recv()
		if err != nil {
			t.Fatalf("another caller: %v", err)
		}
		synced = message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
	}
	if _, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{}); err != nil {
		t.Errorf("another caller: %v", err)
	}
}
