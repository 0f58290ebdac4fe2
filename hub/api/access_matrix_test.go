package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// asked is an authorizer that allows everything and keeps what it was asked.
type asked struct {
	mu  sync.Mutex
	all []auth.Access
}

func (a *asked) Allowed(_ context.Context, _ auth.Identity, access auth.Access) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, access)
	return true, nil
}

func (a *asked) take() []auth.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

func TestEveryMethodAsksForTheMemberAndTheNamespaceThatItIsAbout(t *testing.T) {
	authorizer := &asked{}
	s := serve(t, shop(t), func(o *Options) { o.Authorizer = authorizer })
	calls := everyCall(s)
	calls[plimsollv1.WorkloadService_ListWorkloads_FullMethodName] = func(ctx context.Context) error {
		_, err := s.workloads().ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{Namespace: "shop"})
		return err
	}
	calls[plimsollv1.ObjectService_ListObjects_FullMethodName] = func(ctx context.Context) error {
		_, err := s.objects().ListObjects(ctx, &plimsollv1.ListObjectsRequest{Namespace: "shop"})
		return err
	}
	calls[plimsollv1.WorkloadService_WatchWorkloads_FullMethodName] = func(ctx context.Context) error {
		stream, err := s.workloads().WatchWorkloads(ctx, &plimsollv1.WatchWorkloadsRequest{Namespace: "shop"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	calls[plimsollv1.ObjectService_WatchObjects_FullMethodName] = func(ctx context.Context) error {
		stream, err := s.objects().WatchObjects(ctx, &plimsollv1.WatchObjectsRequest{Namespace: "shop"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	calls[plimsollv1.ObjectService_ListOperations_FullMethodName] = func(ctx context.Context) error {
		_, err := s.objects().ListOperations(ctx, &plimsollv1.ListOperationsRequest{Namespace: "shop"})
		return err
	}
	calls[plimsollv1.EventService_ListEvents_FullMethodName] = func(ctx context.Context) error {
		_, err := s.events().ListEvents(ctx, &plimsollv1.ListEventsRequest{Namespace: "shop"})
		return err
	}
	calls[plimsollv1.EventService_WatchEvents_FullMethodName] = func(ctx context.Context) error {
		stream, err := s.events().WatchEvents(ctx, &plimsollv1.WatchEventsRequest{Namespace: "shop"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for method := range rules {
		if calls[method] == nil {
			t.Fatalf("%s is not called here", method)
		}
	}
	for _, method := range slices.Sorted(maps.Keys(calls)) {
		err := calls[method](as(t, "alice"))
		if code := status.Code(err); code != codes.OK && code != codes.NotFound { // of an operation that nobody ordered
			t.Errorf("%s: %v", method, err)
		}
		wanted := rights[method]
		// Controllers are of no namespace: who may list objects in some of a member's may not list them.
		if !strings.Contains(method, ".ClusterService/") && method != plimsollv1.ObjectService_ListControllers_FullMethodName {
			wanted.Namespace = "shop"
		}
		for _, got := range authorizer.take() {
			if rules[method].lists && got.Member == "" {
				got.Member = wanted.Member // a list first asks about all members at once
			}
			if strings.Contains(method, ".FleetService/") && got == (auth.Access{Verb: verbGet, Resource: resourceWorkloads, Namespace: "shop"}) {
				continue // whose members are named
			}
			if got != wanted {
				t.Errorf("%s asked for %+v, not %+v", method, got, wanted)
			}
		}
	}
	// REST goes the same way.
	for path, namespace := range map[string]string{
		"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart": "shop",
		"/v1/workloads?namespace=shop":                                "shop",
		"/v1/objects?namespace=shop":                                  "shop",
		"/v1/controllers":                                             "",
	} {
		if answer, body := s.call(t, http.MethodGet, path, "", bearing("alice")); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
		for _, got := range authorizer.take() {
			if got.Namespace != namespace {
				t.Errorf("%s asked for %+v", path, got)
			}
		}
	}
}

func TestAMethodThatNamesNoMemberIsNotLetThroughUnasked(t *testing.T) {
	nobody := access{authorizer: &people{}, log: testLog(t)}
	for method, rule := range rules {
		_, err := authorize(nobody)(t.Context(), struct{}{}, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
			return "reached", nil
		})
		if rule.lists {
			if err != nil {
				t.Errorf("%s narrows its own answer, and was refused: %v", method, err)
			}
		} else if err == nil {
			t.Errorf("%s was reached without any right", method)
		}
	}
}
