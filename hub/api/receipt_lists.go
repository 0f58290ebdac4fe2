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

// ListReceipts implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListReceipts(ctx context.Context, request *plimsollv1.ListReceiptsRequest) (*plimsollv1.ListReceiptsResponse, error) {
	list := &ownerListing[*plimsollv1.Receipt]{gap: noGap}
	list.listing = listing[*plimsollv1.Receipt]{
		core: s.core, asked: request, cluster: request.GetCluster(), what: []string{"receipts", request.GetNamespace()},
		needs: auth.Access{Verb: verbList, Resource: resourceObjects, Namespace: request.GetNamespace()}, length: 2, nameOf: nameOfReceipt,
	}
	list.scan = func(member string, behind lists.Position, limit int) ([]entry[*plimsollv1.Receipt], bool) {
		all := s.receiptsIn(member, request.GetNamespace())
		if behind != nil {
			all = slices.DeleteFunc(all, func(r *plimsollv1.Receipt) bool { return r.GetId() <= behind[1] })
		}
		found := make([]entry[*plimsollv1.Receipt], 0, min(limit, len(all)))
		for _, shown := range all[:min(limit, len(all))] {
			found = append(found, entry[*plimsollv1.Receipt]{item: shown})
		}
		return found, len(all) > limit
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, page pageRequest) (listed[*plimsollv1.Receipt], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListReceipts(ctx, &plimsollv1.ListReceiptsRequest{
			Cluster: page.cluster, Namespace: request.GetNamespace(),
			PageSize: page.size, PageToken: page.token, Filter: page.filter, OrderBy: page.orderBy,
		})
		return listed[*plimsollv1.Receipt]{answer.GetReceipts(), answer}, err
	}
	found, next, err := list.list(ctx, lists.ReceiptFilters)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListReceiptsResponse{Receipts: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

func nameOfReceipt(r *plimsollv1.Receipt) lists.Position {
	return lists.Position{r.GetKey().GetCluster(), r.GetId()}
}

// receiptsIn are the orders about a member that this replica remembers, by id.
func (s *objectService) receiptsIn(member, namespace string) []*plimsollv1.Receipt {
	var all []*plimsollv1.Receipt
	of := s.objects.ReceiptsIn(member)
	for i := range of {
		all = append(all, receiptMessage(resourceObjects, &of[i]))
	}
	for _, b := range s.batches.in(member) {
		all = append(all, b.receipt())
	}
	if namespace != "" {
		all = slices.DeleteFunc(all, func(r *plimsollv1.Receipt) bool { return r.GetKey().GetNamespace() != namespace })
	}
	slices.SortFunc(all, func(a, b *plimsollv1.Receipt) int { return strings.Compare(a.GetId(), b.GetId()) })
	return all
}

// CancelReceipt implements [plimsollv1.ObjectServiceServer].
func (s *objectService) CancelReceipt(ctx context.Context, request *plimsollv1.CancelReceiptRequest) (*plimsollv1.CancelReceiptResponse, error) {
	id, err := parseReceiptID(request.GetReceipt())
	if err != nil {
		return nil, err
	}
	if s.holds(id) {
		return s.cancel(id)
	}
	if _, err := s.member(id.member); err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, id.member, question[*plimsollv1.CancelReceiptResponse]{
		order:  true,
		local:  func() (*plimsollv1.CancelReceiptResponse, error) { return nil, s.noReceipt(id) },
		remote: pass(plimsollv1.NewObjectServiceClient, plimsollv1.ObjectServiceClient.CancelReceipt, request),
	})
}

// cancel takes back an order that this replica accepted.
func (s *objectService) cancel(id receiptID) (*plimsollv1.CancelReceiptResponse, error) {
	if b := s.batches.find(id); b != nil {
		if !b.cancel() {
			return nil, errBegun(id, "all of its keys are requeued, or it ended otherwise")
		}
		return &plimsollv1.CancelReceiptResponse{Receipt: b.receipt()}, nil
	}
	found, err := s.objects.CancelReceipt(id.local)
	switch {
	case errors.Is(err, reconcile.ErrUnknownReceipt):
		return nil, errNoReceipt(id)
	case errors.Is(err, reconcile.ErrReceiptBegun):
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
	return &plimsollv1.CancelReceiptResponse{Receipt: receiptMessage(id.resource, &found)}, nil
}

// reasonBegun is that of an order that cannot be taken back any more.
const reasonBegun = "RECEIPT_BEGUN"

func errBegun(id receiptID, why string) error {
	return apierror.WithReason(status.Newf(codes.FailedPrecondition, "member %q: the requeue runs or is final, and cannot be cancelled: %s", id.member, why),
		reasonBegun, map[string]string{"member": id.member}).Err()
}
