package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// ownershipCheck is how often a caller who waits for an operation is looked after: the member may change hands meanwhile.
const ownershipCheck = time.Second

// operationID is what the id of an operation holds: enough to know who may see it and who can answer, and nothing secret.
type operationID struct {
	resource, member string
	namespace        string // of the object; "": it has none
	local            string // the id on the replica that accepted the order, which has no dot
	many             bool   // of RequeueMatching
}

// operationPrefixes represent what was ordered.
var operationPrefixes = map[string]operationID{"w": {resource: resourceWorkloads}, "o": {resource: resourceObjects}, "m": {resource: resourceObjects, many: true}}

func (id operationID) prefix() string {
	switch {
	case id.many:
		return "m"
	case id.resource == resourceWorkloads:
		return "w"
	}
	return "o"
}

func (id operationID) String() string {
	parts := []string{id.prefix(), id.member, id.namespace, id.local}
	if id.namespace == "" {
		parts = slices.Delete(parts, 2, 3)
	}
	return strings.Join(parts, ".")
}

// parseOperationID reads an id. Members and namespaces are DNS labels and so hold no dot.
func parseOperationID(text string) (operationID, error) {
	parts := strings.Split(text, ".")
	if n := len(parts); (n == 3 || n == 4) && !slices.Contains(parts, "") {
		if id, ok := operationPrefixes[parts[0]]; ok {
			id.member, id.namespace, id.local = parts[1], strings.Join(parts[2:n-1], ""), parts[n-1]
			return id, nil
		}
	}
	return operationID{}, apierror.InvalidField("operation", "operation.malformed", "is not an operation ID")
}

// GetOperation implements [plimsollv1.ObjectServiceServer].
func (s *objectService) GetOperation(ctx context.Context, request *plimsollv1.GetOperationRequest) (*plimsollv1.GetOperationResponse, error) {
	id, err := parseOperationID(request.GetOperation())
	if err != nil {
		return nil, err
	}
	if s.holds(id) { // also when the member has changed hands since
		return s.follow(ctx, id, request)
	}
	if _, err := s.member(id.member); err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, id.member, question[*plimsollv1.GetOperationResponse]{
		patience: request.GetWait().AsDuration(),
		local:    func() (*plimsollv1.GetOperationResponse, error) { return nil, s.noOperation(id) },
		remote:   pass(plimsollv1.NewObjectServiceClient, plimsollv1.ObjectServiceClient.GetOperation, request),
	})
}

// holds reports whether this replica accepted the order. The member, the namespace and the resource in an id come from the
// caller, who was authorized by them: they must be those of the order.
func (s *objectService) holds(id operationID) bool {
	if id.many {
		return s.batches.find(id) != nil
	}
	found, ok := s.objects.Operation(id.local)
	return ok && found.Key.Member == id.member && found.Key.Namespace == id.namespace && (id.resource == resourceObjects || s.places(found.Key.Controller))
}

// places reports whether the keys of a controller are workloads.
func (s *objectService) places(controller string) bool {
	return slices.ContainsFunc(s.workloads.Placed(), func(kind spot.PlacedKind) bool { return kind.Controller == controller })
}

// follow answers when the order is final, or the time that the caller would wait is over, or this replica stops.
func (s *objectService) follow(ctx context.Context, id operationID, request *plimsollv1.GetOperationRequest) (*plimsollv1.GetOperationResponse, error) {
	if b := s.batches.find(id); b != nil {
		return s.followBatch(ctx, b, request.GetWait().AsDuration())
	}
	deadline := time.Now().Add(request.GetWait().AsDuration())
	for {
		found, ok := s.objects.Operation(id.local)
		if !ok {
			return nil, errNoOperation(id)
		}
		left, mine := time.Until(deadline), s.ownership.Mine(id.member)
		if found.Done || !mine || left <= 0 || s.stopping.Err() != nil {
			shown := operationMessage(id.resource, &found)
			if !found.Done && !mine {
				shown.State = plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED
				shown.Message = "the member has a new owner, which reconciles all of its objects"
			}
			return &plimsollv1.GetOperationResponse{Operation: shown, AsOf: timestamppb.New(time.Now())}, nil
		}
		if err := s.await(ctx, id, min(left, ownershipCheck)); err != nil {
			return nil, err
		}
	}
}

