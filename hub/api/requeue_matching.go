package api

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const (
	// maxMatching is how many keys of one member an order may match, maxSample how many are listed.
	maxMatching, maxSample = 10_000, 100
	// defaultPace is how many keys of a member are ordered in a second.
	defaultPace = 50
	// reasonTooManyOrders is that of orders of many keys beyond a caller's share.
	reasonTooManyOrders = "TOO_MANY_ORDERS"
)

// RequeueMatching implements [plimsollv1.ObjectServiceServer].
func (s *objectService) RequeueMatching(ctx context.Context, request *plimsollv1.RequeueMatchingRequest) (*plimsollv1.RequeueMatchingResponse, error) {
	if _, err := lists.ObjectFilters.Compile(request.GetFilter()); err != nil {
		return nil, err
	}
	if err := s.registered(request.GetCluster()); err != nil {
		return nil, err
	}
	needs := auth.Access{Verb: verbRequeue, Resource: resourceObjects, Namespace: request.GetNamespace()}
	members := one(request.GetCluster())
	if request.GetCluster() == "" {
		var err error
		if members, err = newCandidates(ctx, s.rights, needs, s.parts(nil), ""); err != nil {
			return nil, err
		}
	}
	if err := s.mayList(ctx); err != nil { // once, before anything is ordered: the members would become gaps in the middle
		return nil, err
	}
	answer, failed := &plimsollv1.RequeueMatchingResponse{NothingOrdered: true}, &failures{}
	for members.whole(); ; {
		some, err := members.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			break
		}
		parts, err := askAll(ctx, some, 0, func(ctx context.Context, member string, _ int) (part[*plimsollv1.RequeueMatchingResponse], error) {
			return s.matchingOf(ctx, member, request, failed)
		})
		if err != nil {
			return nil, err
		}
		for i, found := range parts {
			addMatching(answer, some[i], found)
		}
	}
	if members.denied() {
		return nil, denied(identityOf(ctx), needs)
	}
	if members.left() {
		answer.Unreachable = append(answer.Unreachable, &plimsollv1.UnreachableMember{Reason: "there are too many members to check each: name them"})
	}
	return answer, nil
}

func addMatching(answer *plimsollv1.RequeueMatchingResponse, member string, found part[*plimsollv1.RequeueMatchingResponse]) {
	if found.gap != "" {
		answer.Unreachable = append(answer.Unreachable, &plimsollv1.UnreachableMember{Member: member, Reason: found.gap})
	}
	for _, of := range found.items {
		answer.Matched += of.GetMatched()
		answer.Unreachable = append(answer.Unreachable, of.GetUnreachable()...) // as its owner says
		answer.Sample = append(answer.Sample, of.GetSample()[:min(len(of.GetSample()), maxSample-len(answer.GetSample()))]...)
		answer.NothingOrdered = answer.NothingOrdered && of.GetNothingOrdered()
		answer.Operations = append(answer.Operations, of.GetOperations()...)
	}
}

// matchingOf has the owner of a member order what matches there.
func (s *objectService) matchingOf(ctx context.Context, member string, request *plimsollv1.RequeueMatchingRequest, failed *failures) (found part[*plimsollv1.RequeueMatchingResponse], err error) {
	answer, err := askOwner(ctx, s.core, member, question[*plimsollv1.RequeueMatchingResponse]{
		order: !request.GetValidateOnly(), failed: failed,
		local: func() (*plimsollv1.RequeueMatchingResponse, error) {
			return s.requeueMatching(ctx, member, request)
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) (*plimsollv1.RequeueMatchingResponse, error) {
			ofMember := proto.CloneOf(request)
			ofMember.Cluster = member
			return plimsollv1.NewObjectServiceClient(conn).RequeueMatching(ctx, ofMember)
		},
	})
	// What has begun in other members goes on, and its caller needs the operations.
	if code := status.Code(err); request.GetCluster() == "" && (apierror.ReasonOf(err) == reasonNotAnswering || code == codes.ResourceExhausted) {
		found.gap, err = status.Convert(err).Message(), nil
		return found, err
	}
	if err != nil {
		found.gap, err = gapOf(err)
		return found, err
	}
	found.items = append(found.items, answer)
	return found, nil
}

