package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// ListObjects implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListObjects(ctx context.Context, request *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	list := ledgerList[*plimsollv1.ObjectState]{core: s.core, namespace: request.GetNamespace(), length: 4,
		what: []string{resourceObjects, request.GetController(), request.GetNamespace()}}
	list.local = func(member string, behind position, limit int) ([]*plimsollv1.ObjectState, bool) {
		filter := reconcile.Filter{Member: member, Controller: request.GetController(), Namespace: request.GetNamespace(), Limit: limit}
		if behind != nil {
			filter.After = reconcile.Key{Controller: behind[1], NamespacedName: types.NamespacedName{Namespace: behind[2], Name: behind[3]}}
		}
		records, more := s.objects.RecordsIn(filter)
		found := make([]*plimsollv1.ObjectState, 0, len(records))
		for i := range records {
			found = append(found, objectMessage(&records[i]))
		}
		return found, more
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, member, token string, limit int) (listed[*plimsollv1.ObjectState], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListObjects(ctx, &plimsollv1.ListObjectsRequest{
			Cluster: member, Controller: request.GetController(), Namespace: request.GetNamespace(), PageSize: count(limit), PageToken: token,
		})
		return listed[*plimsollv1.ObjectState]{answer.GetObjects(), answer}, err
	}
	list.positionOf = func(o *plimsollv1.ObjectState) position {
		return position{o.GetKey().GetCluster(), o.GetKey().GetController(), o.GetKey().GetNamespace(), o.GetKey().GetName()}
	}
	found, next, err := list.page(ctx, request.GetCluster(), request.GetPageToken(), request.GetPageSize())
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListObjectsResponse{Objects: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// ListControllers implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListControllers(ctx context.Context, request *plimsollv1.ListControllersRequest) (*plimsollv1.ListControllersResponse, error) {
	list := ledgerList[*plimsollv1.Controller]{core: s.core, length: 2, what: []string{"controllers"}}
	list.local = func(member string, behind position, limit int) (found []*plimsollv1.Controller, more bool) {
		for _, state := range s.objects.ControllersIn(member) {
			if behind != nil && state.Name <= behind[1] {
				continue
			}
			if len(found) == limit {
				return found, true
			}
			found = append(found, controllerMessage(&state))
		}
		return found, false
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, member, token string, limit int) (listed[*plimsollv1.Controller], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListControllers(ctx, &plimsollv1.ListControllersRequest{
			Cluster: member, PageSize: count(limit), PageToken: token,
		})
		return listed[*plimsollv1.Controller]{answer.GetControllers(), answer}, err
	}
	list.positionOf = func(c *plimsollv1.Controller) position { return position{c.GetCluster(), c.GetName()} }
	found, next, err := list.page(ctx, request.GetCluster(), request.GetPageToken(), request.GetPageSize())
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListControllersResponse{Controllers: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

func controllerMessage(state *reconcile.ControllerState) *plimsollv1.Controller {
	return &plimsollv1.Controller{
		Cluster: state.Member, Name: state.Name, Kind: state.Kind,
		Objects: count(state.Objects), Queued: count(state.Queued), Running: count(state.Running), Held: state.Held,
	}
}

// gapOfLedger says why what a ledger has of a member may be old; "": it is not.
func gapOfLedger(known clusters.Status) (gap string, since time.Time) {
	if known.State == clusters.StateReady || known.State == clusters.StateDegraded {
		return "", time.Time{}
	}
	return "the member is " + string(known.State) + " (" + known.Reason + "): " + known.Message, known.Since
}
