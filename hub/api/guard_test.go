package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// podOf is what the hub cluster says of a token that it accepts.
func podOf(user string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}}
}

func TestOnlyWhoMayGetThePathIsLetIn(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		tokens  authenticationv1.TokenReviewStatus
		broken  error
		allowed bool
		want    int
	}{
		"a token that may":         {headers: []string{"Bearer good"}, tokens: podOf("prometheus"), allowed: true, want: http.StatusOK},
		"a token that may not":     {headers: []string{"Bearer good"}, tokens: podOf("tenant"), want: http.StatusForbidden},
		"no token":                 {allowed: true, want: http.StatusUnauthorized},
		"a bad token":              {headers: []string{"Bearer bad"}, allowed: true, want: http.StatusUnauthorized},
		"two tokens":               {headers: []string{"Bearer good", "Bearer bad"}, tokens: podOf("prometheus"), allowed: true, want: http.StatusUnauthorized},
		"somebody without a name":  {headers: []string{"Bearer good"}, tokens: podOf(""), allowed: true, want: http.StatusUnauthorized},
		"a cluster without answer": {headers: []string{"Bearer good"}, broken: errors.New("gone"), want: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset()
			clients.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
				if len(review.Spec.Audiences) > 0 {
					t.Errorf("asked for the audiences %v, which tokens of pods are not for", review.Spec.Audiences)
				}
				review.Status = c.tokens
				return true, review, c.broken
			})
			clients.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
				want := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
				if diff := cmp.Diff(want, review.Spec.NonResourceAttributes); diff != "" || review.Spec.ResourceAttributes != nil {
					t.Errorf("asked for something else: %v %s", review.Spec.ResourceAttributes, diff)
				}
				review.Status.Allowed = c.allowed
				return true, review, nil
			})
			authenticator, err := auth.NewPodTokenReviewer(clients.AuthenticationV1().TokenReviews())
			if err != nil {
				t.Fatal(err)
			}
			authorizer := auth.NewAccessReviewer(clients.AuthorizationV1().SubjectAccessReviews())
			guarded := Guard("/metrics", authenticator, authorizer, slog.New(slog.DiscardHandler), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("series"))
			}))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			request.Header["Authorization"] = c.headers
			answer := httptest.NewRecorder()
			guarded.ServeHTTP(answer, request)
			if answer.Code != c.want || (answer.Body.String() == "series") != (c.want == http.StatusOK) {
				t.Errorf("answered %d %q, not %d", answer.Code, answer.Body, c.want)
			}
		})
	}
}

// The limits of a flood of bad tokens are by address. Who sends one must be known, or they are nobody's, or everybody's.
func TestAFloodOfBadTokensAtMetricsCostsItsAddressAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, asked := fake.NewClientset(), 0
		clients.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
			if review.Spec.Token == "good" {
				review.Status = podOf("prometheus")
			}
			return true, review, nil
		})
		authenticator, err := auth.NewPodTokenReviewer(clients.AuthenticationV1().TokenReviews())
		if err != nil {
			t.Fatal(err)
		}
		nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		guarded := Guard("/metrics", authenticator, &hubCluster{}, slog.New(slog.DiscardHandler), nothing)
		scrape := func(from, token string) int {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			request.RemoteAddr = from
			request.Header.Set("Authorization", "Bearer "+token)
			answer := httptest.NewRecorder()
			guarded.ServeHTTP(answer, request)
			return answer.Code
		}
		var last int
		for i := range 100 {
			last = scrape(fmt.Sprintf("10.0.0.1:%d", 1024+i), fmt.Sprint("bad", i))
		}
		if asked > 10 || last != http.StatusTooManyRequests {
			t.Errorf("the cluster was asked about %d bad tokens of one address, and the last is answered %d", asked, last)
		}
		if got := scrape("10.0.0.2:1024", "good"); got != http.StatusOK {
			t.Errorf("a scraper at another address is answered %d", got)
		}
	})
}
