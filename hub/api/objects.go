package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

type objectService struct {
	plimsollv1.UnimplementedObjectServiceServer
	*core
	feed    *feed[*plimsollv1.ObjectState]
	batches *Batches
}

// GetObjectState implements [plimsollv1.ObjectServiceServer].
func (s *objectService) GetObjectState(ctx context.Context, request *plimsollv1.GetObjectStateRequest) (*plimsollv1.GetObjectStateResponse, error) {
	if _, err := s.member(request.GetCluster()); err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, request.GetCluster(), question[*plimsollv1.GetObjectStateResponse]{
		local: func() (*plimsollv1.GetObjectStateResponse, error) {
			key := keyFrom(request)
			record, ok := s.objects.Lookup(key)
			if !ok {
				return nil, errNoObject(key)
			}
			return &plimsollv1.GetObjectStateResponse{Object: objectMessage(&record), AsOf: timestamppb.New(time.Now())}, nil
		},
		remote: pass(plimsollv1.NewObjectServiceClient, plimsollv1.ObjectServiceClient.GetObjectState, request),
	})
}

// RequeueObject implements [plimsollv1.ObjectServiceServer].
func (s *objectService) RequeueObject(ctx context.Context, request *plimsollv1.RequeueObjectRequest) (*plimsollv1.RequeueObjectResponse, error) {
	if _, err := s.member(request.GetCluster()); err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, request.GetCluster(), question[*plimsollv1.RequeueObjectResponse]{
		order: true,
		local: func() (*plimsollv1.RequeueObjectResponse, error) {
			operation, err := s.requeue(ctx, resourceObjects, keyFrom(request), request.GetForce())
			return &plimsollv1.RequeueObjectResponse{Operation: operation}, err
		},
		remote: pass(plimsollv1.NewObjectServiceClient, plimsollv1.ObjectServiceClient.RequeueObject, request),
	})
}

// keyFrom reads the key that a request names.
func keyFrom(request interface {
	GetCluster() string
	GetController() string
	GetNamespace() string
	GetName() string
}) reconcile.Key {
	return reconcile.Key{
		Controller: request.GetController(), Member: request.GetCluster(),
		NamespacedName: types.NamespacedName{Namespace: request.GetNamespace(), Name: request.GetName()},
	}
}

// reasonNotAnswering is that of an order about a member whose breaker is open.
const reasonNotAnswering = apierror.NotAnswering

// answers refuses orders about a member that does not answer, where nothing would run, unless they are forced.
func (c *core) answers(member string, force bool) error {
	reason, closed := c.objects.Closed(member, reconcile.HoldBreaker)
	if !closed || force {
		return nil
	}
	return apierror.WithReason(status.Newf(codes.FailedPrecondition, "member %q: %s: requeue again when it answers, or requeue with force to run it then", member, reason),
		reasonNotAnswering, map[string]string{"member": member}).Err()
}

// requeue orders a reconcile here, for whoever makes the call.
func (c *core) requeue(ctx context.Context, resource string, key reconcile.Key, force bool) (*plimsollv1.Operation, error) {
	if err := c.answers(key.Member, force); err != nil {
		return nil, err
	}
	accepted, err := c.objects.RequeueFor(key, callerOf(ctx))
	switch {
	case err == nil:
		c.events.Add(journal.Event{
			Type: journal.Requeue, Member: key.Member, Namespace: key.Namespace, Name: key.Name, Subject: key.Controller, User: callerOf(ctx),
			Reason: "Object", Message: "a reconcile was requested",
		})
		return operationMessage(resource, &accepted), nil
	case errors.Is(err, reconcile.ErrUnknownController):
		return nil, status.Errorf(codes.NotFound, "no controller is named %q", key.Controller)
	case errors.Is(err, reconcile.ErrUnknownMember):
		return nil, status.Errorf(codes.NotFound, "member %q: controller %q does not run there (yet): see the kinds of the cluster", key.Member, key.Controller)
	case errors.Is(err, reconcile.ErrUnknownKey):
		return nil, errNoObject(key)
	case errors.Is(err, reconcile.ErrRetired):
		return nil, status.Error(codes.Unavailable, "the replica that owns the member stops: requeue again when another one has taken over")
	}
	return nil, fmt.Errorf("requeue %v: %w", key, err)
}

func errNoObject(key reconcile.Key) error {
	return status.Errorf(codes.NotFound, "member %q: controller %q has no object %q there", key.Member, key.Controller, strings.TrimPrefix(key.Namespace+"/"+key.Name, "/"))
}

func objectMessage(record *reconcile.Record) *plimsollv1.ObjectState {
	return &plimsollv1.ObjectState{
		Key:            keyMessage(record.Key),
		State:          reconcileStates[record.State],
		Reason:         record.Reason,
		Attempts:       count(record.Attempts),
		FailingSince:   moment(record.Failing),
		LastOutcome:    outcomes[record.LastOutcome],
		LastError:      record.LastError,
		LastStartedAt:  moment(record.LastStarted),
		LastFinishedAt: moment(record.LastEnded),
		NextTryAt:      moment(record.NextTry),

		LastHandledRequest: record.Handled,
		Priority:           prioritiesOf[record.Priority],
	}
}

func keyMessage(key reconcile.Key) *plimsollv1.ObjectKey {
	return &plimsollv1.ObjectKey{Cluster: key.Member, Controller: key.Controller, Namespace: key.Namespace, Name: key.Name}
}

var reconcileStates = map[reconcile.State]plimsollv1.ReconcileState{
	reconcile.StateIdle:    plimsollv1.ReconcileState_RECONCILE_STATE_IDLE,
	reconcile.StateQueued:  plimsollv1.ReconcileState_RECONCILE_STATE_QUEUED,
	reconcile.StateRunning: plimsollv1.ReconcileState_RECONCILE_STATE_RUNNING,
	reconcile.StateWaiting: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING,
	reconcile.StateHeld:    plimsollv1.ReconcileState_RECONCILE_STATE_HELD,
}

var prioritiesOf = map[reconcile.Priority]plimsollv1.ReconcilePriority{
	reconcile.PriorityOrdered:    plimsollv1.ReconcilePriority_RECONCILE_PRIORITY_ORDERED,
	reconcile.PriorityChanged:    plimsollv1.ReconcilePriority_RECONCILE_PRIORITY_CHANGED,
	reconcile.PriorityBackground: plimsollv1.ReconcilePriority_RECONCILE_PRIORITY_BACKGROUND,
}

var outcomes = map[reconcile.Outcome]plimsollv1.ReconcileOutcome{
	reconcile.OutcomeDone:     plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_DONE,
	reconcile.OutcomeRequeue:  plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_REQUEUE,
	reconcile.OutcomeError:    plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR,
	reconcile.OutcomeTerminal: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TERMINAL,
	reconcile.OutcomePanic:    plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_PANIC,
	reconcile.OutcomeTimeout:  plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TIMEOUT,
	reconcile.OutcomeGone:     plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_GONE,

	reconcile.OutcomePaused:    plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_PAUSED,
	reconcile.OutcomePending:   plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_PENDING,
	reconcile.OutcomeCleanedUp: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_CLEANED_UP,
	reconcile.OutcomeNotOurs:   plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_NOT_OURS,
}
