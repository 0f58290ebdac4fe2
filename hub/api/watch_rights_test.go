package api

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// quiet is the stream of a watch whose reader takes everything.
type quiet struct {
	objectsOf
	synced chan struct{}
}

func (q quiet) SendMsg(message any) error {
	if message, ok := message.(*plimsollv1.WatchObjectsResponse); ok && message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		close(q.synced)
	}
	return nil
}

// With everything that is remembered on the way, and the intervals of a hub.
func TestARightThatIsTakenAwayEndsAWatchWithin30Seconds(t *testing.T) {
	for name, may := range map[string]func(user, member string) bool{
		"in all members": func(string, string) bool { return true },
		"in one":         func(_, member string) bool { return member == "prod" },
	} {
		synctest.Test(t, func(t *testing.T) {
			o, err := options(t).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			reviews := newMemberReviews(may)
			ctx, stop := context.WithCancel(context.WithValue(t.Context(), identityKey{}, auth.Identity{User: "alice"}))
			defer stop()
			r := shop(t)
			c := r.ledgerService(t).core
			c.rights, c.stopping, c.recheck = access{authorizer: reviews, hidden: auth.NewUnlisted(), log: testLog(t)}, ctx, o.RecheckEvery
			stream, ended := quiet{objectsOf{streamOf{ctx: ctx}}, make(chan struct{})}, make(chan error, 1)
			go func() { ended <- newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{}, stream) }()
			<-stream.synced
			time.Sleep(time.Minute) // in which nothing is taken away
			select {
			case err := <-ended:
				t.Fatalf("%s: it ended by itself: %v", name, err)
			default:
			}
			reviews.takeAway()
			began := time.Now()
			err = <-ended
			if took := time.Since(began); took > 30*time.Second || status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: it ended after %s with %v", name, took, err)
			}
		})
	}
}

// revocable are the token reviews of a hub cluster in which every token is alice's until it is revoked.
type revocable struct {
	authenticationclient.TokenReviewInterface
	revoked atomic.Bool
}

func (r *revocable) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	review.Status = authenticationv1.TokenReviewStatus{
		Authenticated: !r.revoked.Load(), Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: "alice"},
	}
	return review, nil
}

// With everything that is remembered on the way, and the intervals of a hub.
func TestATokenThatIsRevokedEndsAWatchWithin30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &revocable{}
		reviewer, err := auth.NewTokenReviewer(reviews, "plimsoll")
		if err != nil {
			t.Fatal(err)
		}
		o := options(t)
		o.Authenticator = reviewer
		if o, err = o.withDefaults(); err != nil {
			t.Fatal(err)
		}
		s := newStreams(o, access{}, mustMetrics(t), limits.NewPace(-1))
		ctx, stop := context.WithCancel(metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer alices")))
		defer stop()
		ended := make(chan error, 1)
		go func() {
			ended <- s.watch(nil, streamOf{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: plimsollv1.ObjectService_WatchObjects_FullMethodName},
				func(_ any, stream grpc.ServerStream) error {
					<-stream.Context().Done()
					return context.Cause(stream.Context())
				})
		}()
		time.Sleep(time.Minute) // in which nothing is revoked
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		default:
		}
		reviews.revoked.Store(true)
		began := time.Now()
		err = <-ended
		if took := time.Since(began); took > 30*time.Second || status.Code(err) != codes.Unauthenticated {
			t.Errorf("it ended after %s with %v", took, err)
		}
	})
}

// While the hub cluster does not answer, nobody knows whether a token was revoked or a right taken away: watches do not go on for ever.
func TestAWatchEndsWhenNobodyCanSayForLongWhetherItMayGoOn(t *testing.T) {
	gone := errors.New("connection refused")
	for name, without := range map[string]func(*people){
		"rights": func(p *people) { p.unsure = gone },
		"tokens": func(p *people) { p.broken = gone },
	} {
		first, _ := watched(t)
		s := serve(t, first, func(o *Options) { o.RecheckEvery = 20 * time.Millisecond })
		events, _, ended := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
		expect(t, events, "PUT dev/cart", "SYNCED")
		s.mu.Lock()
		without(s.people)
		s.mu.Unlock()
		if !endsWith(ended, codes.Unavailable) {
			t.Errorf("without answers about %s it goes on, or ends with another code", name)
		}
	}
}

