package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"

	"google.golang.org/grpc/peer"
)

// slowReviews accepts the tokens that begin with good, behind the limit that a client of the hub has.
type slowReviews struct {
	authenticationclient.TokenReviewInterface
	limiter flowcontrol.RateLimiter
	asked   atomic.Int64
}

func (s *slowReviews) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if err := s.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	s.asked.Add(1)
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: strings.HasPrefix(r.Spec.Token, "good"), Audiences: r.Spec.Audiences, User: authenticationv1.UserInfo{Username: "me"}}
	return r, nil
}

func from(ctx context.Context, address string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 1}})
}

func newSlowReviewer(t *testing.T) (*TokenReviewer, *slowReviews) {
	t.Helper()
	reviews := &slowReviews{limiter: flowcontrol.NewTokenBucketRateLimiter(200, 400)}
	reviewer, err := NewTokenReviewer(reviews, "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	return reviewer, reviews
}

func TestAFloodOfBadTokensKeepsNoGoodOneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		ctx, stop := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		flood.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				flood.Go(func() { _, _ = reviewer.Authenticate(from(ctx, fmt.Sprintf("10.0.0.%d", i%50)), fmt.Sprint("bad", i)) })
				time.Sleep(time.Millisecond) // 1000 a second from 50 addresses
			}
		})
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			if _, err := reviewer.Authenticate(from(ctx, "10.1.0.1"), fmt.Sprint("good", i)); err != nil {
				t.Errorf("login %d failed: %v", i, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("login %d took %s", i, took)
			}
		}
		stop()
		flood.Wait()
		if asked := reviews.asked.Load(); asked > 1000 {
			t.Errorf("the cluster was asked %d times about 10000 bad tokens", asked)
		}
	})
}

func TestWhoWasAcceptedIsHeardThoughItsAddressIsSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, _ := newSlowReviewer(t)
		ctx := from(t.Context(), "10.0.0.1")
		if _, err := reviewer.Authenticate(ctx, "good"); err != nil {
			t.Fatal(err)
		}
		var last error
		for i := range 2 * badBeforeSuspect {
			_, last = reviewer.Authenticate(ctx, fmt.Sprint("bad", i))
		}
		if !errors.Is(last, ErrTooManyBadTokens) {
			t.Fatalf("the address is no suspect: %v", last)
		}
		time.Sleep(acceptedFor) // and is asked about again
		if _, err := reviewer.Authenticate(ctx, "good"); err != nil {
			t.Error(err)
		}
		time.Sleep(suspectFor)
		if _, err := reviewer.Authenticate(ctx, "good too"); err != nil {
			t.Error("it is a suspect for ever:", err)
		}
	})
}

// All are there before the first has shown that it is bad.
func TestBadTokensThatComeAtOnceAreAskedAboutUntilTheFirstWereBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		reviews.limiter = flowcontrol.NewTokenBucketRateLimiter(200, 1) // it answers nobody before all have come
		const addresses, tokens = 20, 200
		var flood sync.WaitGroup
		for i := range addresses * tokens {
			flood.Go(func() {
				_, _ = reviewer.Authenticate(from(t.Context(), fmt.Sprintf("10.0.0.%d", i%addresses)), fmt.Sprint("bad", i))
			})
		}
		flood.Wait()
		if asked, most := reviews.asked.Load(), int64(addresses*(maxReviewsOfAddress+badBeforeSuspect)); asked > most {
			t.Errorf("the cluster was asked %d times about %d bad tokens, at most %d times is right", asked, addresses*tokens, most)
		}
	})
}

// An answer that nobody waits for costs the cluster as much as any other.
func TestWhoDoesNotWaitForTheAnswerIsASuspectAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		gone, leave := context.WithCancel(from(t.Context(), "10.0.0.1"))
		leave()
		for i := range 100 {
			_, _ = reviewer.Authenticate(gone, fmt.Sprint("bad", i))
			synctest.Wait()
		}
		if asked := reviews.asked.Load(); asked > maxReviewsOfAddress+badBeforeSuspect {
			t.Errorf("the cluster was asked %d times about 100 bad tokens", asked)
		}
	})
}

func TestAnAddressOfIPv6CountsWithItsNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::", "2001:db8::2": "2001:db8::", "2001:db8:0:1::1": "2001:db8:0:1::",
	} {
		if got := Origin(from(t.Context(), address)); got != want {
			t.Errorf("%s counts for %s, want %s", address, got, want)
		}
	}
}

func TestATokenThatCannotBeAcceptedIsNotAskedAbout(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for claims, want := range map[string]bool{
		`{"exp":999000}`: true, `{"exp":999990}`: false, `{"nbf":1001000}`: true, `{"exp":1001000,"nbf":999000}`: false,
		`{"kubernetes.io":{},"aud":["https://kubernetes.default.svc"]}`: true, `{"kubernetes.io":{},"aud":["a","plimsoll"]}`: false,
		`{"kubernetes.io":{},"aud":"plimsoll"}`: false, `{"kubernetes.io":{},"aud":"a"}`: true, `{"kubernetes.io":{}}`: false,
		`{"aud":"of another issuer"}`: false, `no JSON`: false, `{"exp":"soon"}`: false,
	} {
		token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
		if got := hopeless(token, "plimsoll", now); got != want {
			t.Errorf("%s: hopeless %t, want %t", claims, got, want)
		}
	}
	for _, token := range []string{"opaque", "a.b", "a.!.c"} {
		if hopeless(token, "plimsoll", now) {
			t.Errorf("%q may well be accepted", token)
		}
	}
}

