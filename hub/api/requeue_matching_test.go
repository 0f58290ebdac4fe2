package api

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// failing are two replicas with three members, each with five keys of a controller, of which three fail.
func failing(t *testing.T) (*replica, *replica) {
	t.Helper()
	first, second := ledgers(t)
	for member, owner := range map[string]*replica{"dev": first, "prod": first, "test": second} {
		for i := range 5 {
			owner.record(member, "deployment-spot", "shop", fmt.Sprintf("o%d", i))
			key := reconcile.Key{Member: member, Controller: "deployment-spot"}
			key.Namespace, key.Name = "shop", fmt.Sprintf("o%d", i)
			owner.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle, Attempts: i}
		}
	}
	return first, second
}

// batchesEnd waits until n orders of many keys have been worked off.
func batchesEnd(t *testing.T, s *served, n int) {
	t.Helper()
	eventually(t, "the orders of many keys end", func() bool { return strings.Count(s.log.String(), "RequeueMatching is done") >= n })
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to that: %s", what)
		}
	}
}

func TestWhatMatchesIsOrderedInAllMembersOnceForEachName(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "object.attempts > 1", ValidateOnly: true, PerSecond: 1000}
	answer, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || answer.GetMatched() != 9 || len(answer.GetSample()) != 9 || !answer.GetNothingOrdered() || len(first.orders())+len(second.orders()) != 0 {
		t.Fatalf("only asked: %v, %v", answer, err)
	}
	request.ValidateOnly, request.RequestId = false, "again-1"
	for i := range 3 {
		answer, err = s.objects().RequeueMatching(as(t, "admin"), request)
		if err != nil || answer.GetMatched() != 9 || answer.GetNothingOrdered() != (i > 0) {
			t.Errorf("the %d. time: %v, %v", i, answer, err)
		}
	}
	eventually(t, "all is ordered", func() bool { return len(first.orders()) >= 6 && len(second.orders()) >= 3 })
	batchesEnd(t, s, 2) // those of the replica that is asked, which log to s
	for r, want := range map[*replica]int{first: 6, second: 3} {
		if got := r.orders(); len(got) != want || got[0] != "admin" {
			t.Errorf("%v, want %d", got, want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, `"msg":"API order"`) || !strings.Contains(log, `"request_id":"again-1"`) {
		t.Error("the order is not in the log")
	}
}

// Whoever retries may reach another replica: of a member that is its own, or not.
func TestAnOrderIsRepeatedByWayOfAnotherReplicaWithoutHarm(t *testing.T) {
	first, second := failing(t)
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", PerSecond: 1000, RequestId: "again"}
	var operations []string
	for i, s := range []*served{serve(t, first, nil), serve(t, second, nil)} {
		answer, err := s.objects().RequeueMatching(as(t, "admin"), request)
		if err != nil || answer.GetMatched() != 15 || answer.GetNothingOrdered() != (i > 0) {
			t.Errorf("replica %d: %v, %v", i, answer, err)
		}
		slices.Sort(answer.Operations)
		if i > 0 && !slices.Equal(operations, answer.GetOperations()) {
			t.Errorf("the operations are %v, and were %v", answer.GetOperations(), operations)
		}
		operations = answer.GetOperations()
		for _, id := range operations {
			if _, err := s.objects().GetOperation(as(t, "admin"), &plimsollv1.GetOperationRequest{Operation: id}); err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
		}
	}
}

func TestWhatMatchesIsOrderedOnlyWhereTheCallerMay(t *testing.T) {
	first, second := failing(t)
	s := serve(t, first, nil)
	s.give("dev", auth.Access{Verb: "requeue", Resource: "objects", Member: "dev"})
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", PerSecond: 1000}
	if answer, err := s.objects().RequeueMatching(as(t, "dev"), request); err != nil || answer.GetMatched() != 5 {
		t.Errorf("%v, %v", answer, err)
	}
	second.lapse()
	request.Cluster = "test"
	if _, err := s.objects().RequeueMatching(as(t, "dev"), request); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	request.Cluster = ""
	if _, err := s.objects().RequeueMatching(as(t, "nobody"), request); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	if answer, err := s.objects().RequeueMatching(as(t, "admin"), request); err != nil || len(answer.GetUnreachable()) != 1 || answer.GetMatched() != 10 {
		t.Errorf("an owner that may not act: %v, %v", answer, err)
	}
	for _, bad := range []*plimsollv1.RequeueMatchingRequest{{}, {Filter: "object.x"}, {Filter: "true", PerSecond: 1001}, {Filter: "true", RequestId: "a b"}} {
		if _, err := s.objects().RequeueMatching(as(t, "admin"), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestTheSameOrderAtTheSameMomentIsOrderedOnce(t *testing.T) {
	first, second := failing(t)
	const calls = 3
	var scanning sync.WaitGroup
	scanning.Add(calls)
	var scans atomic.Int64
	first.scanned = func() { // all calls look for what matches before the first begins to order
		if scans.Add(1) <= calls {
			scanning.Done()
		}
		scanning.Wait()
	}
	s := serve(t, first, nil)
	var accepted atomic.Int64
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			answer, err := s.objects().RequeueMatching(as(t, "admin"), &plimsollv1.RequeueMatchingRequest{
				Cluster: "dev", Controller: "deployment-spot", Filter: "true", PerSecond: 1000, RequestId: "once",
			})
			if err != nil || answer.GetMatched() != 5 {
				t.Errorf("%v, %v", answer, err)
			}
			if !answer.GetNothingOrdered() {
				accepted.Add(1)
			}
		})
	}
	all.Wait()
	batchesEnd(t, s, int(accepted.Load()))
	if got := first.orders(); accepted.Load() != 1 || len(got) != 5 || len(second.orders()) != 0 {
		t.Errorf("%d calls were accepted, and %d keys ordered, want one and its five", accepted.Load(), len(got))
	}
	eventually(t, "all places are free", func() bool { return freeOf(first.batches.places) == maxBatches })
}

// The name of an order is that of this order: another one of the same name is not taken for its retry, nor is a question.
func TestTheNameOfAnOrderStandsForNoOther(t *testing.T) {
	first, _ := failing(t)
	s := serve(t, first, nil)
	request := &plimsollv1.RequeueMatchingRequest{
		Cluster: "dev", Controller: "deployment-spot", Filter: "object.attempts > 1", PerSecond: 1000, RequestId: "nightly",
	}
	before, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || before.GetMatched() != 3 {
		t.Fatalf("%v, %v", before, err)
	}
	for name, change := range map[string]func(*plimsollv1.RequeueMatchingRequest){
		"another filter":     func(r *plimsollv1.RequeueMatchingRequest) { r.Filter = "object.attempts > 3" },
		"another namespace":  func(r *plimsollv1.RequeueMatchingRequest) { r.Namespace = "shop" },
		"another controller": func(r *plimsollv1.RequeueMatchingRequest) { r.Controller = "" },
	} {
		other := proto.CloneOf(request)
		change(other)
		answer, err := s.objects().RequeueMatching(as(t, "admin"), other)
		if err != nil || answer.GetNothingOrdered() || slices.Equal(answer.GetOperations(), before.GetOperations()) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
	request.ValidateOnly = true
	asked, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || !asked.GetNothingOrdered() || len(asked.GetOperations()) != 0 || asked.GetMatched() != 3 {
		t.Errorf("only asked: %v, %v", asked, err)
	}
}

// What would be ordered can be asked of an owner that may not act too: nothing comes of it.
func TestWhatMatchesCanBeAskedOfAnOwnerThatMayNotAct(t *testing.T) {
	first, second := failing(t)
	first.lapse()
	second.lapse()
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", ValidateOnly: true}
	answer, err := serve(t, first, nil).objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || answer.GetMatched() != 15 || len(answer.GetUnreachable()) != 0 {
		t.Errorf("%v, %v", answer, err)
	}
}

// So many keys of one member are a mistake in the filter more likely than not.
func TestAnOrderThatMatchesTooMuchIsRefused(t *testing.T) {
	first, _ := watched(t)
	first.manyObjects(maxMatching)
	s := serve(t, first, nil)
	for _, dry := range []bool{true, false} { // cart is one more
		request := &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Filter: "true", ValidateOnly: dry}
		_, err := s.objects().RequeueMatching(as(t, "admin"), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "matches more than 10000 keys") {
			t.Errorf("only asked: %t: %v", dry, err)
		}
	}
	if got := len(first.orders()); got != 0 {
		t.Errorf("%d keys are ordered", got)
	}
	most := &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Filter: `object.key.name != "cart"`, ValidateOnly: true}
	if answer, err := s.objects().RequeueMatching(as(t, "admin"), most); err != nil || answer.GetMatched() != maxMatching {
		t.Errorf("as many as may match: %d, %v", answer.GetMatched(), err)
	}
}

