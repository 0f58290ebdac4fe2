package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const (
	// changeEvery and orderEvery are the pace of the load in each member.
	changeEvery = time.Second
	orderEvery  = 700 * time.Millisecond
	// answerTimeout is how long the load waits for an answer. What is not answered by then was not acknowledged.
	answerTimeout = 5 * time.Second
)

// Sizes and shares that the load goes through. With 100 %, the floor alone is on-demand.
var (
	sizes  = []int{12, 15, 18, 21, 24}
	shares = []int{25, 50, 75, 100}
)

// A load changes size and policy of web in every member all the time, and orders reconciles of it through the API of whichever
// replica comes next. It remembers what was acknowledged.
type load struct {
	site    *Site
	members map[string]*pressure
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// pressure is the load on one member.
type pressure struct {
	member *Cluster
	random *rand.Rand

	mu      sync.Mutex // held while a change is under way
	frozen  bool
	wanted  Policy // what was asked for last
	acked   bool   // and granted
	changes int    // that were granted

	ordering sync.Mutex
	orders   []order // since they were last followed
	accepted int     // ever
}

// An order is a reconcile that the hub has promised.
type order struct {
	operation  string
	by         *Replica
	acceptedAt time.Time
}

// startLoad puts the members under load.
func startLoad(s *Site) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{site: s, members: map[string]*pressure{}, stop: stop}
	for i, m := range s.Members {
		p := &pressure{member: m, random: rand.New(rand.NewPCG(20, uint64(i)))}
		l.members[m.Name] = p
		l.done.Go(func() { fleet.EveryWithin(ctx, changeEvery, answerTimeout, p.change) })
		turn := i
		l.done.Go(func() {
			fleet.EveryWithin(ctx, orderEvery, answerTimeout, func(ctx context.Context) {
				replicas := s.Replicas()
				turn++
				p.order(ctx, replicas[turn%len(replicas)])
			})
		})
	}
	return l
}

func (l *load) close() {
	l.stop()
	l.done.Wait()
}

// change asks for another size and policy.
func (p *pressure) change(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return
	}
	p.wanted = Policy{Replicas: sizes[p.random.IntN(len(sizes))], Percent: shares[p.random.IntN(len(shares))]}
	p.acked = p.member.change(ctx, p.wanted) == nil
	if p.acked {
		p.changes++
	}
}

// freeze ends the changes with one that was acknowledged, and returns it.
func (p *pressure) freeze(ctx context.Context) (Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
	if p.acked {
		return p.wanted, nil
	}
	if p.wanted == (Policy{}) {
		p.wanted = Policy{Replicas: sizes[0], Percent: shares[0]}
	}
	err := fleet.Await(ctx, "a change in "+p.member.Name+" to be acknowledged", func(ctx context.Context) (bool, error) {
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		err := p.member.change(asking, p.wanted)
		return err == nil, err
	})
	if err == nil {
		p.acked = true
		p.changes++
	}
	return p.wanted, err
}

// thaw goes on.
func (p *pressure) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
}

// order orders a reconcile from a replica. Which of them acts is theirs to know.
func (p *pressure) order(ctx context.Context, of *Replica) {
	answer, err := plimsollv1.NewWorkloadServiceClient(of.api()).RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
		Cluster: p.member.Name, Namespace: shop, Kind: "Deployment", Name: web,
	})
	if err != nil {
		return
	}
	p.ordering.Lock()
	defer p.ordering.Unlock()
	operation := answer.GetOperation()
	p.orders = append(p.orders, order{operation: operation.GetId(), by: of, acceptedAt: operation.GetAcceptedAt().AsTime()})
	p.accepted++
}

// take returns the orders since the last time, and how many there ever were.
func (p *pressure) take() (orders []order, ever int) {
	p.ordering.Lock()
	defer p.ordering.Unlock()
	orders, p.orders = p.orders, nil
	return orders, p.accepted
}

// settle follows every acknowledged order of a member to its end. What a replica accepted and could not finish, because it was
// killed or cut off, must have been taken up by the next: its owner now must have begun a reconcile since. unfinished are those.
func (l *load) settle(ctx context.Context, p *pressure, tenures []Tenure) (ever, unfinished int, lost []string, err error) {
	orders, ever := p.take()
	owner, err := l.site.Owner(ctx, nil)
	if err != nil {
		return ever, 0, nil, err
	}
	var last time.Time
	for _, o := range orders {
		state, message, err := l.follow(ctx, owner, o.operation)
		switch {
		case err != nil:
			return ever, unfinished, lost, fmt.Errorf("order %s, accepted at %s by %s: %w", o.operation, o.acceptedAt.Format(clock), o.by.Name, err)
		case state == plimsollv1.OperationState_OPERATION_STATE_DONE:
			continue
		case state != plimsollv1.OperationState_OPERATION_STATE_FAILED && !changedHands(tenures, o.acceptedAt):
			lost = append(lost, fmt.Sprintf("order %s of %s, accepted at %s by %s, is %s (%s), and nobody else has come to act since",
				o.operation, p.member.Name, o.acceptedAt.Format(clock), o.by.Name, state, message))
		}
		unfinished++
		last = o.acceptedAt
	}
	if unfinished == 0 {
		return ever, 0, lost, nil
	}
	err = fleet.Await(ctx, "a reconcile in "+p.member.Name+" after "+last.Format(clock), func(ctx context.Context) (bool, error) {
		answer, err := plimsollv1.NewObjectServiceClient(owner.api()).GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
			Cluster: p.member.Name, Controller: "deployment-spot", Namespace: shop, Name: web,
		})
		object := answer.GetObject()
		if err == nil && (!object.GetLastStartedAt().AsTime().After(last) || object.GetLastError() != "") {
			err = fmt.Errorf("the last one started at %s and ended with %q", object.GetLastStartedAt().AsTime().Format(clock), object.GetLastError())
		}
		return err == nil, err
	})
	return ever, unfinished, lost, err
}

// follow waits for the end of an order. An operation that the owner does not know any more counts as superseded: it has
// restarted or changed, which the caller can see.
func (l *load) follow(ctx context.Context, asked *Replica, operation string) (state plimsollv1.OperationState, message string, err error) {
	err = fleet.Await(ctx, "the end of an order", func(ctx context.Context) (bool, error) {
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		answer, err := plimsollv1.NewObjectServiceClient(asked.api()).GetOperation(asking, &plimsollv1.GetOperationRequest{
			Operation: operation, Wait: durationpb.New(answerTimeout / 2),
		})
		if status.Code(err) == codes.NotFound {
			state, message = plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, err.Error()
			return true, nil
		}
		if err != nil {
			return false, err
		}
		state, message = answer.GetOperation().GetState(), answer.GetOperation().GetMessage()
		final := state != plimsollv1.OperationState_OPERATION_STATE_PENDING && state != plimsollv1.OperationState_OPERATION_STATE_RUNNING
		if !final {
			return false, fmt.Errorf("%s: %s", state, message)
		}
		return true, nil
	})
	return state, message, err
}

// changedHands reports whether somebody began to act after an order was accepted.
func changedHands(tenures []Tenure, accepted time.Time) bool {
	return slices.ContainsFunc(tenures, func(t Tenure) bool { return t.From.After(accepted) })
}