// followBatch does the same for an order of many keys, which ends by itself when the member changes hands.
func (s *objectService) followBatch(ctx context.Context, b *batch, wait time.Duration) (*plimsollv1.GetOperationResponse, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-b.done:
	case <-over.C:
	case <-s.stopping.Done():
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &plimsollv1.GetOperationResponse{Operation: b.operation(), AsOf: timestamppb.New(time.Now())}, nil
}

// await returns when the operation is done or forgotten, d is over, or this replica stops; an error: the caller has gone.
func (s *objectService) await(ctx context.Context, id operationID, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	_, _ = s.objects.Wait(waiting, id.local) // what came of it is read again by whoever asks
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

// noOperation is the answer about an order that this replica has not accepted. Only one that acts knows that nobody has: after a
// freeze a replica takes itself for the owner until it has read the Lease, and another one may have accepted the order.
func (s *objectService) noOperation(id operationID) error {
	if !s.ownership.Acts(id.member) {
		return &unreachable{id.member, "its owner could not renew its Lease, and another replica may know the operation"}
	}
	return errNoOperation(id)
}

func errNoOperation(id operationID) error {
	return status.Errorf(codes.NotFound, "member %q: its owner has no such operation (any more): it drops old ones, "+
		"and all when it restarts or the owner changes; it is safe to requeue again", id.member)
}

func operationMessage(resource string, found *reconcile.Operation) *plimsollv1.Operation {
	shown := &plimsollv1.Operation{
		Id:         operationID{resource: resource, member: found.Key.Member, namespace: found.Key.Namespace, local: found.ID}.String(),
		Key:        keyMessage(found.Key),
		AcceptedAt: moment(found.Accepted),
		User:       found.Caller,
	}
	switch {
	case !found.CancelledAt.IsZero():
		shown.FinishedAt = moment(found.CancelledAt)
		shown.State, shown.Message = plimsollv1.OperationState_OPERATION_STATE_CANCELLED, "it was cancelled"
	case found.Done:
		shown.State, shown.Message = finalState(&found.Record)
		shown.FinishedAt = moment(found.Record.LastEnded)
	default:
		shown.State, shown.Message = openState(found)
	}
	return shown
}

func finalState(last *reconcile.Record) (plimsollv1.OperationState, string) {
	switch last.LastOutcome {
	case reconcile.OutcomeDone:
		return plimsollv1.OperationState_OPERATION_STATE_DONE, "the object matches its spec"
	case reconcile.OutcomeCleanedUp:
		return plimsollv1.OperationState_OPERATION_STATE_DONE, "it was cleaned up and can be deleted"
	case reconcile.OutcomePaused, reconcile.OutcomeNotOurs:
		return plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, last.Reason
	case reconcile.OutcomeRequeue, reconcile.OutcomePending:
		return plimsollv1.OperationState_OPERATION_STATE_DONE, "it will be reconciled again: " + last.Reason
	case reconcile.OutcomeGone:
		if last.Reason != "" {
			return plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, last.Reason
		}
		return plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, "the object no longer exists"
	}
	return plimsollv1.OperationState_OPERATION_STATE_FAILED, last.LastError
}

func openState(found *reconcile.Operation) (plimsollv1.OperationState, string) {
	now := &found.Record
	switch {
	case now.State == reconcile.StateRunning && now.LastStarted.After(found.Accepted):
		return plimsollv1.OperationState_OPERATION_STATE_RUNNING, "it runs"
	case now.State == reconcile.StateRunning:
		return plimsollv1.OperationState_OPERATION_STATE_PENDING, "an earlier reconcile must end first"
	case now.Reason != "":
		return plimsollv1.OperationState_OPERATION_STATE_PENDING, now.Reason
	}
	return plimsollv1.OperationState_OPERATION_STATE_PENDING, "it waits for a worker"
}
