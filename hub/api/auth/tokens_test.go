package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// secret is a token that must appear nowhere.
const secret = "canary-eyJhbGciOiJSUzI1NiJ9"

// tokenReviews is a cluster that answers as configured and keeps what it was asked.
type tokenReviews struct {
	asked  []authenticationv1.TokenReviewSpec
	answer authenticationv1.TokenReviewStatus
	err    error
	wait   chan struct{} // answered when closed; nil: at once
}

func (r *tokenReviews) reviewer(t *testing.T) *TokenReviewer {
	t.Helper()
	clients := fake.NewClientset()
	clients.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		r.asked = append(r.asked, review.Spec)
		if r.wait != nil {
			<-r.wait
		}
		review.Status = r.answer
		return true, review, r.err
	})
	reviewer, err := NewTokenReviewer(clients.AuthenticationV1().TokenReviews(), "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	return reviewer
}

func accepted(user string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{"plimsoll"},
		User: authenticationv1.UserInfo{Username: user, UID: "u-1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
	}
}

func TestATokenIsReviewedForTheAudienceAndGivesItsIdentity(t *testing.T) {
	reviews := &tokenReviews{answer: accepted("alice")}
	got, err := reviews.reviewer(t).Authenticate(t.Context(), "t-1")
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{User: "alice", UID: "u-1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	asked := []authenticationv1.TokenReviewSpec{{Token: "t-1", Audiences: []string{"plimsoll"}}}
	if diff := cmp.Diff(asked, reviews.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestTokensThatBelongToNobodyHereAreRejected(t *testing.T) {
	for name, answer := range map[string]authenticationv1.TokenReviewStatus{
		"not authenticated":          {User: authenticationv1.UserInfo{Username: "alice"}, Audiences: []string{"plimsoll"}},
		"without a name":             accepted(""),
		"for the API server itself":  {Authenticated: true, User: authenticationv1.UserInfo{Username: "alice"}},
		"for another audience":       {Authenticated: true, Audiences: []string{"plimsoll-2"}, User: authenticationv1.UserInfo{Username: "alice"}},
		"for a part of the audience": {Authenticated: true, Audiences: []string{"plim"}, User: authenticationv1.UserInfo{Username: "alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			reviews := &tokenReviews{answer: answer}
			if got, err := reviews.reviewer(t).Authenticate(t.Context(), "t-1"); !errors.Is(err, ErrBadToken) {
				t.Errorf("got %+v, %v; want ErrBadToken", got, err)
			}
		})
	}
	reviews := &tokenReviews{answer: accepted("alice")}
	for _, token := range []string{"", strings.Repeat("x", maxToken+1)} {
		if _, err := reviews.reviewer(t).Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) {
			t.Errorf("a token of %d bytes: %v, want ErrBadToken", len(token), err)
		}
	}
	if len(reviews.asked) != 0 {
		t.Errorf("the cluster was asked about tokens that cannot be any: %d times", len(reviews.asked))
	}
}

func TestAnAcceptedTokenIsReviewedAgainOnlyAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &tokenReviews{answer: accepted("alice")}
		reviewer := reviews.reviewer(t)
		for range 5 {
			if _, err := reviewer.Authenticate(t.Context(), "t-1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(acceptedFor/5 - time.Millisecond)
		}
		if len(reviews.asked) != 1 {
			t.Errorf("%d reviews within the time, want 1", len(reviews.asked))
		}
		reviews.answer = authenticationv1.TokenReviewStatus{} // revoked
		time.Sleep(time.Second)
		if _, err := reviewer.Authenticate(t.Context(), "t-1"); !errors.Is(err, ErrBadToken) {
			t.Errorf("a revoked token still works after %s: %v", acceptedFor, err)
		}
	})
}

func TestARejectedTokenIsForgottenAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &tokenReviews{}
		reviewer := reviews.reviewer(t)
		for range 3 {
			if _, err := reviewer.Authenticate(t.Context(), "t-1"); !errors.Is(err, ErrBadToken) {
				t.Fatalf("got %v", err)
			}
		}
		if len(reviews.asked) != 1 {
			t.Errorf("%d reviews of a bad token that was repeated, want 1", len(reviews.asked))
		}
		reviews.answer = accepted("alice")
		time.Sleep(rejectedFor)
		if _, err := reviewer.Authenticate(t.Context(), "t-1"); err != nil {
			t.Errorf("a token that became valid: %v", err)
		}
	})
}

func TestWhatOneTokenGaveIsNotGivenToAnother(t *testing.T) {
	reviews := &tokenReviews{answer: accepted("alice")}
	reviewer := reviews.reviewer(t)
	if _, err := reviewer.Authenticate(t.Context(), "ab"); err != nil {
		t.Fatal(err)
	}
	reviews.answer = authenticationv1.TokenReviewStatus{}
	for _, token := range []string{"a", "abc", "AB", " ab"} {
		if _, err := reviewer.Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) {
			t.Errorf("token %q was taken for another: %v", token, err)
		}
	}
}

func TestAClusterThatDoesNotAnswerDecidesNothing(t *testing.T) {
	reviews := &tokenReviews{err: errors.New("connection refused")}
	reviewer := reviews.reviewer(t)
	if _, err := reviewer.Authenticate(t.Context(), secret); err == nil || errors.Is(err, ErrBadToken) || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want another error than ErrBadToken, without the token", err)
	}
	reviews.err, reviews.answer = nil, accepted("alice")
	if _, err := reviewer.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("the failure was remembered: %v", err)
	}
}

func TestACallerWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &tokenReviews{answer: accepted("alice"), wait: make(chan struct{})}
		reviewer := reviews.reviewer(t)
		impatient, cancel := context.WithCancel(t.Context())
		gaveUp, served := make(chan error, 1), make(chan error, 1)
		go func() { _, err := reviewer.Authenticate(impatient, "t-1"); gaveUp <- err }()
		synctest.Wait()
		go func() { _, err := reviewer.Authenticate(t.Context(), "t-1"); served <- err }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		close(reviews.wait)
		if err := <-served; err != nil {
			t.Errorf("who waited got %v", err)
		}
		if len(reviews.asked) != 1 {
			t.Errorf("%d reviews of one token at one time, want 1", len(reviews.asked))
		}
	})
}

func TestTheTokenCacheHoldsNoToken(t *testing.T) {
	reviews := &tokenReviews{answer: accepted("alice")}
	reviewer := reviews.reviewer(t)
	if _, err := reviewer.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	key := reviewer.key(secret)
	known, ok := reviewer.known.Get(key)
	if dump := fmt.Sprintf("%s %+v", key, known); !ok || strings.Contains(dump, secret) {
		t.Errorf("the token is kept, or nothing is: %s", dump)
	}
}

func TestAnEmptyAudienceIsRefused(t *testing.T) {
	if _, err := NewTokenReviewer(fake.NewClientset().AuthenticationV1().TokenReviews(), ""); err == nil {
		t.Error("otherwise any token of the hub cluster would be accepted")
	}
}
