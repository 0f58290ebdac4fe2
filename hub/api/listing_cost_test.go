package api

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// calledBy is the context of a call of somebody.
func calledBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, identityKey{}, auth.Identity{User: who})
}

// membersWithKeys is a replica that owns so many members, each with so many keys.
func membersWithKeys(t *testing.T, members, keys int) *replica {
	t.Helper()
	r := newFleet().replica(t, "10.0.0.1:9444")
	for m := range members {
		name := fmt.Sprintf("m%03d", m)
		r.member(name)
		r.fleet.give(name, r.address)
		for n := range keys {
			r.record(name, "deployment-spot", "shop", fmt.Sprintf("o%05d", n))
		}
	}
	return r
}

// atPeer is the services of a replica that owns nothing, and the other one that owns so many members, each with so many keys.
func atPeer(t *testing.T, members, keys int) (*services, *replica) {
	t.Helper()
	owner := membersWithKeys(t, members, keys)
	standby := owner.fleet.replica(t, "10.0.0.2:9444")
	for m := range members {
		standby.member(fmt.Sprintf("m%03d", m))
	}
	return standby.services(everything{}), owner
}

// A feed reads for nobody in particular, as often as it finds right: its replica and the owners it asks let it.
func TestReadsOfFeedsAreNotPaidFor(t *testing.T) {
	s, owner := atPeer(t, 1, 10)
	const budget = 10 // less than one read costs
	owner.forPeers.filters = limits.NewBudgets(1, budget)
	own := owner.services(everything{})
	own.objects.filters = limits.NewBudgets(1, budget)
	for name, feed := range map[string]*feed[*plimsollv1.ObjectState]{"of a standby": s.objects.feed, "of the owner": own.objects.feed} {
		for range 10 {
			if items, gap, blind := feed.read(t.Context(), "m000", &failures{}); len(items) != 10 || gap != "" || blind {
				t.Fatalf("%s: %d items, gap %q", name, len(items), gap)
			}
		}
	}
}

// A list that may begin is done, also where the owner of its members is asked about each by itself. What its caller owes there has an end.
func TestAListByWayOfAnotherReplicaIsNotRefusedInTheMiddle(t *testing.T) {
	const members, keys = 3 * window, 10
	s, owner := atPeer(t, members, keys)
	const cost = members * (keys*itemCost + keys/keysPerUnit)
	owner.forPeers.filters = limits.NewBudgets(1, cost/2)
	list := func(who string, request *plimsollv1.ListObjectsRequest) (int, error) {
		answer, err := s.objects.ListObjects(calledBy(t.Context(), who), request)
		return len(answer.GetObjects()), err
	}
	for name, request := range map[string]*plimsollv1.ListObjectsRequest{
		"in an order": {OrderBy: "attempts desc", PageSize: 1000},
		"by name":     {PageSize: 1000},
	} {
		if found, err := list(name, request); err != nil || found != members*keys {
			t.Errorf("%s: %d of %d objects: %v", name, found, members*keys, err)
		}
		var err error
		for calls := 0; err == nil && calls < 10; calls++ {
			_, err = list(name, request)
		}
		if apierror.ReasonOf(err) != limits.FilterBudget || retryIn(err) < limits.PeerDebt*cost/2*time.Second*9/10 { // at one unit a second
			t.Errorf("%s: who owes much is asked to come back in %s: %v", name, retryIn(err), err)
		}
	}
}

// What a page has found before the budget of its filter ends is not lost: the next page goes on there.
func TestAPageEndsWhereTheBudgetOfItsFilterEnds(t *testing.T) {
	large := membersWithKeys(t, 1, 300).services(everything{})
	standby, owner := atPeer(t, 1, 300)
	for name, c := range map[string]struct{ asked, pays *core }{
		"here":                      {large.objects.core, large.objects.core},
		"by way of another replica": {standby.objects.core, owner.forPeers},
	} {
		request := &plimsollv1.ListObjectsRequest{Filter: "object.attempts >= 0", PageSize: 1000}
		found, pages := map[string]bool{}, 0
		for more := true; more && pages < 100; more = request.GetPageToken() != "" {
			c.pays.filters = limits.NewBudgets(1, 2200) // enough for some of them, as after a while
			page, err := newServices(c.asked).objects.ListObjects(calledBy(t.Context(), "ana"), request)
			if err != nil {
				t.Fatalf("%s: page %d: %v", name, pages, err)
			}
			for _, o := range page.GetObjects() {
				found[o.GetKey().GetCluster()+"/"+o.GetKey().GetName()] = true
			}
			pages++
			request.PageToken = page.GetNextPageToken()
		}
		if pages < 2 || len(found) != 300 {
			t.Errorf("%s: %d of %d objects on %d pages", name, len(found), 300, pages)
		}
	}
}

