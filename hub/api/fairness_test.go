package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// A caller who orders whatever many keys at once, as often as they can, leaves room for the orders of others.
func TestTheOrdersOfOneCallerLeaveRoomForThoseOfOthers(t *testing.T) {
	first, _ := failing(t)
	s := serve(t, first, func(o *Options) { o.CallsPerSecond = -1 })
	s.give("greedy", Access{Verb: verbRequeue, Resource: resourceObjects})
	order := func(who string) error {
		_, err := s.objects().RequeueMatching(as(t, who), &plimsollv1.RequeueMatchingRequest{
			Cluster: "dev", Controller: "deployment-spot", Filter: "true", PerSecond: 1, // each takes longer than this test
		})
		return err
	}
	refused := 0
	for range 2 * maxBatches {
		switch err := order("greedy"); {
		case status.Code(err) == codes.ResourceExhausted && apierror.ReasonOf(err) == "TOO_MANY_ORDERS":
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("one caller may have any number of orders under way")
	}
	if err := order("admin"); err != nil {
		t.Errorf("another caller: %v", err)
	}
}

// A caller has what the limit gives over any time, and not a full bucket every now and then.
func TestALimitThatIsReachedForLongIsNotFilledInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, allowed := newPace(10), 0
		const seconds = 60
		for range seconds * 100 {
			if p.allow(Identity{User: "alice"}) == nil {
				allowed++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if most := 10*seconds + 20; allowed > most+1 {
			t.Errorf("%d calls in a minute, want at most %d", allowed, most)
		}
		time.Sleep(2 * paceFor)
		if err := p.allow(Identity{User: "alice"}); err != nil {
			t.Errorf("after a pause: %v", err)
		}
	})
}

// through is the context of a call that comes through a port-forward, on a connection of its own.
func through(ctx context.Context, port int) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}})
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

// Whoever asks for the server's health without a token has some places, and never all.
func TestTheHealthStreamsOfOneAddressLeaveRoomForOthers(t *testing.T) {
	s := newStreams(options(t), access{}, mustMetrics(t), newPace(-1))
	holding := make(chan struct{})
	open := func(address string) error {
		err := make(chan error, 1)
		held := make(chan struct{})
		go func() {
			err <- s.serve(nil, streamOf{ctx: from(t.Context(), address)}, &grpc.StreamServerInfo{FullMethod: healthv1.Health_Watch_FullMethodName},
				func(any, grpc.ServerStream) error { close(held); <-holding; return nil })
		}()
		select {
		case <-held:
			return nil
		case refused := <-err:
			return refused
		}
	}
	opened := 0
	for range 10 * maxHealthStreams {
		if err := open("10.0.0.1"); err == nil {
			opened++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	if opened == 0 || opened > maxHealthStreams/2 {
		t.Errorf("one address has %d of %d places", opened, maxHealthStreams)
	}
	if err := open("10.0.0.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
	close(holding)
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

// filterItemCost is what a filter may cost for one item.
const filterItemCost = 10_000

// A filter that costs much makes its own watch slow, and ends it where that takes too long; the same filter on less is served.
func TestTheFiltersOfACallersWatchesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudgets(filterRate, filterBurst)
		var all sync.WaitGroup
		began := time.Now()
		for range 8 { // watches of one caller share it
			all.Go(func() {
				for range 1000 {
					if _, err := b.pay(t.Context(), "greedy", filterItemCost); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		const want = (8*1000*filterItemCost - filterBurst) / filterRate * time.Second
		if took := time.Since(began); took < want-time.Second {
			t.Errorf("filters that cost %s of the budget took %s", want, took)
		}
		if waited, err := b.pay(t.Context(), "modest", filterItemCost); waited != 0 || err != nil {
			t.Errorf("another caller waits %s, %v", waited, err)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errBadToken())
		if _, err := b.pay(ended, "greedy", filterItemCost); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a watch that ends meanwhile: %v", err)
		}
	})
}

func TestAWatchWhoseFilterCostsTooMuchSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shop(t)
		for i := range 300 {
			r.record("prod", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := r.ledgerService(t).core
		c.filters, c.stopping, c.recheck = newBudgets(1000, filterItemCost), ctx, time.Minute
		watch := func(filter string) error {
			told := ended{streamOf{ctx: context.WithValue(ctx, identityKey{}, Identity{User: "alice"})}}
			return newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{Filter: filter}, told)
		}
		const ten = "[1,2,3,4,5,6,7,8,9,10]"
		if err := watch(fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, a + b > 0 && object.attempts >= 0))", ten)); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), "for all that this watch is for") {
			t.Errorf("a filter that costs much: %v", err)
		}
		if err := watch("object.attempts >= 0"); !errors.Is(err, errSynced) {
			t.Errorf("one that costs little: %v", err)
		}
	})
}

// ended is the stream of a watch that ends when everything that there is has been sent.
type ended struct{ streamOf }

var errSynced = errors.New("everything has been sent")

func (ended) Send(message *plimsollv1.WatchObjectsResponse) error {
	if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		return errSynced
	}
	return nil
}
