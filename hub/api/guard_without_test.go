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
