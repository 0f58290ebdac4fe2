package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// A caller who orders whatever many keys at once, as often as they can, leaves room for the orders of others.
func TestTheOrdersOfOneCallerLeaveRoomForThoseOfOthers(t *testing.T) {
	first, _ := failing(t)
	s := serve(t, first, func(o *Options) { o.CallsPerSecond = -1 })
	s.give("greedy", auth.Access{Verb: verbRequeue, Resource: resourceObjects})
	for _, member := range []string{"dev", "test"} { // this replica's, and another's
		order := func(who string) error {
			_, err := s.objects().RequeueMatching(as(t, who), &plimsollv1.RequeueMatchingRequest{
				Cluster: member, Controller: "deployment-spot", Filter: "true", PerSecond: 1, // each takes longer than this test
			})
			return err
		}
		var err error
		for calls := 0; err == nil && calls < 2*maxBatches; calls++ {
			err = order("greedy")
		}
		if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != "TOO_MANY_ORDERS" {
			t.Errorf("%s: one caller may have any number of orders under way: %v", member, err)
		}
		if err := order("admin"); err != nil {
			t.Errorf("%s: another caller: %v", member, err)
		}
	}
}

func TestWithoutAuthenticationConnectionsHaveLimitsOfTheirOwn(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) {
		o.Authenticator, o.Authorizer, o.Unauthenticated, o.CallsPerSecond = nil, nil, true, 1
	})
	get := func(client *http.Client) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.rest+"/v1/clusters/prod", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	eventually(t, "a call is refused", func() bool { return get(s.http) == http.StatusTooManyRequests })
	other := &http.Client{Transport: s.http.Transport.(*http.Transport).Clone()}
	defer other.CloseIdleConnections()
	if code := get(other); code != http.StatusOK {
		t.Errorf("another connection: HTTP %d", code)
	}
}

// address is the context of a call from an address.
func address(ctx context.Context, ip string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}})
}

// Whoever asks for the server's health without a token has some places, and never all.
func TestTheHealthStreamsOfOneAddressLeaveRoomForOthers(t *testing.T) {
	s := newStreams(options(t), access{}, mustMetrics(t), limits.NewPace(-1))
	open, end := held(s, healthv1.Health_Watch_FullMethodName)
	defer end()
	opened := 0
	for range 10 * maxHealthStreams {
		if err := open(address(t.Context(), "10.0.0.1")); err == nil {
			opened++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	if opened == 0 || opened > maxHealthStreams/2 {
		t.Errorf("one address has %d of %d places", opened, maxHealthStreams)
	}
	if err := open(address(t.Context(), "10.0.0.2")); err != nil {
		t.Errorf("another address: %v", err)
	}
}

// Who watches the server's health gives the place back after a while, and reads why.
func TestAWatchOfTheServersHealthEndsAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStreams(options(t), access{}, mustMetrics(t), limits.NewPace(-1)), time.Now()
		err := s.serve(nil, streamOf{ctx: address(t.Context(), "10.0.0.1")}, &grpc.StreamServerInfo{FullMethod: healthv1.Health_Watch_FullMethodName},
			func(_ any, stream grpc.ServerStream) error {
				<-stream.Context().Done()
				return status.Error(codes.Canceled, "Stream has ended.") // as gRPC's own server says it
			})
		if status.Code(err) != codes.Unavailable || time.Since(began) != maxHealthWatch {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if free := freeOf(s.health); free != maxHealthStreams {
			t.Errorf("%d of %d places are free", free, maxHealthStreams)
		}
	})
}

// streamOf is a stream that has a context and nothing else.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamOf) Context() context.Context { return s.ctx }

func mustMetrics(t *testing.T) *metrics {
	t.Helper()
	made, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// coreWithManyObjects is that of a replica that knows 300 objects and stops with ctx. Filters of watches have that budget.
func coreWithManyObjects(ctx context.Context, t *testing.T, budget *limits.Budgets) *core {
	t.Helper()
	r := shop(t)
	for i := range 300 {
		r.record("prod", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
	}
	c := r.ledgerService(t).core
	c.watches, c.stopping, c.recheck = budget, ctx, time.Minute
	return c
}

func TestAWatchWhoseFilterCostsTooMuchSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := coreWithManyObjects(ctx, t, limits.NewBudgets(1000, 10_000))
		watch := func(filter string) error {
			told := ended{objectsOf{streamOf{ctx: context.WithValue(ctx, identityKey{}, auth.Identity{User: "alice"})}}}
			return newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{Filter: filter}, told)
		}
		const ten = "[1,2,3,4,5,6,7,8,9,10]"
		if err := watch(fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, a + b > 0 && object.attempts >= 0))", ten)); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), "for all items of this watch") {
			t.Errorf("a filter that costs much: %v", err)
		}
		if err := watch("object.attempts >= 0"); !errors.Is(err, errSynced) {
			t.Errorf("one that costs little: %v", err)
		}
	})
}