// requeueMatching finds what matches in a member of this replica, and begins to order it.
func (s *objectService) requeueMatching(ctx context.Context, member string, request *plimsollv1.RequeueMatchingRequest) (*plimsollv1.RequeueMatchingResponse, error) {
	name := batchName{callerOf(ctx), member, request.GetRequestId(), lists.Fingerprint([]string{request.GetController(), request.GetNamespace(), request.GetFilter()})}
	if before, ok := s.batches.named.Get(name); ok && name.id != "" && !request.GetValidateOnly() {
		return again(before), nil
	}
	keys, err := s.matching(ctx, member, request)
	if err != nil {
		return nil, err
	}
	answer := &plimsollv1.RequeueMatchingResponse{Matched: count(len(keys)), NothingOrdered: request.GetValidateOnly()}
	for _, key := range keys[:min(len(keys), maxSample)] {
		answer.Sample = append(answer.Sample, keyMessage(key))
	}
	if request.GetValidateOnly() {
		return answer, nil
	}
	if err := s.answers(member, request.GetForce()); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return answer, nil
	}
	return s.accept(name, request, keys, answer)
}

// accept begins to order keys, unless that has begun already.
func (s *objectService) accept(name batchName, request *plimsollv1.RequeueMatchingRequest, keys []reconcile.Key, answer *plimsollv1.RequeueMatchingResponse) (*plimsollv1.RequeueMatchingResponse, error) {
	if !s.batches.places.Enter(name.caller) {
		return nil, apierror.WithReason(status.Newf(codes.ResourceExhausted, "user %q has too many RequeueMatching calls in progress: try again when they are done", name.caller),
			reasonTooManyOrders, nil).Err()
	}
	b, ctx := newBatch(s.stopping, request, name.member, name.caller, keys)
	answer.Operations = []string{b.operationID().String()}
	if name.id != "" { // the same order may have come while this one looked for what matches
		if before, first := s.batches.named.Add(name, answer, namedFor); !first {
			b.stop()
			s.batches.places.Leave(name.caller)
			return again(before), nil
		}
	}
	s.batches.add(b)
	s.events.Add(journal.Event{
		Type: journal.Requeue, Member: name.member, Namespace: request.GetNamespace(), Subject: request.GetController(), User: name.caller, Reason: "Matching",
		Message: fmt.Sprintf("%d keys that match %s", len(keys), request.GetFilter()),
	})
	go s.work(ctx, b)
	return answer, nil
}

// again is the answer to an order that was accepted before.
func again(before *plimsollv1.RequeueMatchingResponse) *plimsollv1.RequeueMatchingResponse {
	answer := proto.CloneOf(before)
	answer.NothingOrdered = true
	return answer
}

// matching are the keys of a member of this replica that an order is about.
func (s *objectService) matching(ctx context.Context, member string, request *plimsollv1.RequeueMatchingRequest) (keys []reconcile.Key, err error) {
	list := s.objectList(&plimsollv1.ListObjectsRequest{Filter: request.GetFilter()}, member, request.GetController(), request.GetNamespace())
	if list.filter, err = lists.ObjectFilters.Compile(request.GetFilter()); err != nil {
		return nil, err
	}
	list.charge(ctx)
	ended, err := list.walk(ctx, member, nil, firstScan, func(item entry[*plimsollv1.ObjectState], passes bool) bool {
		if passes {
			at := nameOfObject(item.item)
			key := reconcile.Key{Member: at[0], Controller: at[1]}
			key.Namespace, key.Name = at[2], at[3]
			keys = append(keys, key)
		}
		return len(keys) <= maxMatching
	})
	switch {
	case err != nil:
		return nil, err
	case len(keys) > maxMatching:
		return nil, lists.BadFilter("filter.many", fmt.Sprintf("matches more than %d keys of member %q", maxMatching, member))
	case !ended:
		return nil, lists.BadFilter("filter.cost", "costs too much to compute for all items: name a controller or a namespace")
	}
	return keys, nil
}
