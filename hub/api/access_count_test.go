package api

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

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
	reviews := &accessReviews{allow: func(asked authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		name := asked.ResourceAttributes.Name
		return authorizationv1.SubjectAccessReviewStatus{Allowed: asked.User == "all" || asked.User == "few" && (name == "m0007" || name == "m0499")}
	}}
	s := serve(t, r, func(o *Options) { o.Authorizer = reviews.reviewer() })

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
	// Longer than a denial is remembered for calls about one member.
	before = reviews.count()
	reviews.forget(deniedFor)
	for range 5 {
		if shown := s.listAll(t, "few"); shown != 2 {
			t.Errorf("who may see two sees %d", shown)
		}
	}
	if n := reviews.count() - before; n > 2+5*pages {
		t.Errorf("%d reviews for five more lists of who may see two of %d members", n, members)
	}
}

// heldReviews allows everything, as soon as it is let go.
type heldReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	asked atomic.Int64
	let   chan struct{}
}

func (h *heldReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	h.asked.Add(1)
	<-h.let
	review.Status.Allowed = true
	return review, nil
}

// The same question at the same moment is asked once.
func TestListsAtTheSameMomentShareTheirReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &heldReviews{let: make(chan struct{})}
		reviewer := NewAccessReviewer(reviews)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if allowed, err := reviewer.Allowed(t.Context(), Identity{User: "alice"}, getProd); !allowed || err != nil {
					t.Errorf("got %v, %v", allowed, err)
				}
			})
		}
		synctest.Wait() // all of them wait for an answer
		close(reviews.let)
		all.Wait()
		if n := reviews.asked.Load(); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
	})
}

// A watch is for all members that its reader may see, also where these are few of many.
func TestAWatchOfFewOfManyMembersIsServed(t *testing.T) {
	r := manyMembers(t, 4*maxChecks)
	s := serve(t, r, nil)
	s.give("few", Access{Verb: verbList, Resource: resourceClusters, Member: "m0003"}, Access{Verb: verbList, Resource: resourceClusters, Member: "m0500"})
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