// The budget may end at the first item of a member: then the page ends before it. Where nothing was looked at, the caller has to wait.
func TestAPageEndsBeforeTheMemberAtWhichTheBudgetEnds(t *testing.T) {
	spent := apierror.WithDelay(status.New(codes.ResourceExhausted, "spent"), limits.FilterBudget, time.Second).Err()
	for name, here := range map[string]bool{"here": true, "on other replicas": false} {
		list := func(fails string, why error) (*page[int], error) {
			from := &candidates{names: []string{"a", "b", "c", "d"}, all: true}
			return gather(t.Context(), from, 10, func(string) bool { return here }, func(_ context.Context, member string, _ int) (part[int], error) {
				if member >= fails {
					return part[int]{}, why
				}
				return part[int]{items: []int{1}}, nil
			})
		}
		if found, err := list("c", spent); err != nil || len(found.items) != 2 || !found.more || found.skipped != "b" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if found, err := list("a", spent); apierror.ReasonOf(err) != limits.FilterBudget {
			t.Errorf("%s: nothing was looked at: %+v, %v", name, found, err)
		}
		if found, err := list("c", context.Canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: another error: %+v, %v", name, found, err)
		}
	}
}

// Once a member has failed the call, nobody looks at those behind it.
func TestAListThatFailsLooksAtNoFurtherMembers(t *testing.T) {
	members := make([]string, 100)
	var asked atomic.Int64
	_, err := askInTurn(t.Context(), members, 1, func(string) bool { return true }, func(context.Context, string, int) (part[int], error) {
		asked.Add(1)
		return part[int]{}, errors.New("it cannot be made")
	}, func(*part[int]) bool { return false })
	if most := int64(runtime.GOMAXPROCS(0)); err == nil || asked.Load() > most {
		t.Errorf("%d members were asked, want at most %d: %v", asked.Load(), most, err)
	}
}

// Whoever asks and goes away has nobody look on.
func TestAListThatIsCancelledLooksAtNothingMore(t *testing.T) {
	for name, c := range map[string]struct {
		members, keys, scans int // at most, since as many members are looked at at once as there are processors
		request              *plimsollv1.ListObjectsRequest
	}{
		"an order in a large member":   {1, 3 * firstScan, 1, &plimsollv1.ListObjectsRequest{Cluster: "m000", OrderBy: "attempts desc"}},
		"an order over many members":   {3 * window, 2, runtime.GOMAXPROCS(0), &plimsollv1.ListObjectsRequest{OrderBy: "attempts desc"}},
		"by name over many members":    {3 * window, 2, runtime.GOMAXPROCS(0), &plimsollv1.ListObjectsRequest{}},
		"a filter over a large member": {1, 3 * firstScan, 1, &plimsollv1.ListObjectsRequest{Cluster: "m000", Filter: "false"}},
	} {
		r := membersWithKeys(t, c.members, c.keys)
		ctx, cancel := context.WithCancel(calledBy(t.Context(), "ana"))
		var scans atomic.Int64
		r.scanned = func() {
			scans.Add(1)
			cancel()
		}
		_, err := r.services(everything{}).objects.ListObjects(ctx, c.request)
		if !errors.Is(err, context.Canceled) || scans.Load() > int64(c.scans) {
			t.Errorf("%s: %d scans, want at most %d: %v", name, scans.Load(), c.scans, err)
		}
		_, err = r.services(everything{}).objects.ListObjects(ctx, c.request)
		if !errors.Is(err, context.Canceled) || scans.Load() > int64(c.scans) {
			t.Errorf("%s: cancelled before: %d scans: %v", name, scans.Load(), err)
		}
	}
}

