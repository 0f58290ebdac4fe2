package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// everyCall calls each method, about the member "prod" where it takes one.
func everyCall(s *served) map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		plimsollv1.ClusterService_ListClusters_FullMethodName: func(ctx context.Context) error {
			_, err := s.clusters().ListClusters(ctx, &plimsollv1.ListClustersRequest{})
			return err
		},
		plimsollv1.ClusterService_GetCluster_FullMethodName: func(ctx context.Context) error {
			_, err := s.clusters().GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.ClusterService_WatchClusters_FullMethodName: func(ctx context.Context) error {
			stream, err := s.clusters().WatchClusters(ctx, &plimsollv1.WatchClustersRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		plimsollv1.EventService_ListEvents_FullMethodName: func(ctx context.Context) error {
			_, err := s.events().ListEvents(ctx, &plimsollv1.ListEventsRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.EventService_WatchEvents_FullMethodName: func(ctx context.Context) error {
			stream, err := s.events().WatchEvents(ctx, &plimsollv1.WatchEventsRequest{Cluster: "prod"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		plimsollv1.ObjectService_ListOperations_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().ListOperations(ctx, &plimsollv1.ListOperationsRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.ObjectService_CancelOperation_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().CancelOperation(ctx, &plimsollv1.CancelOperationRequest{Operation: "w.prod.shop.id-0"})
			if status.Code(err) == codes.FailedPrecondition { // another test took it back
				return nil
			}
			return err
		},
		plimsollv1.WorkloadService_WatchWorkloads_FullMethodName: func(ctx context.Context) error {
			stream, err := s.workloads().WatchWorkloads(ctx, &plimsollv1.WatchWorkloadsRequest{Cluster: "prod"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		plimsollv1.ObjectService_WatchObjects_FullMethodName: func(ctx context.Context) error {
			stream, err := s.objects().WatchObjects(ctx, &plimsollv1.WatchObjectsRequest{Cluster: "prod"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		plimsollv1.WorkloadService_ListWorkloads_FullMethodName: func(ctx context.Context) error {
			_, err := s.workloads().ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.WorkloadService_GetWorkload_FullMethodName: func(ctx context.Context) error {
			_, err := s.workloads().GetWorkload(ctx, &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
			return err
		},
		plimsollv1.WorkloadService_RequeueWorkload_FullMethodName: func(ctx context.Context) error {
			_, err := s.workloads().RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
			return err
		},
		plimsollv1.WorkloadService_WhatIf_FullMethodName: func(ctx context.Context) error {
			_, err := s.workloads().WhatIf(ctx, &plimsollv1.WhatIfRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
			return err
		},
		plimsollv1.ObjectService_ListObjects_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().ListObjects(ctx, &plimsollv1.ListObjectsRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.ObjectService_ListControllers_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().ListControllers(ctx, &plimsollv1.ListControllersRequest{Cluster: "prod"})
			return err
		},
		plimsollv1.ObjectService_GetObjectState_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{Cluster: "prod", Controller: "deployment-spot", Namespace: "shop", Name: "cart"})
			return err
		},
		plimsollv1.ObjectService_RequeueObject_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().RequeueObject(ctx, &plimsollv1.RequeueObjectRequest{Cluster: "prod", Controller: "deployment-spot", Namespace: "shop", Name: "cart"})
			return err
		},
		plimsollv1.ObjectService_RequeueMatching_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().RequeueMatching(ctx, &plimsollv1.RequeueMatchingRequest{Cluster: "prod", Namespace: "shop", Filter: "true", ValidateOnly: true})
			return err
		},
		plimsollv1.ObjectService_GetOperation_FullMethodName: func(ctx context.Context) error {
			_, err := s.objects().GetOperation(ctx, &plimsollv1.GetOperationRequest{Operation: "w.prod.shop.id-0"})
			return err
		},
	}
	maps.Copy(calls, fleetCalls(s))
	return calls
}

// rights are what each of everyCall needs.
var rights = map[string]auth.Access{
	plimsollv1.ClusterService_ListClusters_FullMethodName:        {Verb: "list", Resource: "clusters", Member: "prod"},
	plimsollv1.ClusterService_GetCluster_FullMethodName:          {Verb: "get", Resource: "clusters", Member: "prod"},
	plimsollv1.ClusterService_WatchClusters_FullMethodName:       {Verb: "list", Resource: "clusters", Member: "prod"},
	plimsollv1.WorkloadService_WatchWorkloads_FullMethodName:     {Verb: "list", Resource: "workloads", Member: "prod"},
	plimsollv1.ObjectService_WatchObjects_FullMethodName:         {Verb: "list", Resource: "objects", Member: "prod"},
	plimsollv1.WorkloadService_ListWorkloads_FullMethodName:      {Verb: "list", Resource: "workloads", Member: "prod"},
	plimsollv1.WorkloadService_GetWorkload_FullMethodName:        {Verb: "get", Resource: "workloads", Member: "prod"},
	plimsollv1.WorkloadService_WhatIf_FullMethodName:             {Verb: "get", Resource: "workloads", Member: "prod"},
	plimsollv1.WorkloadService_RequeueWorkload_FullMethodName:    {Verb: "requeue", Resource: "workloads", Member: "prod"},
	plimsollv1.ObjectService_ListObjects_FullMethodName:          {Verb: "list", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_ListControllers_FullMethodName:      {Verb: "list", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_GetObjectState_FullMethodName:       {Verb: "get", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_RequeueObject_FullMethodName:        {Verb: "requeue", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_RequeueMatching_FullMethodName:      {Verb: "requeue", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_GetOperation_FullMethodName:         {Verb: "get", Resource: "workloads", Member: "prod"},
	plimsollv1.ObjectService_ListOperations_FullMethodName:       {Verb: "list", Resource: "objects", Member: "prod"},
	plimsollv1.ObjectService_CancelOperation_FullMethodName:      {Verb: "requeue", Resource: "workloads", Member: "prod"},
	plimsollv1.EventService_ListEvents_FullMethodName:            {Verb: "list", Resource: "events", Member: "prod"},
	plimsollv1.EventService_WatchEvents_FullMethodName:           {Verb: "list", Resource: "events", Member: "prod"},
	plimsollv1.FleetService_ListFleetPlacements_FullMethodName:   {Group: "fleet.plimsoll.dev", Verb: "list", Resource: "fleetplacements", Namespace: "shop"},
	plimsollv1.FleetService_WatchFleetPlacements_FullMethodName:  {Group: "fleet.plimsoll.dev", Verb: "list", Resource: "fleetplacements", Namespace: "shop"},
	plimsollv1.FleetService_ExplainFleetPlacement_FullMethodName: {Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements", Namespace: "shop", Name: "cart"},
	plimsollv1.FleetService_WhatIfFleetPlacement_FullMethodName:  {Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements", Namespace: "shop", Name: "cart"},
	plimsollv1.FleetService_GetFleetPlacement_FullMethodName:     {Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements", Namespace: "shop", Name: "cart"},
}

// shop is a replica that owns the member prod with one Deployment, and an order that was accepted.
func shop(t testing.TB) *replica {
	t.Helper()
	r := newFleet().replica(t, "10.0.0.1:9444")
	r.member("prod")
	r.fleet.give("prod", r.address)
	r.workload("prod", "shop", "cart")
	r.place("shop", "cart", 3, "prod")
	for key := range r.records {
		if _, err := r.RequeueFor(key, "admin"); err != nil {
			t.Fatal(err)
		}
	}
	r.calls.Store(0)
	return r
}

func TestEveryMethodHasARule(t *testing.T) {
	server := grpc.NewServer()
	newServices(&core{}).register(server)
	methods := 0
	for service, info := range server.GetServiceInfo() {
		for _, method := range info.Methods {
			methods++
			if name := "/" + service + "/" + method.Name; rules[name].needs == nil || rights[name] == (auth.Access{}) {
				t.Errorf("%s: nobody may call it, or no test does", name)
			}
		}
	}
	if methods == 0 || methods != len(rules) {
		t.Errorf("%d methods and %d rules", methods, len(rules))
	}
}

func TestEveryMethodIsDeniedWithoutItsRightAndAllowedWithIt(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	// Each of these has almost the right.
	for method, right := range rights {
		other := right
		other.Member = "pro"
		s.give("mallory", other)
		other.Member = "prod-2"
		s.give("mallory", other)
		for _, verb := range []string{"get", "list", "requeue", "*"} {
			if verb != right.Verb {
				s.give("only-not-"+method, auth.Access{Verb: verb, Resource: right.Resource, Member: "prod"})
			}
		}
		for _, resource := range []string{"clusters", "workloads", "objects", "*"} {
			if resource != right.Resource {
				s.give("only-not-"+method, auth.Access{Verb: right.Verb, Resource: resource, Member: "prod"})
			}
		}
		s.give("only-"+method, right)
	}
	for method, call := range everyCall(s) {
		for _, who := range []string{"nobody", "mallory", "only-not-" + method} {
			r.calls.Store(0)
			err := call(as(t, who))
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), rights[method].Verb+" on "+rights[method].Resource+"."+cmp.Or(rights[method].Group, auth.Group)) {
				t.Errorf("%s as %s: %v, want PERMISSION_DENIED that names the right", method, who, err)
			}
			if calls := r.calls.Load(); calls > 1 || calls == 1 && !strings.HasSuffix(method, "ListClusters") && !strings.HasSuffix(method, "WatchClusters") {
				t.Errorf("%s as %s reached the backend", method, who)
			}
		}
	}
	for method, call := range everyCall(s) { // after all that are denied: what serves a watch continues for a while, and reads the backend
		if err := call(as(t, "only-"+method)); err != nil {
			t.Errorf("%s with its right: %v", method, err)
		}
	}
}

func TestEveryMethodNeedsExactlyOneGoodToken(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	for name, headers := range map[string][]string{
		"no header":             {},
		"an empty header":       {"authorization", ""},
		"no token":              {"authorization", "Bearer "},
		"another scheme":        {"authorization", "Basic YWRtaW46eA=="},
		"no scheme":             {"authorization", "admin"},
		"a bad token":           {"authorization", "Bearer impostor"},
		"a token with no name":  {"authorization", "Bearer nameless"},
		"two tokens":            {"authorization", "Bearer admin", "authorization", "Bearer admin"},
		"a token and more":      {"authorization", "Bearer admin admin"},
		"only impersonation":    {"impersonate-user", "admin", "impersonate-group", "system:masters"},
		"gateway impersonation": {"grpcgateway-authorization", "Bearer admin", "grpc-metadata-authorization", "Bearer admin"},
	} {
		for method, call := range everyCall(s) {
			r.calls.Store(0)
			err := call(metadata.AppendToOutgoingContext(t.Context(), headers...))
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s with %s: %v, want UNAUTHENTICATED", method, name, err)
			}
			if r.calls.Load() > 0 {
				t.Errorf("%s with %s reached the backend", method, name)
			}
		}
	}
	if err := everyCall(s)[plimsollv1.ClusterService_GetCluster_FullMethodName](metadata.AppendToOutgoingContext(t.Context(), "authorization", "bearer admin")); err != nil {
		t.Errorf("the scheme in small letters: %v", err)
	}
}

func TestImpersonationHeadersChangeNothing(t *testing.T) {
	s := serve(t, shop(t), nil)
	ctx := metadata.AppendToOutgoingContext(as(t, "nobody"), "impersonate-user", "admin", "impersonate-group", "system:masters")
	if err := everyCall(s)[plimsollv1.ClusterService_GetCluster_FullMethodName](ctx); status.Code(err) != codes.PermissionDenied {
		t.Errorf("over gRPC: %v, want PERMISSION_DENIED", err)
	}
	header := bearing("nobody")
	header.Set("Impersonate-User", "admin")
	header.Set("Grpc-Metadata-Authorization", "Bearer admin")
	header.Set("Grpc-Metadata-Impersonate-User", "admin")
	if response, body := s.call(t, "GET", "/v1/clusters/prod", "", header); response.StatusCode != http.StatusForbidden {
		t.Errorf("over REST: %d %s, want 403", response.StatusCode, body)
	}
}

func TestAHubClusterThatDoesNotAnswerIsNotADenial(t *testing.T) {
	s := serve(t, shop(t), nil)
	failure := errors.New("canary-internal")
	for name, broken := range map[string]*error{"tokens": &s.broken, "access": &s.unsure} {
		*broken = failure
		for method, call := range everyCall(s) {
			if err := call(as(t, "admin")); status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s without reviews of %s: %v, want UNAVAILABLE without details", method, name, err)
			}
		}
		*broken = nil
	}
	if logged := strings.Count(s.log.String(), "canary-internal"); logged != 2*len(rules) {
		t.Errorf("the reason is in %d lines of the log, want one for each of %d calls", logged, 2*len(rules))
	}
}

func TestAPanicIsAnErrorThatTellsNothing(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	r.mu.Lock()
	r.panics = true
	r.mu.Unlock()
	calls := everyCall(s)
	watch := calls[plimsollv1.ClusterService_WatchClusters_FullMethodName] // of all members: who looks for them is no call
	delete(calls, plimsollv1.ClusterService_WatchClusters_FullMethodName)
	for method, call := range calls {
		if err := call(as(t, "admin")); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want INTERNAL without details", method, err)
		}
	}
	told := make(chan error, 1)
	go func() { told <- watch(as(t, "admin")) }()
	eventually(t, "a watch outlives a panic", func() bool { return strings.Contains(s.log.String(), "members could not be read for watches") })
	r.mu.Lock()
	r.panics = false
	r.mu.Unlock()
	if err := <-told; err != nil {
		t.Errorf("a watch after the panics: %v", err)
	}
	if err := everyCall(s)[plimsollv1.ClusterService_GetCluster_FullMethodName](as(t, "admin")); err != nil {
		t.Errorf("after the panics: %v", err)
	}
}

func TestAnUnexpectedErrorTellsTheLogAndNotTheCaller(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	_, err := s.objects().RequeueObject(as(t, "admin"), &plimsollv1.RequeueObjectRequest{Cluster: "prod", Controller: "broken", Name: "x"})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "canary") {
		t.Errorf("the caller got %v", err)
	}
	if !strings.Contains(s.log.String(), "canary-internal") {
		t.Error("the log has no trace of the error")
	}
}

func TestWhoMaySeeOneNamespaceOfAMemberSeesNoOther(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	for name, namespace := range map[string]string{"owner": "shop", "neighbour": "pay"} {
		for _, right := range rights {
			if right.Resource != "clusters" {
				right.Namespace = namespace
				s.give(name, right)
			}
		}
	}
	for method, call := range everyCall(s) {
		if rights[method].Resource == "clusters" || rules[method].lists {
			continue
		}
		if err := call(as(t, "neighbour")); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s as one who may see another namespace: %v", method, err)
		}
		if err := call(as(t, "owner")); err != nil {
			t.Errorf("%s as one who may see the namespace: %v", method, err)
		}
	}
	for _, c := range []struct {
		who, namespace string
		want           codes.Code
	}{
		{"owner", "shop", codes.OK}, {"owner", "", codes.PermissionDenied}, {"neighbour", "shop", codes.PermissionDenied}, {"neighbour", "pay", codes.OK},
	} {
		for _, cluster := range []string{"prod", ""} {
			_, err := s.workloads().ListWorkloads(as(t, c.who), &plimsollv1.ListWorkloadsRequest{Cluster: cluster, Namespace: c.namespace})
			_, ofObjects := s.objects().ListObjects(as(t, c.who), &plimsollv1.ListObjectsRequest{Cluster: cluster, Namespace: c.namespace})
			for _, err := range []error{err, ofObjects} {
				if status.Code(err) != c.want {
					t.Errorf("list namespace %q of member %q as %s: %v, want %s", c.namespace, cluster, c.who, err, c.want)
				}
			}
		}
	}
}
