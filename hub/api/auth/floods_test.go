package auth

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/util/flowcontrol"
)

// Each address shows too few to be a suspect.
func TestBadTokensPushNoGoodOneOutOfWhatIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		reviews.limiter = flowcontrol.NewFakeAlwaysRateLimiter()
		good := func() {
			if _, err := reviewer.Authenticate(from(t.Context(), "10.1.0.1"), "good"); err != nil {
				t.Fatal(err)
			}
		}
		good()
		for i := range 2 * maxCachedTokens {
			of := i / (badBeforeSuspect - 1)
			_, _ = reviewer.Authenticate(from(t.Context(), fmt.Sprintf("10.2.%d.%d", of/250, of%250+1)), fmt.Sprint("bad", i))
		}
		before := reviews.asked.Load()
		if before < 2*maxCachedTokens {
			t.Fatalf("the cluster was asked %d times only: this shows nothing", before)
		}
		good()
		if reviews.asked.Load() != before {
			t.Error("a good token is asked about again because of bad ones")
		}
	})
}

func TestTheClusterIsAskedSoOftenAboutAllSuspectsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		reviews.limiter = flowcontrol.NewFakeAlwaysRateLimiter()
		shown := 0
		show := func() { // a bad token from each of 200 addresses
			for i := range 200 {
				shown++
				_, _ = reviewer.Authenticate(from(t.Context(), fmt.Sprintf("10.0.1.%d", i+1)), fmt.Sprint("bad", shown))
			}
		}
		for range badBeforeSuspect {
			show()
		}
		before := reviews.asked.Load()
		const seconds = 20
		for range seconds {
			time.Sleep(time.Second)
			show()
		}
		if asked, most := reviews.asked.Load()-before, int64(suspectRate*(seconds+1)); asked > most {
			t.Errorf("the cluster was asked %d times about suspects in %d s, at most %d times is right", asked, seconds, most)
		}
	})
}

// hangingReviews answer at once about good tokens. Once they hang, they do not answer at all about bad ones.
type hangingReviews struct {
	authenticationclient.TokenReviewInterface
	hang atomic.Bool
}

func (h *hangingReviews) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	good := strings.HasPrefix(r.Spec.Token, "good")
	if !good && h.hang.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: good, Audiences: r.Spec.Audiences, User: authenticationv1.UserInfo{Username: "me"}}
	return r, nil
}

func TestSuspectsLeavePlacesForOthersHoweverLongTheirAnswersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &hangingReviews{}
		reviewer, err := NewTokenReviewer(reviews, "plimsoll")
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		shown := 0
		show := func(first, end int) { // a bad token from each of some addresses
			for i := first; i < end; i++ {
				shown++
				token := fmt.Sprint("bad", shown)
				calls.Go(func() { _, _ = reviewer.Authenticate(from(t.Context(), fmt.Sprintf("10.0.1.%d", i+1)), token) })
			}
			synctest.Wait()
		}
		for range badBeforeSuspect {
			show(0, 48)
		}
		reviews.hang.Store(true)
		for second := range 4 { // ten a second of all suspects, each for five seconds: more than there are places
			time.Sleep(time.Second)
			show(12*second, 12*(second+1))
		}
		began := time.Now()
		if _, err := reviewer.Authenticate(from(t.Context(), "10.1.0.1"), "good"); err != nil || time.Since(began) > 0 {
			t.Errorf("a login took %s: %v", time.Since(began), err)
		}
		calls.Wait()
	})
}