func TestTheSampleOfWhatMatchesHasAtMost100KeysOverAllMembers(t *testing.T) {
	first, second := ledgers(t)
	for member, owner := range map[string]*replica{"dev": first, "prod": first, "test": second} {
		for i := range 80 {
			owner.record(member, "deployment-spot", "shop", fmt.Sprintf("o%02d", i))
		}
	}
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", ValidateOnly: true}
	answer, err := serve(t, first, nil).objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || answer.GetMatched() != 240 || len(answer.GetSample()) != 100 {
		t.Errorf("%d keys, %d of them in the sample, %v", answer.GetMatched(), len(answer.GetSample()), err)
	}
}

// keysOfDev are keys of failing, in member dev.
func keysOfDev(names ...string) (keys []reconcile.Key) {
	for _, name := range names {
		key := reconcile.Key{Member: "dev", Controller: "deployment-spot"}
		key.Namespace, key.Name = "shop", name
		keys = append(keys, key)
	}
	return keys
}

func TestAnOrderOfManyKeepsItsPaceAndEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := failing(t)
		s := first.ledgerService(t)
		keys := keysOfDev("o0", "o1", "o2", "o3", "o4")
		s.batches.places.Enter("admin")
		b, ctx := newBatch(t.Context(), &plimsollv1.RequeueMatchingRequest{PerSecond: 20}, "dev", "admin", keys)
		go s.work(ctx, b)
		for want := 1; want <= 3; want++ {
			synctest.Wait()
			if got := len(first.orders()); got != want {
				t.Fatalf("%d orders, want %d after %d pauses", got, want, want-1)
			}
			if want == 3 {
				first.fleet.give("dev", "elsewhere")
			}
			time.Sleep(time.Second / 20)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(first.orders()); got != 3 || freeOf(s.batches.places) != maxBatches {
			t.Errorf("%d orders after the member has gone, %d places free", got, freeOf(s.batches.places))
		}
		if got := b.operation(); got.GetState() != plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED || got.GetMatched() != 5 || got.GetOrdered() != 3 {
			t.Errorf("%v", got)
		}
	})
}

