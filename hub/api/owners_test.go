package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// twoReplicas are one that is asked and knows the member prod, and one that owns it.
func twoReplicas(t *testing.T) (asked, owner *replica) {
	t.Helper()
	owner = shop(t)
	asked = owner.fleet.replica(t, "10.0.0.2:9444")
	asked.member("prod")
	asked.place("shop", "cart", 3, "prod") // every replica follows them
	return asked, owner
}

func TestWhatTheOwnerKnowsIsAskedOfTheOwner(t *testing.T) {
	for method := range rights { // each with replicas of its own: what serves a watch continues for a while, and asks the owner
		asked, owner := twoReplicas(t)
		if err := everyCall(serve(t, asked, nil))[method](as(t, "admin")); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if owner.calls.Load() == 0 && !anywhere[method] {
			t.Errorf("%s was not asked of the owner", method)
		}
	}
	asked, owner := twoReplicas(t)
	s := serve(t, asked, nil)
	answer, err := s.clusters().GetCluster(as(t, "admin"), &plimsollv1.GetClusterRequest{Cluster: "prod"})
	if err != nil || answer.GetCluster().GetOwner() != owner.address || answer.GetCluster().GetWorkloads().GetSpotActual() != 6 {
		t.Errorf("got %v, %v; want the owner's address and counts", answer, err)
	}
}

func TestACallersTokenIsNotSentToOtherReplicas(t *testing.T) {
	asked, owner := twoReplicas(t)
	s := serve(t, asked, nil)
	for method, call := range everyCall(s) {
		if err := call(as(t, "admin")); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, path := range []string{"/v1/clusters", "/v1/workloads", "/v1/operations/w.prod.shop.id-0"} {
		if response, body := s.call(t, "GET", path, "", bearing("admin")); response.StatusCode != 200 {
			t.Errorf("%s: HTTP %d: %s", path, response.StatusCode, body)
		}
	}
	if len(owner.fleet.received) < len(rules)-len(anywhere)+3 {
		t.Fatalf("the owner was asked %d times: the test tests nothing", len(owner.fleet.received))
	}
	for _, sent := range owner.fleet.received {
		if caller := sent.Get(callerHeader); len(caller) > 0 && caller[0] != "admin" || len(sent) > len(sent[callerHeader]) {
			t.Errorf("the owner was sent %v", sent)
		}
	}
}

// Operations are shared out among callers, so an order has to say whose it is wherever it ends, and nobody may say it for others.
func TestAnOrderSaysWhoseItIsAlsoByWayOfAnotherReplica(t *testing.T) {
	asked, owner := twoReplicas(t)
	for by, r := range map[string]*replica{"the owner": owner, "another replica": asked} {
		s := serve(t, r, nil)
		owner.orderedBy = nil
		for _, user := range []string{"alice", "bob"} {
			s.give(user, auth.Access{Verb: "requeue", Resource: "workloads", Member: "prod"})
			pretending := metadata.AppendToOutgoingContext(as(t, user), callerHeader, "mallory")
			_, err := s.workloads().RequeueWorkload(pretending, &plimsollv1.RequeueWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
			if err != nil {
				t.Errorf("%s: %v", by, err)
			}
		}
		if !slices.Equal(owner.orderedBy, []string{"alice", "bob"}) {
			t.Errorf("by way of %s orders were those of %q", by, owner.orderedBy)
		}
		events, _ := owner.journal.List("prod", "", "", 100)
		for i, want := range []string{"alice", "bob"} { // the last two
			if i += len(events) - 2; i < 0 || events[i].User != want {
				t.Errorf("by way of %s the journal has %v, want the order of %s", by, events, want)
			}
			if log := s.log.String(); strings.Count(log, `"msg":"API order"`) != 2 || !strings.Contains(log, `"user":"`+want+`"`) {
				t.Errorf("by way of %s the log has no line with the order of %s", by, want)
			}
		}
	}
}

func TestAPeerPassesNothingOn(t *testing.T) {
	asked, owner := twoReplicas(t)
	workloads := plimsollv1.NewWorkloadServiceClient(asked.peer)
	_, listErr := workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{Cluster: "prod"})
	_, getErr := workloads.GetWorkload(t.Context(), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
	for _, err := range []error{listErr, getErr} {
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("got %v, want FAILED_PRECONDITION", err)
		}
	}
	if owner.calls.Load() > 0 {
		t.Error("the owner was asked by way of another replica")
	}
}

// countingConn counts calls.
type countingConn struct {
	grpc.ClientConnInterface
	calls atomic.Int64
}

func (c *countingConn) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	c.calls.Add(1)
	return c.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
}

