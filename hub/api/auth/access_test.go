package auth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clienttesting "k8s.io/client-go/testing"
)

// accessReviews is a cluster that answers as configured and keeps what it was asked.
type accessReviews struct {
	mu    sync.Mutex
	asked []authorizationv1.SubjectAccessReviewSpec
	allow func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus
	err   error
}

func (r *accessReviews) reviewer() *AccessReviewer {
	clients := fake.NewClientset()
	clients.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		r.mu.Lock()
		r.asked = append(r.asked, review.Spec)
		allow, err := r.allow, r.err
		r.mu.Unlock()
		if allow != nil {
			review.Status = allow(review.Spec)
		}
		return true, review, err
	})
	return NewAccessReviewer(clients.AuthorizationV1().SubjectAccessReviews())
}

func allowAll(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
}

var getProd = Access{Verb: "get", Resource: "clusters", Member: "prod"}

func TestAccessIsReviewedForTheWholeIdentityTheMemberAndTheNamespace(t *testing.T) {
	reviews := &accessReviews{allow: allowAll}
	who := Identity{User: "alice", UID: "u-1", Groups: []string{"b", "a"}, Extra: map[string][]string{"k": {"v"}}}
	allowed, err := reviews.reviewer().Allowed(t.Context(), who, Access{Verb: "get", Resource: "workloads", Member: "prod", Namespace: "shop"})
	if err != nil || !allowed {
		t.Fatalf("got %v, %v", allowed, err)
	}
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: "alice", UID: "u-1", Groups: []string{"b", "a"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "api.plimsoll.dev", Version: "v1", Resource: "workloads", Verb: "get", Name: "prod", Namespace: "shop",
		},
	}}
	if diff := cmp.Diff(want, reviews.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAnExplicitDenialWinsAndNobodyIsNotAnybody(t *testing.T) {
	reviews := &accessReviews{allow: func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}
	}}
	if allowed, err := reviews.reviewer().Allowed(t.Context(), Identity{User: "alice"}, getProd); allowed || err != nil {
		t.Errorf("allowed and denied at once gave %v, %v", allowed, err)
	}
	reviews = &accessReviews{allow: allowAll}
	if allowed, err := reviews.reviewer().Allowed(t.Context(), Identity{Groups: []string{"system:masters"}}, getProd); allowed || err != nil {
		t.Errorf("somebody without a name was let in: %v, %v", allowed, err)
	}
	if len(reviews.asked) != 0 {
		t.Error("the cluster was asked about somebody without a name")
	}
}

func TestRememberedAccessIsOfThatIdentityAndThatAccessOnly(t *testing.T) {
	reviews := &accessReviews{allow: func(asked authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: asked.User == "a" && asked.UID == "" && len(asked.Groups) == 1 &&
			len(asked.Extra) == 0 && asked.ResourceAttributes.Name == "prod" && asked.ResourceAttributes.Verb == "get" && asked.ResourceAttributes.Resource == "clusters"}
	}}
	reviewer := reviews.reviewer()
	who := Identity{User: "a", Groups: []string{"b,c"}}
	for range 3 {
		if allowed, err := reviewer.Allowed(t.Context(), who, getProd); !allowed || err != nil {
			t.Fatalf("got %v, %v", allowed, err)
		}
	}
	if len(reviews.asked) != 1 {
		t.Errorf("%d reviews, want 1", len(reviews.asked))
	}
	for name, other := range map[string]struct {
		who  Identity
		what Access
	}{
		"a longer name":     {Identity{User: "ab", Groups: []string{"b,c"}}, getProd},
		"groups that join":  {Identity{User: "a", Groups: []string{"b", "c"}}, getProd},
		"another UID":       {Identity{User: "a", UID: "1", Groups: []string{"b,c"}}, getProd},
		"extra":             {Identity{User: "a", Groups: []string{"b,c"}, Extra: map[string][]string{"k": nil}}, getProd},
		"another member":    {who, Access{Verb: "get", Resource: "clusters", Member: "prod-2"}},
		"every member":      {who, Access{Verb: "get", Resource: "clusters"}},
		"another verb":      {who, Access{Verb: "list", Resource: "clusters", Member: "prod"}},
		"another resource":  {who, Access{Verb: "get", Resource: "workloads", Member: "prod"}},
		"parts that shift":  {Identity{User: "a", Groups: []string{"b,c"}}, Access{Verb: "get", Resource: "clustersprod"}},
		"a name with quote": {Identity{User: `a","UID":"`, Groups: []string{"b,c"}}, getProd},
	} {
		if allowed, err := reviewer.Allowed(t.Context(), other.who, other.what); allowed || err != nil {
			t.Errorf("%s: got %v, %v from what was remembered of another", name, allowed, err)
		}
	}
}

func TestAccessThatWasTakenAwayOrGivenShowsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &accessReviews{allow: allowAll}
		reviewer := reviews.reviewer()
		check := func(want bool, when string) {
			t.Helper()
			if got, err := reviewer.Allowed(t.Context(), Identity{User: "alice"}, getProd); got != want || err != nil {
				t.Errorf("%s: got %v, %v", when, got, err)
			}
		}
		check(true, "at first")
		reviews.allow = nil
		check(true, "just after it was taken away")
		time.Sleep(allowedFor)
		check(false, "10 s after it was taken away")
		reviews.allow = allowAll
		time.Sleep(deniedFor)
		check(true, "2 s after it was given")
	})
}

func TestAReviewThatFailsDecidesNothingAndIsNotRemembered(t *testing.T) {
	reviews := &accessReviews{allow: allowAll, err: errors.New("connection refused")}
	reviewer := reviews.reviewer()
	if allowed, err := reviewer.Allowed(t.Context(), Identity{User: "alice"}, getProd); allowed || err == nil {
		t.Errorf("got %v, %v, want an error", allowed, err)
	}
	reviews.err = nil
	if allowed, err := reviewer.Allowed(t.Context(), Identity{User: "alice"}, getProd); !allowed || err != nil {
		t.Errorf("got %v, %v after the cluster answers again", allowed, err)
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
