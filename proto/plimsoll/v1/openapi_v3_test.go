package plimsollv1_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// exampleAnswers are answers as the hub gives them, by call. The validator checks them against the document.
func exampleAnswers() map[string]proto.Message {
	at := timestamppb.New(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	cluster := &plimsollv1.Cluster{Name: "prod-eu", State: plimsollv1.ClusterState_CLUSTER_STATE_READY, Reason: "Healthy", KubernetesVersion: "v1.36.1"}
	key := &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "deployment-spot", Namespace: "shop", Name: "cart"}
	workload := &plimsollv1.Workload{
		Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: "cart", State: plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED,
		Placement: &plimsollv1.Placement{Replicas: 10, SpotWanted: 7, SpotActual: 7, OnDemandWanted: 3, OnDemandActual: 3},
	}
	object := &plimsollv1.ObjectState{Key: key, State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, Attempts: 4,
		LastOutcome: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR, LastError: "conflict", NextTryAt: at}
	operation := &plimsollv1.Operation{Id: "o.prod-eu.shop.4f6c", Key: key, AcceptedAt: at, State: plimsollv1.OperationState_OPERATION_STATE_PENDING,
		Message: "it waits for a worker", User: "alice"}
	event := &plimsollv1.Event{Id: "0631-01", At: at, Type: plimsollv1.EventType_EVENT_TYPE_MOVE, Cluster: "prod-eu", Namespace: "shop", Kind: "Deployment",
		Name: "cart", Subject: "cart-6d5f9-x2x7k", Reason: "move", Message: "pod cart-6d5f9-x2x7k was evicted from on-demand"}
	return map[string]proto.Message{
		"ClusterService_ListClusters":   &plimsollv1.ListClustersResponse{Clusters: []*plimsollv1.Cluster{cluster}, AsOf: at},
		"ClusterService_GetCluster":     &plimsollv1.GetClusterResponse{Cluster: cluster, AsOf: at},
		"WorkloadService_ListWorkloads": &plimsollv1.ListWorkloadsResponse{Workloads: []*plimsollv1.Workload{workload}, AsOf: at},
		"WorkloadService_GetWorkload":   &plimsollv1.GetWorkloadResponse{Workload: workload, AsOf: at},
		"ObjectService_ListObjects":     &plimsollv1.ListObjectsResponse{Objects: []*plimsollv1.ObjectState{object}, AsOf: at},
		"ObjectService_GetObjectState":  &plimsollv1.GetObjectStateResponse{Object: object, AsOf: at},
		"ObjectService_RequeueObject":   &plimsollv1.RequeueObjectResponse{Operation: operation},
		"ObjectService_RequeueMatching": &plimsollv1.RequeueMatchingResponse{Matched: 1, Sample: []*plimsollv1.ObjectKey{key}, Operations: []string{"m.prod-eu.shop.77aa"}},
		"ObjectService_GetOperation":    &plimsollv1.GetOperationResponse{Operation: operation, AsOf: at},
		"ObjectService_ListOperations":  &plimsollv1.ListOperationsResponse{Operations: []*plimsollv1.Operation{operation}, AsOf: at},
		"ObjectService_CancelOperation": &plimsollv1.CancelOperationResponse{Operation: operation},
		"EventService_ListEvents":       &plimsollv1.ListEventsResponse{Events: []*plimsollv1.Event{event}, AsOf: at},
	}
}

// exampleBodies are requests that have one, by call.
var exampleBodies = map[string]proto.Message{
	"ObjectService_RequeueMatching": &plimsollv1.RequeueMatchingRequest{Filter: `object.last_outcome == "ERROR"`, ValidateOnly: true, RequestId: "incident-7"},
}

// plainJSON is a message as REST writes it, as a value. The same message always gives the same.
func plainJSON(t *testing.T, message proto.Message) (value any) {
	t.Helper()
	text, err := protojson.Marshal(message)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestTheOpenAPIDocumentOfVersion3 keeps openapi.v3.json what the document of version 2 says, with examples, and valid.
func TestTheOpenAPIDocumentOfVersion3(t *testing.T) {
	var before openapi2.T
	if err := json.Unmarshal(plimsollv1.OpenAPI, &before); err != nil {
		t.Fatal(err)
	}
	document, err := openapi2conv.ToV3(&before)
	if err != nil {
		t.Fatal(err)
	}
	answers, found := exampleAnswers(), 0
	for _, path := range document.Paths.Map() {
		for _, call := range path.Operations() {
			if body := exampleBodies[call.OperationID]; body != nil {
				call.RequestBody.Value.Content["application/json"].Example = plainJSON(t, body)
			}
			if answer := answers[call.OperationID]; answer != nil {
				call.Responses.Value("200").Value.Content["application/json"].Example = plainJSON(t, answer)
				found++
			}
		}
	}
	if found < len(answers) {
		t.Errorf("%d calls have an example, want %d", found, len(answers))
	}
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	loaded, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = loaded.Validate(t.Context(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	holds(t, "openapi.v3.json", text)
	if !*update && !bytes.Equal(plimsollv1.OpenAPIv3, text) {
		t.Error("another document is served")
	}
}

func TestTheValidatorRefusesAnExampleThatDoesNotFit(t *testing.T) {
	loaded, err := openapi3.NewLoader().LoadFromData(plimsollv1.OpenAPIv3)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Paths.Value("/v1/operations/{operation}").Get.Responses.Value("200").Value.Content["application/json"].Example = map[string]any{"operation": "text"}
	if err := loaded.Validate(t.Context(), openapi3.EnableExamplesValidation()); err == nil {
		t.Error("an operation that is a text is valid")
	}
}