// changing takes every token for that of who it says at the moment.
type changing struct {
	who   atomic.Pointer[auth.Identity]
	asked atomic.Int64
}

func (c *changing) Authenticate(context.Context, string) (auth.Identity, error) {
	c.asked.Add(1)
	return *c.who.Load(), nil
}

// await waits until it was asked so often from now on.
func (c *changing) await(t *testing.T, times int64) {
	t.Helper()
	for until := c.asked.Load() + times; c.asked.Load() < until; time.Sleep(time.Millisecond) {
		if t.Context().Err() != nil {
			t.Fatal("nobody asks for the identity again")
		}
	}
}

// An account that was deleted and made again has the name of the one before it, and is somebody else.
func TestAWatchEndsWhenItsTokenIsSomebodyElses(t *testing.T) {
	for _, other := range []auth.Identity{{User: "root", UID: "1"}, {User: "admin", UID: "2"}} {
		first, _ := watched(t)
		token := &changing{}
		token.who.Store(&auth.Identity{User: "admin", UID: "1"})
		s := serve(t, first, func(o *Options) { o.Authenticator, o.RecheckEvery = token, 20*time.Millisecond })
		s.give("root", auth.Access{Verb: "list", Resource: "objects"})
		events, _, ended := s.watch(as(t, "any"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
		expect(t, events, "PUT dev/cart", "SYNCED")
		token.who.Store(&other)
		if !endsWith(ended, codes.Unauthenticated) {
			t.Errorf("as %+v it goes on, or ends with another code", other)
		}
	}
}

// What the caller may see is decided for its groups too, and a token can lose them while it is accepted.
func TestAWatchEndsWhenItsTokenStandsForOtherGroups(t *testing.T) {
	for name, c := range map[string]struct {
		later auth.Identity
		ends  bool
	}{
		"a group less":              {auth.Identity{User: "admin", UID: "1", Groups: []string{"a"}}, true},
		"other extra values":        {auth.Identity{User: "admin", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"scopes": {"x"}}}, true},
		"the same in another order": {auth.Identity{User: "admin", UID: "1", Groups: []string{"b", "a"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := watched(t)
			token := &changing{}
			token.who.Store(&auth.Identity{User: "admin", UID: "1", Groups: []string{"a", "b"}})
			s := serve(t, first, func(o *Options) { o.Authenticator, o.RecheckEvery = token, 20*time.Millisecond })
			events, _, ended := s.watch(as(t, "any"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
			expect(t, events, "PUT dev/cart", "SYNCED")
			token.who.Store(&c.later)
			if !c.ends {
				token.await(t, 3)
				token.who.Store(&auth.Identity{User: "root", UID: "2"})
				if !endsWith(ended, codes.Unauthenticated) {
					t.Error("it has ended before, or goes on")
				}
			} else if !endsWith(ended, codes.Aborted) {
				t.Error("it goes on, or ends with another code")
			}
		})
	}
}

// Who could see all members learns that a right has gone, and is not shown fewer members from then on.
func TestAWatchOfAllMembersEndsWhenOneIsLeftOfItsRights(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, func(o *Options) { o.RecheckEvery = 20 * time.Millisecond })
	s.give("all", auth.Access{Verb: "list", Resource: "objects"})
	events, _, ended := s.watch(as(t, "all"), t, &plimsollv1.WatchObjectsRequest{})
	expectAll(t, events, "PUT dev/cart", "PUT test/cart", "SYNCED")
	s.mu.Lock()
	s.rights["all"] = []auth.Access{{Verb: "list", Resource: "objects", Member: "dev"}}
	s.mu.Unlock()
	if !endsWith(ended, codes.PermissionDenied) {
		t.Error("it goes on, or ends with another code")
	}
}

// A watch that is resumed sends what has changed: to a reader who was shown other members until now, that is not all there is.
func TestAResumedWatchOfOtherMembersStartsAgain(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	dev := auth.Access{Verb: "list", Resource: "objects", Member: "dev"}
	s.give("some", dev, auth.Access{Verb: "list", Resource: "objects", Member: "test"})
	resume := func(token string) (events <-chan string, next string) {
		ctx, leave := context.WithCancel(as(t, "some"))
		defer leave()
		events, tokens, _ := s.watch(ctx, t, &plimsollv1.WatchObjectsRequest{ResumeToken: token})
		return events, <-tokens
	}
	_, token := resume("")
	events, token := resume(token)
	if got := <-events; got != "SYNCED" && got != "BOOKMARK" {
		t.Errorf("with the same members: %s", got)
	}
	s.mu.Lock()
	s.rights["some"] = []auth.Access{dev}
	s.mu.Unlock()
	events, _ = resume(token)
	expect(t, events, "RESYNC", "PUT dev/cart", "SYNCED")
}

// What is missing of a member that a caller may not see is not for them, nor that there is such a member.
func TestAWatchNamesNoMissingMemberThatItsReaderMayNotSee(t *testing.T) {
	first, second := watched(t)
	second.peer = nil // nobody answers for test
	s := serve(t, first, nil)
	s.give("of-dev", auth.Access{Verb: "list", Resource: "objects", Member: "dev"})
	for who, want := range map[string]string{"admin": "SYNCED without test", "of-dev": "SYNCED"} {
		events, _, ended := s.watch(as(t, who), t, &plimsollv1.WatchObjectsRequest{})
		for got := ""; !strings.HasPrefix(got, "SYNCED"); {
			select {
			case got = <-events:
			case err := <-ended:
				t.Fatalf("%s: %v", who, err)
			}
			if strings.HasPrefix(got, "SYNCED") && got != want {
				t.Errorf("%s is told %q, want %q", who, got, want)
			}
		}
	}
}

// Where there are too many members to ask about each, what has to look at all of them says so, and leaves none out.
func TestWhatWouldLeaveMembersOutSaysSo(t *testing.T) {
	r := manyMembers(t, maxChecksOfAll+2*window)
	s := serve(t, r, nil)
	for verb, of := range map[string][]string{verbList: {resourceClusters, resourceWorkloads}, verbRequeue: {resourceObjects}} {
		for _, resource := range of { // each its own: which members are hidden is remembered
			s.give("few", auth.Access{Verb: verb, Resource: resource, Member: "m0003"})
		}
	}
	stream, err := s.clusters().WatchClusters(as(t, "few"), &plimsollv1.WatchClustersRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cluster: must be set") {
		t.Errorf("a watch: %v", err)
	}
	_, err = s.workloads().ListWorkloads(as(t, "few"), &plimsollv1.ListWorkloadsRequest{OrderBy: "name desc"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "order_by") {
		t.Errorf("a list in an order: %v", err)
	}
	answer, err := s.objects().RequeueMatching(as(t, "few"), &plimsollv1.RequeueMatchingRequest{Filter: "true", ValidateOnly: true})
	if err != nil || len(answer.GetUnreachable()) != 1 || !strings.Contains(answer.GetUnreachable()[0].GetReason(), "too many members") {
		t.Errorf("an order of many: %v, %v", answer, err)
	}
}

func TestAWatchOfTheWorkloadsOfANamespaceTellsOfNoOther(t *testing.T) {
	r := shop(t)
	r.workload("prod", "bank", "vault")
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Verb: "list", Resource: "workloads", Member: "prod", Namespace: "shop"})
	stream, err := s.workloads().WatchWorkloads(as(t, "tenant"), &plimsollv1.WatchWorkloadsRequest{Cluster: "prod", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for told := 0; ; {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
			if told != 1 {
				t.Errorf("%d workloads, want one", told)
			}
			return
		}
		if w := message.GetWorkload(); w != nil {
			if told++; w.GetNamespace() != "shop" {
				t.Errorf("told of %v", w)
			}
		}
	}
}

func TestAWatchOfTheObjectsOfAControllerTellsOfNoOther(t *testing.T) {
	r, _ := ledgers(t)
	stream, err := serve(t, r, nil).objects().WatchObjects(as(t, "admin"), &plimsollv1.WatchObjectsRequest{Cluster: "dev", Controller: "webapp"})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	readUntil(t, stream, func(m *plimsollv1.WatchObjectsResponse) bool {
		if key := m.GetObject().GetKey(); key != nil {
			if told++; key.GetController() != "webapp" {
				t.Errorf("told of %v", key)
			}
		}
		return m.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
	})
	if told != 4 {
		t.Errorf("%d objects, want four", told)
	}
}