// What a caller owes for lists, which may be much, is no matter of their watches.
func TestAWatchNeitherWaitsNorEndsForTheListsOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := coreWithManyObjects(ctx, t, limits.NewBudgets(limits.FilterRate, limits.FilterBurst))
		c.filters = limits.NewBudgets(limits.FilterRate, limits.FilterBurst)
		for range 20 {
			c.filters.Owe("alice", limits.FilterBurst)
		}
		began := time.Now()
		told := ended{objectsOf{streamOf{ctx: calledBy(ctx, "alice")}}}
		err := newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{Filter: "object.attempts >= 0"}, told)
		if waited := time.Since(began); !errors.Is(err, errSynced) || waited > time.Second {
			t.Errorf("it waits for %s: %v", waited, err)
		}
	})
}

// Without authentication all callers have one name: what the filters of some connections cost is not what another has to wait for.
func TestTheFiltersOfOneConnectionDoNotMakeAnotherWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		objects := newServices(coreWithManyObjects(ctx, t, limits.NewBudgets(100, 1500))).objects // enough for one of the watches, and not for all
		for n := range 10 {
			who := context.WithValue(ctx, identityKey{}, auth.Identity{User: "unauthenticated", Connection: fmt.Sprint("127.0.0.1:", n)})
			began := time.Now()
			err := objects.WatchObjects(&plimsollv1.WatchObjectsRequest{Filter: "object.attempts >= 0"}, ended{objectsOf{streamOf{ctx: who}}})
			if waited := time.Since(began); !errors.Is(err, errSynced) || waited > time.Second {
				t.Fatalf("connection %d waits for %s: %v", n, waited, err)
			}
		}
	})
}

// objectsOf is the stream of a watch for objects, without SendMsg.
type objectsOf struct{ streamOf }

func (objectsOf) Send(*plimsollv1.WatchObjectsResponse) error { return errors.ErrUnsupported }

// ended is the stream of a watch that ends when everything that there is has been sent.
type ended struct{ objectsOf }

var errSynced = errors.New("everything has been sent")

func (ended) SendMsg(message any) error {
	if message, ok := message.(*plimsollv1.WatchObjectsResponse); ok && message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		return errSynced
	}
	return nil
}

// marked is the stream of a watch that keeps what it is sent, and ends with the first bookmark.
type marked struct {
	objectsOf
	sent *[]*plimsollv1.WatchObjectsResponse
}

var errMarked = errors.New("a bookmark has been sent")

func (m marked) SendMsg(message any) error {
	sent, ok := message.(proto.Message).ProtoReflect().Interface().(*plimsollv1.WatchObjectsResponse) // which may be in one that many share
	if !ok {
		return fmt.Errorf("a message of type %T", message)
	}
	*m.sent = append(*m.sent, sent)
	if sent.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_BOOKMARK {
		return errMarked
	}
	return nil
}

// A watch in which nothing happens sends bookmarks. Whoever resumes behind one is sent only what has changed since.
func TestAQuietWatchSendsBookmarksToResumeFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shop(t)
		r.record("prod", "deployment-spot", "shop", "cart")
		ctx, stop := context.WithTimeout(t.Context(), 10*bookmarkEvery)
		defer stop()
		c := r.ledgerService(t).core
		c.stopping, c.recheck = ctx, time.Minute
		objects := newServices(c).objects
		watch := func(token string) (puts []string, bookmark string) {
			var sent []*plimsollv1.WatchObjectsResponse
			stream := marked{objectsOf{streamOf{ctx: context.WithValue(ctx, identityKey{}, auth.Identity{User: "alice"})}}, &sent}
			began := time.Now()
			if err := objects.WatchObjects(&plimsollv1.WatchObjectsRequest{Cluster: "prod", ResumeToken: token}, stream); !errors.Is(err, errMarked) {
				t.Fatal(err)
			}
			if quiet := time.Since(began); quiet < bookmarkEvery || quiet > 2*bookmarkEvery {
				t.Errorf("the bookmark came after %s, want %s", quiet, bookmarkEvery)
			}
			for _, message := range sent {
				switch message.GetType() {
				case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT:
					puts = append(puts, message.GetObject().GetKey().GetName())
				case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC:
					t.Errorf("with token %q the watch begins again: %s", token, message.GetReason())
				}
			}
			return puts, sent[len(sent)-1].GetResumeToken()
		}
		first, token := watch("")
		r.record("prod", "deployment-spot", "shop", "web")
		then, _ := watch(token)
		if !slices.Contains(first, "cart") || !slices.Equal(then, []string{"web"}) {
			t.Errorf("first %v is sent, and behind the bookmark %v", first, then)
		}
	})
}

