package api

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// manyMembers is a replica that owns so many.
func manyMembers(t *testing.T, n int) *replica {
	t.Helper()
	r := newFleet().replica(t, "self")
	for i := range n {
		name := fmt.Sprintf("m%04d", i)
		r.member(name)
		r.fleet.give(name, "self")
	}
	return r
}

// memberReviews are the access reviews of a hub cluster, and an [auth.Authorizer] that asks for them.
type memberReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	reviewer atomic.Pointer[auth.AccessReviewer]

	mu    sync.Mutex
	asked int
	allow func(user, member string) bool
}

func newMemberReviews(allow func(user, member string) bool) *memberReviews {
	r := &memberReviews{allow: allow}
	r.forget()
	return r
}

// forget drops what the reviewer remembers.
func (r *memberReviews) forget() { r.reviewer.Store(auth.NewAccessReviewer(r)) }

func (r *memberReviews) Allowed(ctx context.Context, who auth.Identity, access auth.Access) (bool, error) {
	return r.reviewer.Load().Allowed(ctx, who, access)
}

func (r *memberReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	review.Status.Allowed = r.allow(review.Spec.User, review.Spec.ResourceAttributes.Name)
	return review, nil
}

func (r *memberReviews) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// takeAway denies everything from now on.
func (r *memberReviews) takeAway() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allow = func(string, string) bool { return false }
}

// listAll follows the pages of ListClusters to the end, and returns how many members they show.
func (s *served) listAll(t *testing.T, who string) int {
	t.Helper()
	shown, token := 0, ""
	for {
		answer, err := s.clusters().ListClusters(as(t, who), &plimsollv1.ListClustersRequest{PageSize: 500, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		shown += len(answer.GetClusters())
		if token = answer.GetNextPageToken(); token == "" {
			return shown
		}
	}
}

// What a list costs the hub cluster: one review where the caller may see all members, however often; else one for each member and a
// few, which are remembered.
func TestAListOfManyMembersTakesFewReviews(t *testing.T) {
	const members = 500
	r := manyMembers(t, members)
	reviews := newMemberReviews(func(user, member string) bool {
		return user == "all" || user == "few" && (member == "m0007" || member == "m0499")
	})
	s := serve(t, r, func(o *Options) { o.Authorizer = reviews })

	for range 5 {
		if shown := s.listAll(t, "all"); shown != members {
			t.Errorf("who may see all sees %d", shown)
		}
	}
	if n := reviews.count(); n != 1 {
		t.Errorf("%d reviews for five lists of all members, want 1", n)
	}

	before := reviews.count()
	if shown := s.listAll(t, "few"); shown != 2 {
		t.Errorf("who may see two sees %d", shown)
	}
	pages := (members+maxChecks-1)/maxChecks + 1
	if n := reviews.count() - before; n > members+pages {
		t.Errorf("%d reviews for the first list of who may see two, want %d and one for each page", n, members)
	}
	// Hidden members are remembered for longer than the reviewer remembers a denial.
	before = reviews.count()
	reviews.forget()
	for range 5 {
		if shown := s.listAll(t, "few"); shown != 2 {
			t.Errorf("who may see two sees %d", shown)
		}
	}
	if n := reviews.count() - before; n > 2+5*pages {
		t.Errorf("%d reviews for five more lists of who may see two of %d members", n, members)
	}
}

// A watch is for all members that its reader may see, also where these are few of many.
func TestAWatchOfFewOfManyMembersIsServed(t *testing.T) {
	r := manyMembers(t, 4*maxChecks)
	s := serve(t, r, nil)
	s.give("few", auth.Access{Verb: verbList, Resource: resourceClusters, Member: "m0003"}, auth.Access{Verb: verbList, Resource: resourceClusters, Member: "m0500"})
	stream, err := s.clusters().WatchClusters(as(t, "few"), &plimsollv1.WatchClustersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
			break
		}
		shown[message.GetCluster().GetName()] = true
	}
	if len(shown) != 2 || !shown["m0003"] || !shown["m0500"] {
		t.Errorf("it shows %v", shown)
	}
}

// A FleetPlacement may name any member in its texts, so the caller's rights in all members are asked about: in so many at most, and for
// the members that it is spread over first. What is hidden is remembered.
func TestAFleetPlacementTakesFewReviewsHoweverManyMembersThereAre(t *testing.T) {
	r := manyMembers(t, maxChecksOfAll+100)
	last := fmt.Sprintf("m%04d", maxChecksOfAll+99)
	r.place("shop", "cart", 1, "m0000", last)
	reviews := newMemberReviews(func(_, about string) bool { return about == "cart" || about == last })
	s := serve(t, r, func(o *Options) { o.Authorizer = reviews })
	get := func() *plimsollv1.FleetPlacement {
		t.Helper()
		got, err := s.fleet().GetFleetPlacement(as(t, "tenant"), &plimsollv1.GetFleetPlacementRequest{Namespace: "shop", Name: "cart"})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetPlacement()
	}
	if p := get(); p.GetHiddenMembers() != 1 || len(p.GetMembers()) != 1 || p.GetMembers()[0].GetName() != last {
		t.Errorf("shown: %v", p)
	}
	const others = 2 // the right to the FleetPlacement, and to the workloads of all members
	if n := reviews.count(); n > maxChecksOfAll+others {
		t.Errorf("%d reviews, want %d at most", n, maxChecksOfAll+others)
	}
	before := reviews.count()
	reviews.forget()
	get()
	get()
	if n := reviews.count() - before; n > 2*(100+1+others) {
		t.Errorf("%d reviews for two more, of which %d members are known to be hidden", n, maxChecksOfAll-1)
	}
}
