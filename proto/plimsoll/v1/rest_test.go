package plimsollv1_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestEachRESTCallReachesItsMethodWithTheFieldsOfItsPath(t *testing.T) {
	for call, want := range map[string]proto.Message{
		"GET /v1/clusters?page_size=7&pageToken=t": &plimsollv1.ListClustersRequest{PageSize: 7, PageToken: "t"},
		"GET /v1/clusters/prod":                    &plimsollv1.GetClusterRequest{Cluster: "prod"},
		"GET /v1/workloads?cluster=prod":           &plimsollv1.ListWorkloadsRequest{Cluster: "prod"},
		"GET /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart.v2": &plimsollv1.GetWorkloadRequest{
			Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart.v2",
		},
		"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue": &plimsollv1.RequeueWorkloadRequest{
			Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart",
		},
		"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:whatIf": &plimsollv1.WhatIfRequest{
			Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart",
		},
		"GET /v1/clusters/prod/controllers/c/objects/shop/cart": &plimsollv1.GetObjectStateRequest{
			Cluster: "prod", Controller: "c", Namespace: "shop", Name: "cart",
		},
		"GET /v1/clusters/prod/controllers/c/objects/node-1": &plimsollv1.GetObjectStateRequest{
			Cluster: "prod", Controller: "c", Name: "node-1",
		},
		"POST /v1/clusters/prod/controllers/c/objects/shop/cart:requeue": &plimsollv1.RequeueObjectRequest{
			Cluster: "prod", Controller: "c", Namespace: "shop", Name: "cart",
		},
		"POST /v1/clusters/prod/controllers/c/objects/node-1:requeue": &plimsollv1.RequeueObjectRequest{
			Cluster: "prod", Controller: "c", Name: "node-1",
		},
		"GET /v1/operations/r-1?wait=2.5s": &plimsollv1.GetOperationRequest{
			Operation: "r-1", Wait: durationpb.New(2500 * time.Millisecond),
		},
	} {
		t.Run(call, func(t *testing.T) {
			if diff := cmp.Diff(want, serve(t, call), protocmp.Transform()); diff != "" {
				t.Errorf("the method got (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOpenAPIDocumentHasEveryRESTCall(t *testing.T) {
	var document struct {
		Info     struct{ Title string }
		Security []map[string][]string
		Paths    map[string]map[string]any
	}
	if err := json.Unmarshal(plimsollv1.OpenAPI, &document); err != nil {
		t.Fatalf("not JSON: %v", err)
	}
	if document.Info.Title != "Plimsoll" {
		t.Errorf("title %q: openapi.yaml was not applied", document.Info.Title)
	}
	if len(document.Security) != 1 {
		t.Errorf("security %v, want the bearer token", document.Security)
	}
	rules := httpRules()
	if len(rules) == 0 {
		t.Fatal("no method has an HTTP rule")
	}
	for _, rule := range rules {
		path, verb := rule.GetGet(), "get"
		if path == "" {
			path, verb = rule.GetPost(), "post"
		}
		if _, ok := document.Paths[path][verb]; !ok {
			t.Errorf("%s %s is missing", verb, path)
		}
	}
}

// httpRules lists the HTTP rules of all methods of the API, additional bindings included.
func httpRules() []*annotations.HttpRule {
	var rules []*annotations.HttpRule
	protoregistry.GlobalFiles.RangeFilesByPackage("plimsoll.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				rule := proto.GetExtension(methods.Get(j).Options(), annotations.E_Http).(*annotations.HttpRule)
				rules = append(append(rules, rule), rule.GetAdditionalBindings()...)
			}
		}
		return true
	})
	return rules
}

// serve sends "METHOD target" with an empty body through the gateway, and returns the request that a method got.
func serve(t *testing.T, call string) proto.Message {
	t.Helper()
	var seen seen
	mux := runtime.NewServeMux()
	for _, err := range []error{
		plimsollv1.RegisterClusterServiceHandlerServer(t.Context(), mux, clusterService{seen: &seen}),
		plimsollv1.RegisterWorkloadServiceHandlerServer(t.Context(), mux, workloadService{seen: &seen}),
		plimsollv1.RegisterObjectServiceHandlerServer(t.Context(), mux, objectService{seen: &seen}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	method, target, _ := strings.Cut(call, " ")
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(method, target, nil))
	if answer.Code != 200 {
		t.Fatalf("HTTP %d: %s", answer.Code, answer.Body)
	}
	return seen.request
}

// seen keeps the request that a method got.
type seen struct{ request proto.Message }

type clusterService struct {
	plimsollv1.UnimplementedClusterServiceServer
	*seen
}

func (s clusterService) ListClusters(_ context.Context, r *plimsollv1.ListClustersRequest) (*plimsollv1.ListClustersResponse, error) {
	s.request = r
	return &plimsollv1.ListClustersResponse{}, nil
}

func (s clusterService) GetCluster(_ context.Context, r *plimsollv1.GetClusterRequest) (*plimsollv1.GetClusterResponse, error) {
	s.request = r
	return &plimsollv1.GetClusterResponse{}, nil
}

type workloadService struct {
	plimsollv1.UnimplementedWorkloadServiceServer
	*seen
}

func (s workloadService) ListWorkloads(_ context.Context, r *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	s.request = r
	return &plimsollv1.ListWorkloadsResponse{}, nil
}

func (s workloadService) GetWorkload(_ context.Context, r *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	s.request = r
	return &plimsollv1.GetWorkloadResponse{}, nil
}

func (s workloadService) WhatIf(_ context.Context, r *plimsollv1.WhatIfRequest) (*plimsollv1.WhatIfResponse, error) {
	s.request = r
	return &plimsollv1.WhatIfResponse{}, nil
}

func (s workloadService) RequeueWorkload(_ context.Context, r *plimsollv1.RequeueWorkloadRequest) (*plimsollv1.RequeueWorkloadResponse, error) {
	s.request = r
	return &plimsollv1.RequeueWorkloadResponse{}, nil
}

type objectService struct {
	plimsollv1.UnimplementedObjectServiceServer
	*seen
}

func (s objectService) GetObjectState(_ context.Context, r *plimsollv1.GetObjectStateRequest) (*plimsollv1.GetObjectStateResponse, error) {
	s.request = r
	return &plimsollv1.GetObjectStateResponse{}, nil
}

func (s objectService) RequeueObject(_ context.Context, r *plimsollv1.RequeueObjectRequest) (*plimsollv1.RequeueObjectResponse, error) {
	s.request = r
	return &plimsollv1.RequeueObjectResponse{}, nil
}

func (s objectService) GetOperation(_ context.Context, r *plimsollv1.GetOperationRequest) (*plimsollv1.GetOperationResponse, error) {
	s.request = r
	return &plimsollv1.GetOperationResponse{}, nil
}