func TestTheQuestionsAboutOneDoNotTakeThePlacesOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEqualShares(1)
		giveBack, err := s.take(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.take(short, "greedy"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("a second place:", err)
		}
		other, err := s.take(t.Context(), "modest")
		if err != nil {
			t.Fatal(err)
		}
		other()
		giveBack()
		if len(s.own) != 0 {
			t.Error("something is kept of those without calls")
		}
	})
}

// TestTheClusterIsNotAskedAboutAHopelessToken has a reviewer see tokens that say of themselves that they are no good.
func TestTheClusterIsNotAskedAboutAHopelessToken(t *testing.T) {
	reviewer, reviews := newSlowReviewer(t)
	for _, claims := range []string{`{"exp":1000}`, `{"kubernetes.io":{},"aud":["https://kubernetes.default.svc"]}`} {
		token := "good." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
		if _, err := reviewer.Authenticate(from(t.Context(), "10.0.0.1"), token); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: %v", claims, err)
		}
	}
	if asked := reviews.asked.Load(); asked != 0 {
		t.Errorf("the cluster was asked %d times", asked)
	}
}

// unansweredReviews answer no question.
type unansweredReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	of map[string]int // under way, by user
	mu sync.Mutex
}

func (h *unansweredReviews) Create(ctx context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	h.mu.Lock()
	h.of[r.Spec.User]++
	h.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSoManyQuestionsAboutOneUserAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &unansweredReviews{of: map[string]int{}}
		reviewer := NewAccessReviewer(reviews)
		var lists sync.WaitGroup
		for i := range 100 {
			for _, user := range []string{"greedy", "modest"} {
				if user == "greedy" || i < 2 {
					lists.Go(func() {
						_, _ = reviewer.Allowed(t.Context(), Identity{User: user}, Access{Resource: "clusters", Verb: "get", Member: fmt.Sprint(i)})
					})
				}
			}
		}
		synctest.Wait()
		reviews.mu.Lock()
		greedy, modest := reviews.of["greedy"], reviews.of["modest"]
		reviews.mu.Unlock()
		if greedy != maxReviewsOfUser || modest != 2 {
			t.Errorf("%d questions about one, and %d about another", greedy, modest)
		}
		lists.Wait()
	})
}

// through is the context of a call that comes through a port-forward, on a connection of its own.
func through(ctx context.Context, port int) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}})
}

// fickleReviews accept or reject every token.
type fickleReviews struct {
	authenticationclient.TokenReviewInterface
	accept bool
}

func (f *fickleReviews) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: f.accept, Audiences: r.Spec.Audiences, User: authenticationv1.UserInfo{Username: "me"}}
	return r, nil
}

func TestATokenThatWasRevokedIsAStrangersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &fickleReviews{accept: true}
		reviewer, err := NewTokenReviewer(reviews, "plimsoll")
		if err != nil {
			t.Fatal(err)
		}
		ctx := from(t.Context(), "10.0.0.1")
		if _, err := reviewer.Authenticate(ctx, "once good"); err != nil {
			t.Fatal(err)
		}
		reviews.accept = false
		var last error
		for range 3 * badBeforeSuspect {
			time.Sleep(acceptedFor)
			_, _ = reviewer.Authenticate(ctx, "once good")
		}
		for i := range 3 * badBeforeSuspect {
			_, last = reviewer.Authenticate(ctx, fmt.Sprint("bad", i))
		}
		if !errors.Is(last, ErrTooManyBadTokens) {
			t.Fatalf("the address is no suspect: %v", last)
		}
		time.Sleep(rejectedFor)
		if _, err := reviewer.Authenticate(ctx, "once good"); !errors.Is(err, ErrTooManyBadTokens) {
			t.Errorf("a revoked token is asked about though its address is a suspect: %v", err)
		}
	})
}

func TestBehindAPortForwardOnesBadTokensAreNotTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewer, reviews := newSlowReviewer(t)
		var last error
		for i := range 3 * badBeforeSuspect {
			_, last = reviewer.Authenticate(through(t.Context(), 4000), fmt.Sprint("bad", i))
		}
		if !errors.Is(last, ErrTooManyBadTokens) {
			t.Errorf("a connection may show any number of bad tokens: %v", last)
		}
		if _, err := reviewer.Authenticate(through(t.Context(), 4001), "good"); err != nil {
			t.Errorf("another connection: %v", err)
		}
		// Connections are cheap to make: all of them together have a limit too.
		before := reviews.asked.Load()
		for i := range 1000 {
			_, last = reviewer.Authenticate(through(t.Context(), 5000+i), fmt.Sprint("worse", i))
		}
		if asked := reviews.asked.Load() - before; !errors.Is(last, ErrTooManyBadTokens) || asked > badBeforeShared+suspectRate {
			t.Errorf("the cluster was asked %d times about bad tokens of 1000 connections: %v", asked, last)
		}
		eventuallyGood := false
		for i := 0; i < 10 && !eventuallyGood; i++ {
			time.Sleep(time.Second)
			_, err := reviewer.Authenticate(through(t.Context(), 9000+i), fmt.Sprint("good", i))
			eventuallyGood = err == nil
		}
		if !eventuallyGood {
			t.Error("nobody comes in through a port-forward any more")
		}
	})
}
