package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const (
	// maxBatches is how many orders of many keys are under way at once on a replica, maxBatchOperations how many it remembers.
	maxBatches, maxBatchOperations = 256, 1024
	// A named order is remembered for namedFor; maxNamed bounds memory.
	namedFor, maxNamed = 10 * time.Minute, 4096
)

// Batches are the orders of many keys that this replica has accepted, on either side. Safe for concurrent use.
type Batches struct {
	places *shares.Places
	named  *cache.Cache[batchName, *plimsollv1.RequeueMatchingResponse]

	mu  sync.Mutex
	all []*batch // the oldest first
}

// batchName is how its caller names an order for a member, and what it orders.
type batchName struct{ caller, member, id, what string }

// batch is one order of many keys of a member.
type batch struct {
	id       string
	key      reconcile.Key // what the order named
	filter   string
	caller   string
	accepted time.Time
	keys     []reconcile.Key // that are still to be ordered; nil once it is final
	matched  int
	pace     int

	stop context.CancelFunc // takes back what has not been ordered
	done chan struct{}      // closed when it is final

	mu        sync.Mutex // guards what follows
	ordered   int
	cancelled bool
	ended     time.Time // zero: it is not final
	state     plimsollv1.OperationState
	message   string
}

// NewBatches are none yet.
func NewBatches() *Batches {
	return &Batches{places: shares.NewPlaces(maxBatches), named: cache.New[batchName, *plimsollv1.RequeueMatchingResponse](maxNamed)}
}

// newBatch is an order that is not remembered yet, and the context in which it is worked off.
func newBatch(stopping context.Context, request *plimsollv1.RequeueMatchingRequest, member, caller string, keys []reconcile.Key) (*batch, context.Context) {
	b := &batch{
		id: uuid.NewString(), filter: request.GetFilter(), caller: caller, accepted: time.Now(), keys: keys, matched: len(keys),
		pace: paceOf(request), done: make(chan struct{}),
		state: plimsollv1.OperationState_OPERATION_STATE_RUNNING, message: "its keys are being requeued",
	}
	b.key = reconcile.Key{Member: member, Controller: request.GetController()}
	b.key.Namespace = request.GetNamespace()
	ctx, stop := context.WithCancel(stopping)
	b.stop = stop
	return b, ctx
}

// paceOf is how many keys of a member an order wants to have requeued in a second.
func paceOf(request *plimsollv1.RequeueMatchingRequest) int {
	return cmp.Or(int(request.GetPerSecond()), defaultPace)
}

// add remembers an order. When there are too many, the caller with the most that are final loses the oldest of these, so that nobody
// pushes out what became of the orders of another who has fewer.
func (bs *Batches) add(b *batch) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.all = append(bs.all, b)
	if len(bs.all) <= maxBatchOperations {
		return
	}
	final := map[string]int{}
	for _, one := range bs.all {
		if one.final() {
			final[one.caller]++
		}
	}
	most, loses := 0, -1
	for i, one := range bs.all {
		if n := final[one.caller]; n > most && one.final() {
			most, loses = n, i
		}
	}
	if loses >= 0 {
		bs.all = slices.Delete(bs.all, loses, loses+1)
	}
}

// find returns an order of a member; nil: there is none (any more).
func (bs *Batches) find(id operationID) *batch {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	i := slices.IndexFunc(bs.all, func(b *batch) bool {
		return id.many && b.id == id.local && b.key.Member == id.member && b.key.Namespace == id.namespace
	})
	if i < 0 {
		return nil
	}
	return bs.all[i]
}

// in are the orders of a member.
func (bs *Batches) in(member string) (found []*batch) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for _, b := range bs.all {
		if b.key.Member == member {
			found = append(found, b)
		}
	}
	return found
}

func (b *batch) final() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// cancel takes back what has not been ordered yet; false: nothing was left to take back, or it had ended otherwise.
func (b *batch) cancel() bool {
	b.mu.Lock()
	if !b.ended.IsZero() {
		b.mu.Unlock()
		return false
	}
	b.cancelled = true
	b.mu.Unlock()
	b.stop()
	<-b.done // it has only to notice
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == plimsollv1.OperationState_OPERATION_STATE_CANCELLED
}

// count notes that one more key was ordered.
func (b *batch) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ordered++
}

// end makes the order final. lost: why not all was ordered, for others than its caller; "": all was.
func (b *batch) end(lost string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.stop()
	b.ended, b.keys = time.Now(), nil
	switch {
	case lost == "":
		b.state, b.message = plimsollv1.OperationState_OPERATION_STATE_DONE, "all matching keys are requeued"
	case b.cancelled:
		b.state, b.message = plimsollv1.OperationState_OPERATION_STATE_CANCELLED, "it was cancelled; keys that were requeued before still run"
	default:
		b.state, b.message = plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, lost
	}
	close(b.done)
}

func (b *batch) operationID() operationID {
	return operationID{resource: resourceObjects, many: true, member: b.key.Member, namespace: b.key.Namespace, local: b.id}
}

func (b *batch) operation() *plimsollv1.Operation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &plimsollv1.Operation{
		Id: b.operationID().String(), Key: keyMessage(b.key), AcceptedAt: moment(b.accepted), State: b.state, Message: b.message,
		FinishedAt: moment(b.ended), User: b.caller, Filter: b.filter, Matched: count(b.matched), Ordered: count(b.ordered),
	}
}

// work orders the keys at their pace, while this replica acts on their member.
func (s *objectService) work(ctx context.Context, b *batch) {
	defer s.batches.places.Leave(b.caller)
	each := time.NewTicker(time.Second / time.Duration(b.pace))
	defer each.Stop()
	for i, key := range b.keys {
		if i > 0 {
			select {
			case <-each.C:
			case <-ctx.Done():
			}
		}
		switch {
		case ctx.Err() != nil:
			b.end("this replica stops: the next owner reconciles all objects of the member")
			s.log.Info("RequeueMatching ended early", "member", b.key.Member, "user", b.caller, "ordered", i, "of", b.matched)
			return
		case !s.ownership.Acts(b.key.Member):
			b.end("the member has a new owner, which reconciles all of its objects")
			s.log.Warn("RequeueMatching ended: another replica owns the member", "member", b.key.Member, "user", b.caller, "ordered", i, "of", b.matched)
			return
		}
		if _, err := s.objects.RequeueFor(key, b.caller); err != nil { // it has gone meanwhile, or this replica stops
			s.log.Debug("RequeueMatching did not requeue a key", "key", key, "user", b.caller, "error", err)
			continue
		}
		b.count()
	}
	b.end("")
	s.log.Info("RequeueMatching is done", "user", b.caller, "ordered", b.matched)
}
