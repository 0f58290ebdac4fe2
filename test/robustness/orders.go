package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// An Order is a reconcile that a replica has accepted, and all that was said of it.
type Order struct {
	Operation string
	Workload  string
	// Process that was asked.
	Process string
	// Invoked and Returned are when it was ordered.
	Invoked, Returned time.Time
	// Answers to those who asked for it.
	Answers []Answer
	// Last is how it stood when all had come to rest; the zero Answer: nobody could say.
	Last Answer
}

// An Answer is what a replica has said of an order.
type Answer struct {
	Process           string
	Invoked, Returned time.Time
	State             State
	Message           string
}

// A State of an order, as replicas report it.
type State string

// States of orders.
const (
	Pending    State = "pending"
	Running    State = "running"
	Done       State = "done"
	Failed     State = "failed"
	Superseded State = "superseded"
	// Unknown is an order that the owner of its member does not know, and says so.
	Unknown State = "unknown"
)

var states = map[plimsollv1.OperationState]State{
	plimsollv1.OperationState_OPERATION_STATE_PENDING: Pending, plimsollv1.OperationState_OPERATION_STATE_RUNNING: Running,
	plimsollv1.OperationState_OPERATION_STATE_DONE: Done, plimsollv1.OperationState_OPERATION_STATE_FAILED: Failed,
	plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED: Superseded,
}

// final reports whether nothing further is promised.
func (s State) final() bool { return s != Pending && s != Running }

// An Execution is a reconcile of a workload that the ledger of an owner has shown.
type Execution struct {
	Workload string
	Started  time.Time // by our clock
	// Doubt is how far off Started may be: the answer was as long on its way.
	Doubt time.Duration
}

// orders gives orders and follows them.
type orders struct {
	site    *site
	ctx     context.Context // ends with all following
	cancel  context.CancelFunc
	waiting sync.WaitGroup

	mu    sync.Mutex
	given []*Order
	runs  []Execution
}

func newOrders(s *site) *orders {
	o := &orders{site: s}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

func (o *orders) close() {
	o.cancel()
	o.waiting.Wait()
}

// order orders a reconcile from any replica; which of them acts is theirs to know. What is refused or not answered is no order.
func (o *orders) order(ctx context.Context, w *fleet.Workload, random *rand.Rand) {
	p := o.anyProcess(random)
	if p == nil {
		return
	}
	order := &Order{Workload: w.String(), Process: p.name, Invoked: time.Now()}
	answer, err := p.api.Workloads.RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
		Cluster: w.Member.Name, Namespace: w.Namespace, Kind: w.Kind, Name: w.Name,
	})
	if err != nil {
		return
	}
	order.Returned, order.Operation = time.Now(), answer.GetOperation().GetId()
	o.mu.Lock()
	o.given = append(o.given, order)
	o.mu.Unlock()
	seed := random.Uint64()
	o.waiting.Go(func() { o.follow(order, rand.New(rand.NewPCG(seed, 0))) })
}

func (o *orders) anyProcess(random *rand.Rand) *process {
	running := o.site.running()
	if len(running) == 0 {
		return nil
	}
	return running[random.IntN(len(running))].current()
}

// followTime is how long an order is followed while faults go on. What is open then is asked for when all have come to rest.
const followTime = 20 * time.Second

// follow asks any replica again and again, until the order is final.
func (o *orders) follow(order *Order, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(o.ctx, followTime)
	defer cancel()
	for ctx.Err() == nil {
		wait(ctx, time.Second)
		if p := o.anyProcess(random); p != nil {
			if answer, ok := o.ask(ctx, p, order); ok && answer.State.final() {
				return
			}
		}
	}
}

// ask asks one replica; not ok: it could not say.
func (o *orders) ask(ctx context.Context, p *process, order *Order) (Answer, bool) {
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer := Answer{Process: p.name, Invoked: time.Now()}
	got, err := p.api.Objects.GetOperation(asking, &plimsollv1.GetOperationRequest{Operation: order.Operation, Wait: durationpb.New(time.Second)})
	answer.Returned = time.Now()
	switch {
	case status.Code(err) == codes.NotFound:
		answer.State, answer.Message = Unknown, err.Error()
	case err != nil:
		return answer, false
	default:
		answer.State, answer.Message = states[got.GetOperation().GetState()], got.GetOperation().GetMessage()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	order.Answers = append(order.Answers, answer)
	return answer, true
}

// settle asks the owner for all orders that are not known to be done, until each is final, and reads from its ledger when
// every workload was last reconciled.
func (o *orders) settle(ctx context.Context, owner *process, workloads []*fleet.Workload) error {
	o.mu.Lock()
	given := append([]*Order(nil), o.given...)
	o.mu.Unlock()
	for _, order := range given {
		if order.Last.State != "" {
			continue
		}
		err := fleet.Await(ctx, "the end of order "+order.Operation, func(ctx context.Context) (bool, error) {
			answer, ok := o.ask(ctx, owner, order)
			if !ok || !answer.State.final() {
				return false, fmt.Errorf("%s says that it is %q: %s", owner.name, answer.State, answer.Message)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			order.Last = answer
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	for _, w := range workloads {
		if err := o.readRun(ctx, owner, w); err != nil {
			return err
		}
	}
	return nil
}

// readRun reads when a workload was last reconciled. Both times in the answer are by the owner's clock, which may be wrong.
func (o *orders) readRun(ctx context.Context, owner *process, w *fleet.Workload) error {
	asked := time.Now()
	got, err := owner.api.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
		Cluster: w.Member.Name, Controller: "deployment-spot", Namespace: w.Namespace, Name: w.Name,
	})
	if err != nil {
		return fmt.Errorf("when was %s last reconciled: %w", w, err)
	}
	now := time.Now()
	age := got.GetAsOf().AsTime().Sub(got.GetObject().GetLastStartedAt().AsTime())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs = append(o.runs, Execution{Workload: w.String(), Started: now.Add(-age), Doubt: now.Sub(asked)})
	return nil
}

// read is all that was ordered and seen to run.
func (o *orders) read() (given []Order, runs []Execution) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, order := range o.given {
		copied := *order
		copied.Answers = append([]Answer(nil), order.Answers...)
		given = append(given, copied)
	}
	return given, append(runs, o.runs...)
}
