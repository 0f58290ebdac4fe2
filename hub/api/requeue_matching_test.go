package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// failing are two replicas with three members, each with five keys of a controller, of which three fail.
func failing(t *testing.T) (*replica, *replica) {
	t.Helper()
	first, second := ledgers(t)
	for member, owner := range map[string]*replica{"dev": first, "prod": first, "test": second} {
		for i := range 5 {
			owner.record(member, "deployment-spot", "shop", fmt.Sprintf("o%d", i))
			key := reconcile.Key{Member: member, Controller: "deployment-spot"}
			key.Namespace, key.Name = "shop", fmt.Sprintf("o%d", i)
			owner.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle, Attempts: i}
		}
	}
	return first, second
}

// ordersOf waits until a replica has taken n orders, and a moment longer for more.
func ordersOf(t *testing.T, r *replica, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		got := append([]string(nil), r.orderedBy...)
		r.mu.Unlock()
		if len(got) >= n || time.Now().After(deadline) {
			return got
		}
	}
}

func TestWhatMatchesIsOrderedInAllMembersOnceForEachName(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "object.attempts > 1", ValidateOnly: true, PerSecond: 1000}
	answer, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || answer.GetMatched() != 9 || len(answer.GetSample()) != 9 || !answer.GetNothingOrdered() || len(first.orderedBy)+len(second.orderedBy) != 0 {
		t.Fatalf("only asked: %v, %v", answer, err)
	}
	request.ValidateOnly, request.RequestId = false, "again-1"
	for i := range 3 {
		answer, err = s.objects().RequeueMatching(as(t, "admin"), request)
		if err != nil || answer.GetMatched() != 9 || answer.GetNothingOrdered() != (i > 0) {
			t.Errorf("the %d. time: %v, %v", i, answer, err)
		}
	}
	if got := ordersOf(t, first, 6); len(got) != 6 || got[0] != "admin" {
		t.Errorf("%v", got)
	}
	if got := ordersOf(t, second, 3); len(got) != 3 || got[0] != "admin" {
		t.Errorf("%v", got)
	}
	if log := s.log.String(); !strings.Contains(log, `"msg":"API order"`) || !strings.Contains(log, `"request_id":"again-1"`) {
		t.Error("the order is not in the log")
	}
}

func TestWhatMatchesIsOrderedOnlyWhereTheCallerMay(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	s.give("dev", Access{Verb: "requeue", Resource: "objects", Member: "dev"})
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", PerSecond: 1000}
	if answer, err := s.objects().RequeueMatching(as(t, "dev"), request); err != nil || answer.GetMatched() != 5 {
		t.Errorf("%v, %v", answer, err)
	}
	second.lapsed = true
	request.Cluster = "test"
	if _, err := s.objects().RequeueMatching(as(t, "dev"), request); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	request.Cluster = ""
	if _, err := s.objects().RequeueMatching(as(t, "nobody"), request); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	if answer, err := s.objects().RequeueMatching(as(t, "admin"), request); err != nil || len(answer.GetUnreachable()) != 1 || answer.GetMatched() != 10 {
		t.Errorf("an owner that may not act: %v, %v", answer, err)
	}
	for _, bad := range []*plimsollv1.RequeueMatchingRequest{{}, {Filter: "object.x"}, {Filter: "true", PerSecond: 1001}, {Filter: "true", RequestId: "a b"}} {
		if _, err := s.objects().RequeueMatching(as(t, "admin"), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestAnOrderOfManyKeepsItsPaceAndEndsWithTheLease(t *testing.T) {
	first, _ := failing(t)
	s := serve(t, first, nil)
	begun := time.Now()
	if _, err := s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Controller: "deployment-spot", Filter: "true", PerSecond: 20}); err != nil {
		t.Fatal(err)
	}
	if ordersOf(t, first, 3); time.Since(begun) < 90*time.Millisecond {
		t.Errorf("three orders took %s at 20 a second", time.Since(begun))
	}
	first.fleet.give("dev", "elsewhere")
	time.Sleep(250 * time.Millisecond)
	if got := ordersOf(t, first, 0); len(got) > 4 {
		t.Errorf("%d orders after the member has gone", len(got))
	}
}
