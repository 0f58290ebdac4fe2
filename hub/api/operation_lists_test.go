package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// orderKeyOf orders one key of failing.
func orderKeyOf(t *testing.T, s *served, member string, n int) *plimsollv1.Operation {
	t.Helper()
	answer, err := s.objects().RequeueObject(as(t, "admin"), &plimsollv1.RequeueObjectRequest{
		Cluster: member, Controller: "deployment-spot", Namespace: "shop", Name: fmt.Sprintf("o%d", n),
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetOperation()
}

func TestOrdersAreListedAndTakenBackWhereverTheyAre(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	var operations []*plimsollv1.Operation
	for _, member := range []string{"dev", "test"} { // test is the other replica's
		for n := range 3 {
			operations = append(operations, orderKeyOf(t, s, member, n))
		}
	}
	list := func(filter string) []*plimsollv1.Operation {
		t.Helper()
		var all []*plimsollv1.Operation
		for request := (&plimsollv1.ListOperationsRequest{PageSize: 2, Filter: filter}); ; {
			answer, err := s.objects().ListOperations(as(t, "admin"), request)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, answer.GetOperations()...)
			if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
				return all
			}
		}
	}
	if all := list(""); len(all) != 6 || all[0].GetUser() != "admin" {
		t.Fatalf("%v", all)
	}
	for _, operation := range []*plimsollv1.Operation{operations[0], operations[5]} {
		answer, err := s.objects().CancelOperation(as(t, "admin"), &plimsollv1.CancelOperationRequest{Operation: operation.GetId()})
		if err != nil || answer.GetOperation().GetState() != plimsollv1.OperationState_OPERATION_STATE_CANCELLED || answer.GetOperation().GetFinishedAt() == nil {
			t.Errorf("%v, %v", answer, err)
		}
		_, err = s.objects().CancelOperation(as(t, "admin"), &plimsollv1.CancelOperationRequest{Operation: operation.GetId()})
		if status.Code(err) != codes.FailedPrecondition || apierror.ReasonOf(err) != "OPERATION_BEGUN" {
			t.Errorf("the second time: %v", err)
		}
	}
	if open := list(`operation.state == "PENDING"`); len(open) != 4 {
		t.Errorf("%v", open)
	}
	second.settle(second.OperationsIn("test")[0].ID, func(r *reconcile.Operation) { r.Done, r.Record.LastOutcome = true, reconcile.OutcomeDone })
	if done := list(`operation.state == "DONE" && operation.key.cluster == "test"`); len(done) != 1 {
		t.Errorf("%v", done)
	}
	if response, body := s.call(t, http.MethodPost, "/v1/operations/"+operations[1].GetId()+":cancel", "{}", bearing("admin")); response.StatusCode != http.StatusOK ||
		!strings.Contains(body, "OPERATION_STATE_CANCELLED") {
		t.Errorf("%s %s", response.Status, body)
	}
	s.give("reader", auth.Access{Verb: "get", Resource: "objects"}, auth.Access{Verb: "list", Resource: "objects"})
	if _, err := s.objects().CancelOperation(as(t, "reader"), &plimsollv1.CancelOperationRequest{Operation: operations[2].GetId()}); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	if _, err := s.objects().CancelOperation(as(t, "admin"), &plimsollv1.CancelOperationRequest{Operation: "o.dev.shop.unknown"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

func TestAnOrderOfManyIsFollowedAndTakenBack(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	answer, err := s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Filter: "object.attempts > 0", PerSecond: 1})
	if err != nil || answer.GetMatched() != 12 || len(answer.GetOperations()) != 3 {
		t.Fatalf("%v, %v", answer, err)
	}
	follow := func(id string, wait time.Duration) *plimsollv1.Operation {
		t.Helper()
		answer, err := s.objects().GetOperation(as(t, "admin"), &plimsollv1.GetOperationRequest{Operation: id, Wait: durationpb.New(wait)})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetOperation()
	}
	for _, id := range answer.GetOperations() {
		open := follow(id, 0)
		if open.GetState() != plimsollv1.OperationState_OPERATION_STATE_RUNNING || open.GetMatched() != 4 || open.GetFilter() != "object.attempts > 0" ||
			open.GetUser() != "admin" || open.GetAcceptedAt() == nil || open.GetFinishedAt() != nil {
			t.Errorf("%v", open)
		}
		cancelled, err := s.objects().CancelOperation(as(t, "admin"), &plimsollv1.CancelOperationRequest{Operation: id})
		if err != nil || cancelled.GetOperation().GetState() != plimsollv1.OperationState_OPERATION_STATE_CANCELLED || cancelled.GetOperation().GetOrdered() > 3 {
			t.Errorf("%v, %v", cancelled, err)
		}
		final := follow(id, 30*time.Second)
		if final.GetState() != plimsollv1.OperationState_OPERATION_STATE_CANCELLED || final.GetFinishedAt() == nil {
			t.Errorf("%v", final)
		}
	}
	listed, err := s.objects().ListOperations(as(t, "admin"), &plimsollv1.ListOperationsRequest{Filter: `operation.matched > 0`})
	if err != nil || len(listed.GetOperations()) != 3 {
		t.Errorf("%v, %v", listed, err)
	}
	if events, _ := second.journal.List("test", "", "", 10); len(events) != 1 || events[0].Type != journal.Requeue || events[0].User != "admin" {
		t.Errorf("%+v", events)
	}
}

func TestWhatDoesNotAnswerIsOrderedOnlyByForce(t *testing.T) {
	first, second := failing(t)
	for member, owner := range map[string]*replica{"dev": first, "test": second} {
		owner.shut[member] = "the member does not answer"
	}
	s := serve(t, first, nil)
	for _, member := range []string{"dev", "test"} {
		request := &plimsollv1.RequeueObjectRequest{Cluster: member, Controller: "deployment-spot", Namespace: "shop", Name: "o1"}
		_, err := s.objects().RequeueObject(as(t, "admin"), request)
		retry, about := false, ""
		for _, detail := range status.Convert(err).Details() {
			switch detail := detail.(type) {
			case *errdetails.RetryInfo:
				retry = true
			case *errdetails.ErrorInfo:
				about = detail.GetMetadata()["member"]
			}
		}
		if status.Code(err) != codes.FailedPrecondition || apierror.ReasonOf(err) != "MEMBER_NOT_ANSWERING" || !retry || about != member {
			t.Errorf("%s: %v, about %q", member, err, about)
		}
		many := &plimsollv1.RequeueMatchingRequest{Cluster: member, Controller: "deployment-spot", Filter: "true", PerSecond: 1000}
		if _, err := s.objects().RequeueMatching(as(t, "admin"), many); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v", member, err)
		}
		request.Force = true
		if _, err := s.objects().RequeueObject(as(t, "admin"), request); err != nil {
			t.Errorf("%s by force: %v", member, err)
		}
	}
	answer, err := s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", PerSecond: 1000})
	if err != nil || answer.GetMatched() != 5 || len(answer.GetUnreachable()) != 2 {
		t.Errorf("in all members: %v, %v", answer, err)
	}
	answer, err = s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", PerSecond: 1000, Force: true})
	if err != nil || answer.GetMatched() != 15 || len(answer.GetUnreachable()) != 0 {
		t.Errorf("by force: %v, %v", answer, err)
	}
}

