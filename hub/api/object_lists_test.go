package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// record adds a key to a replica's ledger.
func (r *replica) record(member, controller, namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reconcile.Key{Controller: controller, Member: member, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	r.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle}
}

// ledgers are two replicas, of which the first answers and the second owns the member "test".
func ledgers(t *testing.T) (*replica, *replica) {
	t.Helper()
	first := newFleet().replica(t, "10.0.0.1:9444")
	second := first.fleet.replica(t, "10.0.0.2:9444")
	for _, r := range []*replica{first, second} {
		r.member("dev", "prod", "test")
	}
	for member, owner := range map[string]*replica{"dev": first, "prod": first, "test": second} {
		first.fleet.give(member, owner.address)
		for _, controller := range []string{"webapp", "fleet-config"} {
			for _, key := range []string{"shop/cart", "shop/web", "bank/web", "/whole-cluster"} {
				namespace, name, _ := strings.Cut(key, "/")
				owner.record(member, controller, namespace, name)
			}
		}
	}
	return first, second
}

// allObjects reads a list page by page.
func allObjects(t *testing.T, s *served, who string, request *plimsollv1.ListObjectsRequest) (found []string, pages int, gaps []string) {
	t.Helper()
	for {
		answer, err := s.objects().ListObjects(as(t, who), request)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, o := range answer.GetObjects() {
			key := o.GetKey()
			found = append(found, key.GetCluster()+" "+key.GetController()+" "+key.GetNamespace()+"/"+key.GetName())
		}
		for _, gap := range answer.GetUnreachable() {
			gaps = append(gaps, gap.GetMember()+": "+gap.GetReason())
		}
		if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
			return found, pages, gaps
		}
	}
}

func TestObjectsOfAllControllersAreListedWhoeverOwnsTheirMember(t *testing.T) {
	first, _ := ledgers(t)
	s := serve(t, first, nil)
	found, pages, gaps := allObjects(t, s, "admin", &plimsollv1.ListObjectsRequest{PageSize: 5})
	if len(found) != 24 || !slices.IsSorted(found) || len(slices.Compact(slices.Clone(found))) != 24 || pages < 5 || len(gaps) != 0 {
		t.Errorf("%d pages and gaps %v: %v", pages, gaps, found)
	}
	found, _, _ = allObjects(t, s, "admin", &plimsollv1.ListObjectsRequest{Cluster: "test", Controller: "webapp", Namespace: "shop", PageSize: 1})
	if want := []string{"test webapp shop/cart", "test webapp shop/web"}; !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

func TestObjectsAreListedOnlyOfMembersThatTheCallerMaySee(t *testing.T) {
	first, _ := ledgers(t)
	s := serve(t, first, nil)
	s.give("dev-only", auth.Access{Verb: "list", Resource: "objects", Member: "dev"})
	s.give("shop-only", auth.Access{Verb: "list", Resource: "objects", Namespace: "shop"})
	if found, _, _ := allObjects(t, s, "dev-only", &plimsollv1.ListObjectsRequest{}); len(found) != 8 || !strings.HasPrefix(found[7], "dev ") {
		t.Errorf("%v", found)
	}
	if found, _, _ := allObjects(t, s, "shop-only", &plimsollv1.ListObjectsRequest{Namespace: "shop"}); len(found) != 12 {
		t.Errorf("%v", found)
	}
	for who, request := range map[string]*plimsollv1.ListObjectsRequest{
		"shop-only": {}, "nobody": {}, "dev-only": {Cluster: "prod"},
	} {
		if _, err := s.objects().ListObjects(as(t, who), request); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", who, err)
		}
	}
	if _, err := s.objects().ListControllers(as(t, "shop-only"), &plimsollv1.ListControllersRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("controllers: %v", err)
	}
}

func TestAMemberWhoseOwnerIsGoneIsNamedAndCostsNoOtherItsObjects(t *testing.T) {
	first, second := ledgers(t)
	second.peer = nil
	first.set("dev", func(known *clusters.Status) { known.State, known.Reason = clusters.StateUnreachable, "Timeout" })
	found, _, gaps := allObjects(t, serve(t, first, nil), "admin", &plimsollv1.ListObjectsRequest{})
	if len(found) != 16 || len(gaps) != 2 || !strings.HasPrefix(gaps[0], "dev: the member is Unreachable (Timeout)") || !strings.HasPrefix(gaps[1], "test: ") {
		t.Errorf("gaps %v, %v", gaps, found)
	}
}

func TestControllersAreListedWithWhatTheyDo(t *testing.T) {
	first, _ := ledgers(t)
	s := serve(t, first, nil)
	for _, size := range []int32{1, 3, 4} { // pages that end at a member, and within one
		var found []string
		for token, more := "", true; more; more = token != "" {
			answer, err := s.objects().ListControllers(as(t, "admin"), &plimsollv1.ListControllersRequest{PageSize: size, PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range answer.GetControllers() {
				found = append(found, c.GetCluster()+" "+c.GetName())
				if c.GetObjects() != 4 || c.GetQueued() != 1 || c.GetHeld() != "a test" || c.GetKind() != "apps/v1 Deployment" {
					t.Errorf("%v", c)
				}
			}
			token = answer.GetNextPageToken()
		}
		if want := []string{"dev fleet-config", "dev webapp", "prod fleet-config", "prod webapp", "test fleet-config", "test webapp"}; !slices.Equal(found, want) {
			t.Errorf("pages of %d: %v, want %v", size, found, want)
		}
	}
	answer, body := s.call(t, http.MethodGet, "/v1/controllers?cluster=prod", "", bearing("admin"))
	if answer.StatusCode != http.StatusOK || strings.Count(body, `"cluster"`) != 2 {
		t.Errorf("%s %s", answer.Status, body)
	}
	if _, err := s.objects().ListObjects(as(t, "admin"), &plimsollv1.ListObjectsRequest{PageToken: "made-up"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a token that nobody made: %v", err)
	}
}

// Who asks a replica that has just started must not learn that a member is gone which it has not read yet.
func TestAReplicaThatHasNotReadTheRegistrationsKnowsOfNoMemberThatIsMissing(t *testing.T) {
	first, _ := ledgers(t)
	s := serve(t, first, nil)
	ask := func(member string) codes.Code {
		_, err := s.objects().GetObjectState(as(t, "admin"), &plimsollv1.GetObjectStateRequest{Cluster: member, Controller: "webapp", Namespace: "shop", Name: "cart"})
		return status.Code(err)
	}
	if got := ask("new"); got != codes.NotFound {
		t.Errorf("a member that nobody registered: %s", got)
	}
	first.starting = true
	if got := ask("new"); got != codes.Unavailable {
		t.Errorf("a member that is not known yet: %s", got)
	}
	if got := ask("dev"); got != codes.OK {
		t.Errorf("a member that is known already: %s", got)
	}
	if _, err := s.objects().ListObjects(as(t, "admin"), &plimsollv1.ListObjectsRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a list that lacks members: %v", err)
	}
	if _, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a list of members that lacks some: %v", err)
	}
	if _, err := s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{Filter: "true"}); status.Code(err) != codes.Unavailable {
		t.Errorf("an order for all members: %v", err)
	}
	watch, err := s.clusters().WatchClusters(as(t, "admin"), &plimsollv1.WatchClustersRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a watch whose snapshot lacks members: %v", err)
	}
}
