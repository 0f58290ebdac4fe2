package auth_test

import (
	"context"
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// cluster is a hub cluster that knows alice by her token, and lets her get clusters named prod; it counts what it is asked.
func cluster() (clients *fake.Clientset, asked map[string]int) {
	clients, asked = fake.NewClientset(), map[string]int{}
	clients.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		asked["tokens"]++
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: review.Spec.Token == "alices", Audiences: review.Spec.Audiences,
			User: authenticationv1.UserInfo{Username: "alice", Groups: []string{"team"}}}
		return true, review, nil
	})
	clients.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked["access"]++
		of := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "alice" && of.Group == auth.Group && of.Verb == "get" && of.Resource == "clusters" && of.Name == "prod"
		return true, review, nil
	})
	return clients, asked
}

func TestWhoCallsAndWhatTheyMayIsAskedOfTheHubCluster(t *testing.T) {
	clients, asked := cluster()
	who, err := auth.NewTokenReviewer(clients.AuthenticationV1().TokenReviews(), "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	may := auth.NewAccessReviewer(clients.AuthorizationV1().SubjectAccessReviews())
	for range 3 { // what was answered is remembered for seconds
		alice, err := who.Authenticate(t.Context(), "alices")
		if err != nil || alice.User != "alice" || len(alice.Groups) != 1 {
			t.Fatalf("%+v, %v", alice, err)
		}
		for name, test := range map[string]struct {
			access auth.Access
			want   bool
		}{
			"her cluster":    {auth.Access{Verb: "get", Resource: "clusters", Member: "prod"}, true},
			"another one":    {auth.Access{Verb: "get", Resource: "clusters", Member: "test"}, false},
			"another verb":   {auth.Access{Verb: "requeue", Resource: "clusters", Member: "prod"}, false},
			"all of them":    {auth.Access{Verb: "get", Resource: "clusters"}, false},
			"something else": {auth.Access{Verb: "get", Resource: "workloads", Member: "prod"}, false},
		} {
			if got, err := may.Allowed(t.Context(), alice, test.access); err != nil || got != test.want {
				t.Errorf("%s: %t, %v", name, got, err)
			}
		}
	}
	if asked["tokens"] != 1 {
		t.Errorf("one token was reviewed %d times", asked["tokens"])
	}
}

func TestATokenOfNobodyIsRefusedAndNotQuoted(t *testing.T) {
	clients, _ := cluster()
	who, err := auth.NewTokenReviewer(clients.AuthenticationV1().TokenReviews(), "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := who.Authenticate(context.Background(), "mallorys"); !errors.Is(err, auth.ErrBadToken) || err.Error() != auth.ErrBadToken.Error() {
		t.Errorf("%v", err)
	}
}

func TestWhatAListLeftOutIsRememberedForItsCallerOnly(t *testing.T) {
	hidden, list := auth.NewUnlisted(), auth.Access{Verb: "list", Resource: "clusters"}
	alices, err := hidden.Of(auth.Identity{User: "alice"}, list, 100)
	if err != nil {
		t.Fatal(err)
	}
	alices.Add("secret")
	again, err := hidden.Of(auth.Identity{User: "alice"}, list, 100)
	if err != nil || !again.Has("secret") || again.Has("prod") {
		t.Errorf("alice's list: secret hidden %t, prod hidden %t, %v", again.Has("secret"), again.Has("prod"), err)
	}
	bobs, err := hidden.Of(auth.Identity{User: "bob"}, list, 100)
	if err != nil || bobs.Has("secret") {
		t.Errorf("bob's list leaves out what was hidden from alice: %v", err)
	}
}
