package api

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// ListOperations implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListOperations(ctx context.Context, request *plimsollv1.ListOperationsRequest) (*plimsollv1.ListOperationsResponse, error) {
	list := &ownerListing[*plimsollv1.Operation]{gap: noGap}
	list.listing = listing[*plimsollv1.Operation]{
		core: s.core, asked: request, cluster: request.GetCluster(), what: []string{"operations", request.GetNamespace()},
		needs: auth.Access{Verb: verbList, Resource: resourceObjects, Namespace: request.GetNamespace()}, length: 2, nameOf: nameOfOperation,
	}
	list.scan = func(member string, behind lists.Position, limit int) ([]entry[*plimsollv1.Operation], uint64, bool) {
		all := s.operationsIn(member, request.GetNamespace())
		cost := uint64(itemCost * len(all))
		if behind != nil {
			all = slices.DeleteFunc(all, func(r *plimsollv1.Operation) bool { return r.GetId() <= behind[1] })
		}
		found := make([]entry[*plimsollv1.Operation], 0, min(limit, len(all)))
		for _, shown := range all[:min(limit, len(all))] {
			found = append(found, entry[*plimsollv1.Operation]{item: shown})
		}
		return found, cost, len(all) > limit
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, page pageRequest) (listed[*plimsollv1.Operation], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListOperations(ctx, &plimsollv1.ListOperationsRequest{
			Cluster: page.cluster, Namespace: request.GetNamespace(),
			PageSize: page.size, PageToken: page.token, Filter: page.filter, OrderBy: page.orderBy,
		})
		return listed[*plimsollv1.Operation]{answer.GetOperations(), answer}, err
	}
	found, next, err := list.list(ctx, lists.OperationFilters)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListOperationsResponse{Operations: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

func nameOfOperation(r *plimsollv1.Operation) lists.Position {
	return lists.Position{r.GetKey().GetCluster(), r.GetId()}
}

// operationsIn are the orders about a member that this replica remembers, by id.
func (s *objectService) operationsIn(member, namespace string) []*plimsollv1.Operation {
	var all []*plimsollv1.Operation
	of := s.objects.OperationsIn(member)
	for i := range of {
		all = append(all, operationMessage(resourceObjects, &of[i]))
	}
	for _, b := range s.batches.in(member) {
		all = append(all, b.operation())
	}
	if namespace != "" {
		all = slices.DeleteFunc(all, func(r *plimsollv1.Operation) bool { return r.GetKey().GetNamespace() != namespace })
	}
	slices.SortFunc(all, func(a, b *plimsollv1.Operation) int { return strings.Compare(a.GetId(), b.GetId()) })
	return all
}

// CancelOperation implements [plimsollv1.ObjectServiceServer].
func (s *objectService) CancelOperation(ctx context.Context, request *plimsollv1.CancelOperationRequest) (*plimsollv1.CancelOperationResponse, error) {
	id, err := parseOperationID(request.GetOperation())
	if err != nil {
		return nil, err
	}
	if s.holds(id) {
		return s.cancel(id)
	}
	if _, err := s.member(id.member); err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, id.member, question[*plimsollv1.CancelOperationResponse]{
		order:  true,
		local:  func() (*plimsollv1.CancelOperationResponse, error) { return nil, s.noOperation(id) },
		remote: pass(plimsollv1.NewObjectServiceClient, plimsollv1.ObjectServiceClient.CancelOperation, request),
	})
}

// cancel takes back an order that this replica accepted.
func (s *objectService) cancel(id operationID) (*plimsollv1.CancelOperationResponse, error) {
	if b := s.batches.find(id); b != nil {
		if !b.cancel() {
			return nil, errBegun(id, "all of its keys are requeued, or it ended otherwise")
		}
		return &plimsollv1.CancelOperationResponse{Operation: b.operation()}, nil
	}
	found, err := s.objects.CancelOperation(id.local)
	switch {
	case errors.Is(err, reconcile.ErrUnknownOperation):
		return nil, errNoOperation(id)
	case errors.Is(err, reconcile.ErrOperationBegun):
		_, why := openState(&found)
		switch {
		case !found.CancelledAt.IsZero():
			why = "it is cancelled already"
		case found.Done:
			_, why = finalState(&found.Record)
		}
		return nil, errBegun(id, why)
	case err != nil:
		return nil, err
	}
	return &plimsollv1.CancelOperationResponse{Operation: operationMessage(id.resource, &found)}, nil
}

// reasonBegun is that of an order that cannot be taken back any more.
const reasonBegun = "OPERATION_BEGUN"

func errBegun(id operationID, why string) error {
	return apierror.WithReason(status.Newf(codes.FailedPrecondition, "member %q: the requeue runs or is final, and cannot be cancelled: %s", id.member, why),
		reasonBegun, map[string]string{"member": id.member}).Err()
}