// Who may list the objects of one namespace sees who ordered what there, and nothing of its neighbours.
func TestOperationsOfANamespaceAreOfThatNamespaceOnly(t *testing.T) {
	r, _ := ledgers(t)
	for _, namespace := range []string{"shop", "bank"} {
		r.record("dev", "deployment-spot", namespace, "web")
	}
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Verb: "list", Resource: "objects", Member: "dev", Namespace: "shop"})
	for _, namespace := range []string{"shop", "bank"} {
		_, err := s.objects().RequeueObject(as(t, "admin"), &plimsollv1.RequeueObjectRequest{Cluster: "dev", Controller: "deployment-spot", Namespace: namespace, Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Controller: "deployment-spot", Namespace: namespace, Filter: "true", PerSecond: 1000})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer, err := s.objects().ListOperations(as(t, "tenant"), &plimsollv1.ListOperationsRequest{Cluster: "dev", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	many := 0
	for _, operation := range answer.GetOperations() {
		if operation.GetKey().GetNamespace() != "shop" {
			t.Errorf("shown: %v", operation)
		}
		if operation.GetMatched() > 0 {
			many++
		}
	}
	if len(answer.GetOperations()) < 2 || many != 1 {
		t.Errorf("%d operations, %d of them of many objects", len(answer.GetOperations()), many)
	}
}