func TestAnOwnerThatHangsCostsAListOneTimeoutAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		asked, healthy, hung := f.replica(t, "a"), f.replica(t, "b"), f.replica(t, "hung")
		conn := &countingConn{ClientConnInterface: hungConn{}}
		hung.peer = conn
		var missing []string
		for i := range 100 {
			name := fmt.Sprintf("m%03d", i)
			asked.member(name)
			if i%10 == 5 {
				healthy.member(name)
				healthy.workload(name, "shop", "cart")
				f.give(name, "b")
				continue
			}
			f.give(name, "hung")
			missing = append(missing, name)
		}
		answer, err := asked.services(everything{}).workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.GetWorkloads()) != 10 {
			t.Errorf("%d workloads of the healthy owner, want 10", len(answer.GetWorkloads()))
		}
		var named []string
		for _, u := range answer.GetUnreachable() {
			named = append(named, u.GetMember())
			if u.GetReason() != "its owner does not answer" {
				t.Errorf("%s: %q", u.GetMember(), u.GetReason())
			}
		}
		if diff := cmp.Diff(missing, named); diff != "" {
			t.Errorf("unreachable (-want +got):\n%s", diff)
		}
		if calls := conn.calls.Load(); calls == 0 || calls > window {
			t.Errorf("the owner that hangs was called %d times, want those of the first window", calls)
		}
	})
}

func TestClustersOfAnOwnerThatIsGoneAreShownAsSeenHere(t *testing.T) {
	asked, owner := twoReplicas(t)
	owner.peer = nil
	s := asked.services(everything{})
	list, err := s.clusters.ListClusters(t.Context(), &plimsollv1.ListClustersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.clusters.GetCluster(t.Context(), &plimsollv1.GetClusterRequest{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	unreachable := []*plimsollv1.UnreachableMember{{Member: "prod", Reason: "its owner does not answer"}}
	for _, one := range []struct {
		cluster     *plimsollv1.Cluster
		unreachable []*plimsollv1.UnreachableMember
	}{{list.GetClusters()[0], list.GetUnreachable()}, {got.GetCluster(), got.GetUnreachable()}} {
		if one.cluster.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY || one.cluster.GetWorkloads() != nil {
			t.Errorf("got %v, want its state, and no counts that are not known", one.cluster)
		}
		if len(one.unreachable) != 1 || !proto.Equal(one.unreachable[0], unreachable[0]) {
			t.Errorf("unreachable %v, want %v", one.unreachable, unreachable)
		}
	}
}

func TestTheAddressOfAReplicaIsInNoError(t *testing.T) {
	asked, owner := twoReplicas(t)
	delete(owner.fleet.replicas, owner.address) // to connect fails, with an error that has the address
	s := serve(t, asked, nil)
	for method, call := range everyCall(s) {
		if err := call(as(t, "admin")); err != nil && strings.Contains(err.Error(), owner.address) {
			t.Errorf("%s: %v", method, err)
		}
	}
	get := everyCall(s)[plimsollv1.ObjectService_GetObjectState_FullMethodName]
	if err := get(as(t, "admin")); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `member "prod": its owner cannot be reached`) {
		t.Errorf("%v, want UNAVAILABLE that says why", err)
	}
	list, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{})
	if err != nil || len(list.GetUnreachable()) != 1 || strings.Contains(list.String(), owner.address) {
		t.Errorf("%v, %v", list, err)
	}
}

func TestOneObjectOfAnOwnerThatIsGoneIsUnavailable(t *testing.T) {
	asked, owner := twoReplicas(t)
	owner.peer = nil
	s := serve(t, asked, nil)
	for method, call := range everyCall(s) {
		err := call(as(t, "admin"))
		switch {
		case anywhere[method], rules[method].lists, method == plimsollv1.ClusterService_GetCluster_FullMethodName:
			if err != nil {
				t.Errorf("%s: %v", method, err)
			}
		case strings.Contains(method, ".FleetService/"): // it is of no one member
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the replica that plans FleetPlacements does not answer") {
				t.Errorf("%s: %v, want UNAVAILABLE that names the planner", method, err)
			}
		default:
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `member "prod": its owner does not answer`) {
				t.Errorf("%s: %v, want UNAVAILABLE that names member and owner", method, err)
			}
		}
	}
}

// movingConn gives the member away and fails, as an owner does that stops.
type movingConn struct {
	grpc.ClientConnInterface
	move func()
	err  error
}

func (c movingConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	c.move()
	return c.err
}

func TestAMemberThatChangesHandsMeanwhileIsAskedOfItsNewOwner(t *testing.T) {
	for name, failure := range map[string]error{
		"the old owner stops":         status.Error(codes.Unavailable, "connection reset"),
		"the old owner is no owner":   status.Error(codes.FailedPrecondition, "not mine"),
		"the old owner is cut off":    status.Error(codes.DeadlineExceeded, "too late"),
		"the old owner is too strict": status.Error(codes.PermissionDenied, "certificate"),
	} {
		t.Run(name, func(t *testing.T) {
			asked, owner := twoReplicas(t)
			stopping := owner.fleet.replica(t, "10.0.0.3:9444")
			stopping.peer = movingConn{move: func() { owner.fleet.give("prod", owner.address) }, err: failure}
			owner.fleet.give("prod", stopping.address)
			answer, err := asked.services(everything{}).objects.GetObjectState(t.Context(), &plimsollv1.GetObjectStateRequest{
				Cluster: "prod", Controller: "deployment-spot", Namespace: "shop", Name: "cart",
			})
			if err != nil || answer.GetObject().GetKey().GetName() != "cart" {
				t.Errorf("got %v, %v", answer, err)
			}
		})
	}
}

