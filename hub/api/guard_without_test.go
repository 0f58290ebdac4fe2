package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// A hubCluster answers about tokens and access, or does not.
type hubCluster struct {
	tokens, rights error // that it answers with
	silent         bool  // it does not answer at all
	denies         bool
}

func (c *hubCluster) Authenticate(ctx context.Context, token string) (auth.Identity, error) {
	if c.silent {
		<-ctx.Done()
		return auth.Identity{}, ctx.Err()
	}
	return auth.Identity{User: token}, c.tokens
}

func (c *hubCluster) Allowed(context.Context, auth.Identity, auth.Access) (bool, error) {
	return !c.denies, c.rights
}

// scrapes returns a function that scrapes with a token, for as long as Prometheus does, and returns the status of the answer.
func (c *hubCluster) scrapes(t *testing.T) func(token string) int {
	guarded := Guard("/metrics", c, c, slog.New(slog.DiscardHandler), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func(token string) int {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		return answer.Code
	}
}

func TestAScraperThatWasLetInGoesOnForAnHourWhileTheHubClusterCannotBeAsked(t *testing.T) {
	gone := errors.New("connection refused")
	for name, without := range map[string]func(*hubCluster){
		"tokens cannot be reviewed": func(c *hubCluster) { c.tokens = gone },
		"access cannot be reviewed": func(c *hubCluster) { c.rights = gone },
		"it does not answer":        func(c *hubCluster) { c.silent = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &hubCluster{}
				scrape := cluster.scrapes(t)
				if got := scrape("prometheus"); got != http.StatusOK {
					t.Fatalf("the hub cluster allows it, and the answer is %d", got)
				}
				without(cluster)
				time.Sleep(allowedWithout - time.Minute)
				began := time.Now()
				if got := scrape("prometheus"); got != http.StatusOK {
					t.Errorf("within an hour it is answered %d", got)
				}
				if took := time.Since(began); took > waitWithout {
					t.Errorf("it waits for %s, and scrapers give up after 10 s", took)
				}
				if got := scrape("stranger"); got < http.StatusInternalServerError {
					t.Errorf("a token that was never let in is answered %d", got)
				}
				time.Sleep(time.Minute)
				if got := scrape("prometheus"); got < http.StatusInternalServerError {
					t.Errorf("after an hour without the hub cluster it is answered %d", got)
				}
			})
		})
	}
}

func TestAScraperThatWasRefusedIsNotLetInWhenTheHubClusterGoes(t *testing.T) {
	for name, refusal := range map[string]func(*hubCluster){
		"its token was revoked":    func(c *hubCluster) { c.tokens = auth.ErrBadToken },
		"its right was taken away": func(c *hubCluster) { c.denies = true },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &hubCluster{}
			scrape := cluster.scrapes(t)
			if got := scrape("prometheus"); got != http.StatusOK {
				t.Fatalf("the hub cluster allows it, and the answer is %d", got)
			}
			refusal(cluster)
			if got := scrape("prometheus"); got != http.StatusUnauthorized && got != http.StatusForbidden {
				t.Errorf("the hub cluster refuses it, and the answer is %d", got)
			}
			cluster.tokens = errors.New("connection refused")
			if got := scrape("prometheus"); got != http.StatusServiceUnavailable {
				t.Errorf("nobody can say, and the answer is %d", got)
			}
		})
	}
}

// lateHubCluster answers the reviews of real reviewers, after a while.
type lateHubCluster struct {
	tokens, rights time.Duration // how long its reviews take
	revoked        bool          // the token, or the right of its holder
	denied         bool
	gone           bool // it answers with an error, at once
}

func (c *lateHubCluster) reviewToken(action clienttesting.Action) (bool, runtime.Object, error) {
	if c.gone {
		return true, nil, errors.New("connection refused")
	}
	time.Sleep(c.tokens)
	review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
	if !c.revoked {
		review.Status = podOf("prometheus")
	}
	return true, review, nil
}

func (c *lateHubCluster) reviewAccess(action clienttesting.Action) (bool, runtime.Object, error) {
	if c.gone {
		return true, nil, errors.New("connection refused")
	}
	time.Sleep(c.rights)
	review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
	review.Status.Allowed = !c.denied
	return true, review, nil
}

// scrapes is as that of hubCluster, through the reviewers that a hub has.
func (c *lateHubCluster) scrapes(t *testing.T) func(patience time.Duration) int {
	clients := fake.NewClientset()
	clients.PrependReactor("create", "tokenreviews", c.reviewToken)
	clients.PrependReactor("create", "subjectaccessreviews", c.reviewAccess)
	authenticator, err := auth.NewPodTokenReviewer(clients.AuthenticationV1().TokenReviews())
	if err != nil {
		t.Fatal(err)
	}
	authorizer := auth.NewAccessReviewer(clients.AuthorizationV1().SubjectAccessReviews())
	guarded := Guard("/metrics", authenticator, authorizer, slog.New(slog.DiscardHandler), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func(patience time.Duration) int {
		ctx, hangUp := context.WithCancel(t.Context())
		defer time.AfterFunc(patience, hangUp).Stop()
		defer hangUp()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", "Bearer token")
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		return answer.Code
	}
}

func TestARefusalThatComesTooLateHoldsForTheNextScrape(t *testing.T) {
	const interval, patience = 15 * time.Second, 10 * time.Second // as Prometheus has it; what reviewers remember is over by then
	for name, c := range map[string]struct {
		cluster  lateHubCluster
		patience time.Duration // of the scrape that is answered before the refusal comes
		first    int           // how that is answered
		then     int
	}{
		"its token was revoked":        {lateHubCluster{tokens: 4 * time.Second, revoked: true}, patience, http.StatusOK, http.StatusUnauthorized},
		"its right was taken away":     {lateHubCluster{rights: 4 * time.Second, denied: true}, patience, http.StatusOK, http.StatusForbidden},
		"both reviews take their time": {lateHubCluster{tokens: 4 * time.Second, rights: 4 * time.Second, denied: true}, patience, http.StatusOK, http.StatusForbidden},
		"the scraper has gone by then": {lateHubCluster{tokens: 4 * time.Second, revoked: true}, time.Second, 499, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &lateHubCluster{}
				scrape := cluster.scrapes(t)
				if got := scrape(patience); got != http.StatusOK {
					t.Fatalf("the hub cluster allows it, and the answer is %d", got)
				}
				elapse(interval)
				*cluster = c.cluster
				if got := scrape(c.patience); got != c.first {
					t.Errorf("before the hub cluster refuses it, it is answered %d, want %d", got, c.first)
				}
				elapse(interval)
				if got := scrape(patience); got != c.then {
					t.Errorf("after the hub cluster has refused it, it is answered %d, want %d", got, c.then)
				}
				elapse(interval)
				cluster.gone = true
				if got := scrape(patience); got != http.StatusServiceUnavailable {
					t.Errorf("while the hub cluster cannot be asked it is answered %d", got)
				}
			})
		})
	}
}

// elapse lets time pass, and all that happens in it.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
