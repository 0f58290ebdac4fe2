package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// ListObjects implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListObjects(ctx context.Context, request *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	list := s.objectList(request, request.GetCluster(), request.GetController(), request.GetNamespace())
	found, next, err := list.list(ctx, lists.ObjectFilters)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListObjectsResponse{Objects: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// objectList lists keys of a member and a controller in a namespace; empty: of all of them.
func (s *objectService) objectList(asked listRequest, cluster, controller, namespace string) *ownerListing[*plimsollv1.ObjectState] {
	list := &ownerListing[*plimsollv1.ObjectState]{gap: gapOfLedger}
	list.listing = listing[*plimsollv1.ObjectState]{
		core: s.core, asked: asked, cluster: cluster, what: []string{"ledger", resourceObjects, controller, namespace},
		needs: auth.Access{Verb: verbList, Resource: resourceObjects, Namespace: namespace}, length: 4, nameOf: nameOfObject,
	}
	list.scan = func(member string, behind lists.Position, limit int) ([]entry[*plimsollv1.ObjectState], uint64, bool) {
		filter := reconcile.Filter{Member: member, Controller: controller, Namespace: namespace, Limit: limit}
		if behind != nil {
			filter.After = reconcile.Key{Controller: behind[1], NamespacedName: types.NamespacedName{Namespace: behind[2], Name: behind[3]}}
		}
		records, more := s.objects.RecordsIn(filter)
		found := make([]entry[*plimsollv1.ObjectState], 0, len(records))
		for i := range records {
			found = append(found, entry[*plimsollv1.ObjectState]{item: objectMessage(&records[i])})
		}
		return found, uint64(s.keysOf(member, controller)/keysPerUnit + itemCost*len(found)), more
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, request pageRequest) (listed[*plimsollv1.ObjectState], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListObjects(ctx, &plimsollv1.ListObjectsRequest{
			Cluster: request.cluster, Controller: controller, Namespace: namespace,
			PageSize: request.size, PageToken: request.token, Filter: request.filter, OrderBy: request.orderBy,
		})
		return listed[*plimsollv1.ObjectState]{answer.GetObjects(), answer}, err
	}
	return list
}

// keysOf is how many keys of a controller there are in a member, or of all: a page walks over all of them.
func (s *objectService) keysOf(member, controller string) (n int) {
	for _, state := range s.objects.ControllersIn(member) {
		if controller == "" || controller == state.Name {
			n += state.Objects
		}
	}
	return n
}

// nameOfObject is where a key is in lists by name.
func nameOfObject(o *plimsollv1.ObjectState) lists.Position {
	return lists.Position{o.GetKey().GetCluster(), o.GetKey().GetController(), o.GetKey().GetNamespace(), o.GetKey().GetName()}
}

// ListControllers implements [plimsollv1.ObjectServiceServer].
func (s *objectService) ListControllers(ctx context.Context, request *plimsollv1.ListControllersRequest) (*plimsollv1.ListControllersResponse, error) {
	list := ownerListing[*plimsollv1.Controller]{gap: gapOfLedger}
	list.listing = listing[*plimsollv1.Controller]{
		core: s.core, asked: unfiltered{request}, cluster: request.GetCluster(), what: []string{"ledger", "controllers"},
		needs: auth.Access{Verb: verbList, Resource: resourceObjects}, length: 2,
		nameOf: func(c *plimsollv1.Controller) lists.Position { return lists.Position{c.GetCluster(), c.GetName()} },
	}
	list.scan = func(member string, behind lists.Position, limit int) (found []entry[*plimsollv1.Controller], cost uint64, more bool) {
		all := s.objects.ControllersIn(member)
		cost = uint64(itemCost * len(all))
		for _, state := range all {
			if behind != nil && state.Name <= behind[1] {
				continue
			}
			if len(found) == limit {
				return found, cost, true
			}
			found = append(found, entry[*plimsollv1.Controller]{item: controllerMessage(&state)})
		}
		return found, cost, false
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, request pageRequest) (listed[*plimsollv1.Controller], error) {
		answer, err := plimsollv1.NewObjectServiceClient(conn).ListControllers(ctx, &plimsollv1.ListControllersRequest{
			Cluster: request.cluster, PageSize: request.size, PageToken: request.token,
		})
		return listed[*plimsollv1.Controller]{answer.GetControllers(), answer}, err
	}
	found, next, err := list.list(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListControllersResponse{Controllers: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// unfiltered is the request of a list that has neither filter nor order_by.
type unfiltered struct {
	*plimsollv1.ListControllersRequest
}

// GetFilter implements listRequest.
func (unfiltered) GetFilter() string { return "" }

// GetOrderBy implements listRequest.
func (unfiltered) GetOrderBy() string { return "" }

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