// What has gone since it matched was not requeued, and nobody is told that it was.
func TestAKeyThatHasGoneIsNotCountedAsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := failing(t)
		s := first.ledgerService(t)
		s.batches.places.Enter("admin")
		b, ctx := newBatch(t.Context(), &plimsollv1.RequeueMatchingRequest{}, "dev", "admin", keysOfDev("o0", "gone", "o1"))
		s.work(ctx, b)
		if got := b.operation(); got.GetState() != plimsollv1.OperationState_OPERATION_STATE_DONE || got.GetMatched() != 3 || got.GetOrdered() != 2 {
			t.Errorf("%v", got)
		}
	})
}

func TestAnOrderOfManyGoesAtFiftyASecondUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := failing(t)
		s := first.ledgerService(t)
		answer, err := s.RequeueMatching(t.Context(), &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Controller: "deployment-spot", Filter: "true"})
		if err != nil || answer.GetMatched() != 5 {
			t.Fatalf("%v, %v", answer, err)
		}
		for want := 1; want <= 5; want++ {
			synctest.Wait()
			if got := len(first.orders()); got != want {
				t.Fatalf("%d orders after %d pauses, want %d", got, want-1, want)
			}
			time.Sleep(time.Second / 50)
		}
	})
}

// A retry is answered like the call before it also when nothing matches any more, which is what the call was for.
func TestARetryIsAnsweredLikeTheCallBeforeItWhateverMatchesNow(t *testing.T) {
	first, _ := failing(t)
	s := serve(t, first, nil)
	request := &plimsollv1.RequeueMatchingRequest{Cluster: "dev", Filter: "object.attempts > 1", PerSecond: 1000, RequestId: "again"}
	before, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || before.GetMatched() != 3 {
		t.Fatalf("%v, %v", before, err)
	}
	batchesEnd(t, s, 1)
	first.mu.Lock()
	for key, record := range first.records {
		record.Attempts = 0
		first.records[key] = record
	}
	first.mu.Unlock()
	again, err := s.objects().RequeueMatching(as(t, "admin"), request)
	if err != nil || !again.GetNothingOrdered() || again.GetMatched() != 3 || !slices.Equal(again.GetOperations(), before.GetOperations()) {
		t.Errorf("%v, %v, want the answer %v", again, err, before)
	}
}

// An order that may begin is made in all members, here and on other replicas: a caller in debt is refused before the first.
func TestAnOrderIsNotRefusedInTheMiddle(t *testing.T) {
	const members, keys = 3 * window, 5
	peer, owner := atPeer(t, members, keys)
	here := membersWithKeys(t, members, keys).services(everything{})
	small := limits.NewBudgets(1, 100)
	here.objects.filters, owner.forPeers.filters = small, limits.NewBudgets(1, members*keys*itemCost/2)
	request := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Filter: "true", ValidateOnly: true}
	for name, s := range map[string]*services{"here": here, "by way of another replica": peer} {
		answer, err := s.objects.RequeueMatching(calledBy(t.Context(), "ana"), request)
		if err != nil || len(answer.GetUnreachable()) != 0 || answer.GetMatched() != members*keys {
			t.Errorf("%s: %d of %d keys match, %d gaps: %v", name, answer.GetMatched(), members*keys, len(answer.GetUnreachable()), err)
		}
	}
	if answer, err := here.objects.RequeueMatching(calledBy(t.Context(), "ana"), request); apierror.ReasonOf(err) != limits.FilterBudget || retryIn(err) <= 0 {
		t.Errorf("in debt: %d keys match: %v", answer.GetMatched(), err)
	}
}

// ledgerService is the service of a replica, without a server before it.
func (r *replica) ledgerService(t *testing.T) *objectService {
	return newServices(&core{
		members: r, workloads: r.lists(), objects: r, ownership: r, events: r.journal, peers: r.fleet,
		rights: access{authorizer: everything{}, log: testLog(t)}, stopping: t.Context(), log: testLog(t),
	}).objects
}

// freeOf counts the places that are free: whoever has none may take one.
func freeOf(places *shares.Places) int {
	n := 0
	for places.Enter(fmt.Sprint("one more, ", n)) {
		n++
	}
	for i := range n {
		places.Leave(fmt.Sprint("one more, ", i))
	}
	return n
}