func TestWhatGoesWrongBetweenReplicasIsNotTheCallersFault(t *testing.T) {
	for _, code := range []codes.Code{
		codes.Unauthenticated, codes.PermissionDenied, codes.Internal, codes.Unimplemented, codes.ResourceExhausted,
		codes.FailedPrecondition, codes.DeadlineExceeded, codes.Unavailable, codes.Canceled, codes.Unknown,
	} {
		asked, owner := twoReplicas(t)
		owner.peer = movingConn{move: func() {}, err: status.Error(code, canary)}
		_, err := asked.services(everything{}).objects.GetObjectState(t.Context(), &plimsollv1.GetObjectStateRequest{Cluster: "prod", Controller: "c", Name: "x"})
		if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), canary) {
			t.Errorf("%s there is %v here, want UNAVAILABLE without their words", code, err)
		}
	}
}

func TestTheOwnersAnswerAboutTheRequestIsTheCallers(t *testing.T) {
	asked, _ := twoReplicas(t)
	_, err := asked.services(everything{}).workloads.GetWorkload(t.Context(), &plimsollv1.GetWorkloadRequest{
		Cluster: "prod", Namespace: "shop", Kind: "StatefulSet", Name: "cart",
	})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "no StatefulSet shop/cart") {
		t.Errorf("got %v", err)
	}
}

func TestWorkloadsThatMayBeOldOrAreMissingAreSaidToBe(t *testing.T) {
	r := shop(t)
	s := r.services(everything{})
	for name, c := range map[string]struct {
		change func(*clusters.Status)
		want   string
	}{
		"ready": {func(*clusters.Status) {}, ""},
		"unreachable": {func(s *clusters.Status) {
			s.State, s.Reason, s.Message = clusters.StateUnreachable, "ConnectionRefused", "nobody listens"
		}, "the member is Unreachable (ConnectionRefused): nobody listens"},
		"degraded by another kind": {func(s *clusters.Status) {
			s.State = clusters.StateDegraded
			s.Kinds = append(s.Kinds, clusters.KindStatus{Kind: "v1 Node", Reason: "forbidden"})
		}, ""},
		"degraded": {func(s *clusters.Status) {
			s.State = clusters.StateDegraded
			s.Kinds = []clusters.KindStatus{{Kind: "apps/v1 Deployment", Engaged: true}, {Kind: "apps/v1 StatefulSet", Reason: "forbidden"}}
		}, "apps/v1 StatefulSet is not cached: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			r.member("prod")
			r.set("prod", c.change)
			answer, err := s.workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, u := range answer.GetUnreachable() {
				got += u.GetMember() + ": " + u.GetReason()
			}
			if c.want != "" {
				c.want = "prod: " + c.want
			}
			if got != c.want || len(answer.GetWorkloads()) != 1 {
				t.Errorf("unreachable %q, %d workloads; want %q and 1", got, len(answer.GetWorkloads()), c.want)
			}
		})
	}
}

func TestAWorkloadOfAKindThatIsNotCachedIsNotSaidToBeMissing(t *testing.T) {
	r := shop(t)
	s := r.services(everything{})
	get := func() error {
		_, err := s.workloads.GetWorkload(t.Context(), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "StatefulSet", Name: "db"})
		return err
	}
	if err := get(); status.Code(err) != codes.NotFound {
		t.Errorf("the kind is cached, and there is none: %v, want NOT_FOUND", err)
	}
	for name, change := range map[string]func(*clusters.Status){
		"forbidden": func(s *clusters.Status) {
			s.State, s.Kinds = clusters.StateDegraded, []clusters.KindStatus{{Kind: "apps/v1 StatefulSet", Reason: "why: forbidden"}}
		},
		"connecting": func(s *clusters.Status) { s.State, s.Reason, s.Kinds = clusters.StateConnecting, "why: probing", nil },
	} {
		r.member("prod")
		r.set("prod", change)
		if err := get(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "why: ") {
			t.Errorf("%s: %v, want UNAVAILABLE that says why", name, err)
		}
	}
}

func TestAsOfIsTheOldestMomentThatIsShown(t *testing.T) {
	asked, owner := twoReplicas(t)
	planned := owner.statuses["prod"].RegisteredAt
	owner.workloads[0].Planned = planned
	asked.member("mine")
	asked.fleet.give("mine", asked.address)
	answer, err := asked.services(everything{}).workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{})
	if err != nil || !answer.GetAsOf().AsTime().Equal(planned) {
		t.Errorf("as_of %v, %v; want %v", answer.GetAsOf().AsTime(), err, planned)
	}
}