// Who has others look through much, with or without a filter, is refused for a while, on this replica and by way of it on others.
func TestWhatACallersListsLookAtHasABudget(t *testing.T) {
	first, second := watched(t)
	for i := range 500 {
		first.record("dev", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
		second.record("test", "deployment-spot", "shop", fmt.Sprintf("o%03d", i))
	}
	c := first.ledgerService(t).core
	c.filters, c.timeout = limits.NewBudgets(1, testBudget/10), time.Minute
	for name, request := range map[string]*plimsollv1.ListObjectsRequest{
		"an order":                                {Cluster: "dev", OrderBy: "attempts desc"},
		"an order on another replica":             {Cluster: "test", OrderBy: "attempts desc", PageSize: 1},
		"one at a time of a namespace":            {Cluster: "dev", Namespace: "none", PageSize: 1},
		"one at a time of a controller and so on": {Cluster: "dev", Controller: "deployment-spot", PageSize: 1},
	} {
		list := func(who string) error {
			_, err := newServices(c).objects.ListObjects(calledBy(t.Context(), who), request)
			return err
		}
		var err error
		for calls := 0; err == nil && calls < 5000; calls++ {
			err = list(name)
		}
		if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != limits.FilterBudget || retryIn(err) <= 0 {
			t.Errorf("%s may be asked for all the time: %v", name, err)
		}
		if err := list("another of " + name); err != nil {
			t.Errorf("%s: another caller: %v", name, err)
		}
	}
}

// The lists of all kinds are paid for.
func TestListsOfAllKindsArePaidFor(t *testing.T) {
	r := shop(t)
	s := newServices(r.ledgerService(t).core)
	for name, list := range map[string]func(ctx context.Context) error{
		"objects": func(ctx context.Context) error {
			_, err := s.objects.ListObjects(ctx, &plimsollv1.ListObjectsRequest{})
			return err
		},
		"controllers": func(ctx context.Context) error {
			_, err := s.objects.ListControllers(ctx, &plimsollv1.ListControllersRequest{})
			return err
		},
		"workloads": func(ctx context.Context) error {
			_, err := s.workloads.ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{})
			return err
		},
		"clusters": func(ctx context.Context) error {
			_, err := s.clusters.ListClusters(ctx, &plimsollv1.ListClustersRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.record("prod", "deployment-spot", "shop", "web")
			s.objects.filters = limits.NewBudgets(1, 100)
			var err error
			for calls := 0; err == nil && calls < 200; calls++ {
				err = list(calledBy(t.Context(), name))
			}
			if apierror.ReasonOf(err) != limits.FilterBudget {
				t.Errorf("it may be asked for all the time: %v", err)
			}
		})
	}
}

// To read everything page by page costs little more than what there is: of 5,000 members with ten objects each, about 300,000 of ten million.
func TestAWholeListByNameStaysWellWithinTheBudget(t *testing.T) {
	const members, keys = 100, 10
	r := membersWithKeys(t, members, keys)
	s := r.services(everything{})
	budget := limits.NewBudgets(1, limits.FilterBurst)
	s.objects.filters = budget
	request, found := &plimsollv1.ListObjectsRequest{PageSize: 100}, 0
	for more := true; more; more = request.GetPageToken() != "" {
		page, err := s.objects.ListObjects(calledBy(t.Context(), "ana"), request)
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.GetObjects())
		request.PageToken = page.GetNextPageToken()
	}
	const most = members * keys * 4 * itemCost
	if budget.Owe("ana", limits.FilterBurst) > most*time.Second || found != members*keys { // at one unit a second
		t.Errorf("%d objects cost more than %d", found, most)
	}
}

// Each list in an order looks at everything: a caller has some of them made at a time, and others have theirs.
func TestListsInAnOrderHavePlaces(t *testing.T) {
	r := membersWithKeys(t, 1, 3)
	s := r.services(everything{})
	s.objects.ordered = shares.NewPlaces(4)
	const under = 3
	entered, release := make(chan struct{}), make(chan struct{})
	var scans atomic.Int64
	r.scanned = func() {
		if scans.Add(1) <= under {
			entered <- struct{}{}
			<-release
		}
	}
	list := func(ctx context.Context, who string) error {
		_, err := s.objects.ListObjects(calledBy(ctx, who), &plimsollv1.ListObjectsRequest{OrderBy: "attempts"})
		return err
	}
	answers := make(chan error, under)
	for _, who := range []string{"ana", "ana", "ben"} {
		go func() { answers <- list(t.Context(), who) }()
		<-entered
	}
	err := list(t.Context(), "ana")
	if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != reasonTooManyLists || retryIn(err) <= 0 {
		t.Errorf("a third list of one caller: %v", err)
	}
	close(release)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := list(t.Context(), "ana"); err != nil {
		t.Errorf("when the others have ended: %v", err)
	}
}