// The page takes a watch that says nothing for some time for one that is cut off.
func TestAQuietWatchSaysSoBeforeThePageLosesItsPatience(t *testing.T) {
	text, err := os.ReadFile("../page/assets/live.js")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`const silence = ([0-9_]+);`).FindSubmatch(text)
	if found == nil {
		t.Fatal("live.js does not say how long the page waits")
	}
	ms, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), "_", ""))
	if silence := time.Duration(ms) * time.Millisecond; err != nil || silence < 2*bookmarkEvery {
		t.Errorf("the page waits for %s, and a bookmark comes every %s: %v", silence, bookmarkEvery, err)
	}
}

// Who comes back within a minute goes on where they were, also if nobody has watched meanwhile. Who comes later begins again.
func TestAFeedKeepsThePlaceOfItsLastWatcherForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		c := shop(t).ledgerService(t).core
		c.stopping, c.recheck = ctx, time.Minute
		objects := newServices(c).objects
		watch := func(token string) (resynced bool, bookmark string) {
			var sent []*plimsollv1.WatchObjectsResponse
			stream := marked{objectsOf{streamOf{ctx: context.WithValue(ctx, identityKey{}, auth.Identity{User: "alice"})}}, &sent}
			if err := objects.WatchObjects(&plimsollv1.WatchObjectsRequest{ResumeToken: token}, stream); !errors.Is(err, errMarked) {
				t.Fatal(err)
			}
			for _, message := range sent {
				resynced = resynced || message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC
			}
			return resynced, sent[len(sent)-1].GetResumeToken()
		}
		_, token := watch("")
		time.Sleep(feedLinger - 10*time.Second)
		resynced, token := watch(token)
		if resynced {
			t.Error("within a minute it begins again")
		}
		time.Sleep(feedLinger + 10*time.Second)
		if resynced, _ := watch(token); !resynced {
			t.Error("what nobody watches is remembered for longer than a minute")
		}
	})
}

// The limit holds on every way in.
func TestTheLimitOfACallerHoldsForRESTAndStreams(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) { o.CallsPerSecond = 1 })
	for range 2 {
		if _, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a call is refused", func() bool { // the limit may have grown by one meanwhile
		response, _ := s.call(t, http.MethodGet, "/v1/clusters", "", bearing("admin"))
		return response.StatusCode == http.StatusTooManyRequests
	})
	eventually(t, "a stream is refused", func() bool {
		ctx, end := context.WithCancel(as(t, "admin")) // so that too many at a time are not the reason
		defer end()
		stream, err := s.clusters().WatchClusters(ctx, &plimsollv1.WatchClustersRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return apierror.ReasonOf(err) == apierror.TooManyCalls
	})
}

// Who lists with filters that cost much is refused for a while, on this replica and by way of it on others; others are not.
func TestTheFiltersOfACallersListsHaveABudget(t *testing.T) {
	first, second := watched(t)
	for i := range 100 {
		first.record("dev", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
		second.record("test", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
	}
	c := first.ledgerService(t).core
	c.filters, c.timeout = limits.NewBudgets(1000, testBudget), time.Minute
	const ten = "[1,2,3,4,5,6,7,8,9,10]"
	costly := fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, a + b > 0 && object.attempts >= 0))", ten)
	for _, member := range []string{"dev", "test"} { // this replica's, and another's
		list := func(who, filter string) error {
			ctx := context.WithValue(t.Context(), identityKey{}, auth.Identity{User: who})
			_, err := newServices(c).objects.ListObjects(ctx, &plimsollv1.ListObjectsRequest{Cluster: member, Filter: filter})
			return err
		}
		if err := list(member, costly); err != nil {
			t.Fatalf("%s: the first list: %v", member, err)
		}
		var err error
		for calls := 0; err == nil && calls < 1000; calls++ {
			err = list(member, costly)
		}
		if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != "FILTER_BUDGET_SPENT" || retryIn(err) <= 0 {
			t.Errorf("%s: a filter that costs much may be asked with all the time: %v", member, err)
		}
		if err := list("another of "+member, costly); err != nil {
			t.Errorf("%s: another caller: %v", member, err)
		}
		unfiltered := func() error { return list(member, "") }
		NewWithT(t).Eventually(unfiltered).WithTimeout(time.Minute).Should(Succeed(), "lists without a filter go on as soon as their caller owes nothing")
	}
}

// retryIn is when an error says that the call may be made again.
func retryIn(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
