package api

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// Fleet reports what this replica knows of FleetPlacements: every replica follows those of the hub cluster. Safe for concurrent use.
type Fleet interface {
	// Synced reports whether those that there were at the start have been read.
	Synced() bool
	// Namespaces returns those that have any, in order.
	Namespaces() []string
	// Placements returns those of a namespace, in the order of their names. The caller does not change them.
	Placements(namespace string) []*fleetv1.FleetPlacement
	// Placement returns one; false: there is none. The caller does not change it.
	Placement(namespace, name string) (*fleetv1.FleetPlacement, bool)
	// Explain says why the plan of one is as it is; false: this replica has not planned it.
	Explain(namespace, name string) (placing.Explanation, bool)
	// Suppose plans one under another policy, and nothing comes of it; false: this replica has not planned it.
	Suppose(namespace, name string, h placing.Hypothesis) (placing.Supposition, bool)
	// Version is another number whenever any is another.
	Version() uint64
}

// resourceFleetPlacements is a resource of the kind's own group: who may read it with kubectl may read it here.
const resourceFleetPlacements = fleetv1.Resource

type fleetService struct {
	plimsollv1.UnimplementedFleetServiceServer
	*core
	feed *feed[*plimsollv1.FleetPlacement]
}

func newFleetService(c *core) *fleetService {
	s := &fleetService{core: c}
	s.feed = newFeed(c, nameOfFleetPlacement, func(_ context.Context, namespace string, _ *failures) ([]*plimsollv1.FleetPlacement, string, bool) {
		return s.in(namespace), "", false
	})
	s.feed.members, s.feed.owner = s.namespaces, func(string) string { return "" }
	s.feed.version = func(string) (uint64, bool) { return s.fleet.Version(), true }
	return s
}

// onFleetPlacements needs verb on fleetplacements in the namespace, and for the one, that the request names.
func onFleetPlacements(verb string) func(any) (auth.Access, error) {
	return func(request any) (auth.Access, error) {
		needs := auth.Access{Group: fleetv1.GroupVersion.Group, Verb: verb, Resource: resourceFleetPlacements}
		if within, ok := request.(interface{ GetNamespace() string }); ok {
			needs.Namespace = within.GetNamespace()
		}
		if one, ok := request.(interface{ GetName() string }); ok {
			needs.Name = one.GetName()
		}
		return needs, nil
	}
}

// byNamespace cuts lists into the namespaces that have FleetPlacements.
func (s *fleetService) byNamespace() *partition {
	return &partition{
		names:  s.namespaces,
		there:  func(namespace string) bool { return slices.Contains(s.namespaces(), namespace) },
		narrow: func(needs auth.Access, namespace string) auth.Access { needs.Namespace = namespace; return needs },
	}
}

func (s *fleetService) namespaces() []string { return s.fleet.Namespaces() }

// follows is an error where this replica does not know the FleetPlacements.
func (s *fleetService) follows() error {
	switch {
	case s.fleet == nil:
		return apierror.WithReason(status.New(codes.FailedPrecondition, "FleetPlacements are disabled: fleet.enabled is not set in the hub's configuration"),
			"FLEET_DISABLED", nil).Err()
	case !s.fleet.Synced():
		return apierror.WithReason(status.New(codes.Unavailable, "the hub has not read the FleetPlacements yet, or their definition is not installed"),
			"FLEET_UNREAD", nil).Err()
	}
	return nil
}

// ListFleetPlacements implements [plimsollv1.FleetServiceServer].
func (s *fleetService) ListFleetPlacements(ctx context.Context, request *plimsollv1.ListFleetPlacementsRequest) (*plimsollv1.ListFleetPlacementsResponse, error) {
	if err := s.follows(); err != nil {
		return nil, err
	}
	list := listing[*plimsollv1.FleetPlacement]{
		core: s.core, by: s.byNamespace(), asked: request, cluster: request.GetNamespace(), what: []string{resourceFleetPlacements},
		needs:  auth.Access{Group: fleetv1.GroupVersion.Group, Verb: verbList, Resource: resourceFleetPlacements},
		length: 2, nameOf: nameOfFleetPlacement,
	}
	if err := list.read(ctx, lists.FleetFilters); err != nil {
		return nil, err
	}
	list.part = func(ctx context.Context, namespace string, _ int) (found part[*plimsollv1.FleetPlacement], err error) {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		all := s.in(namespace)
		for _, p := range all {
			list.spend(uint64(itemCost * len(p.GetMembers())))
		}
		if err := s.showAll(ctx, namespace, all); err != nil {
			return found, err
		}
		if found.items, err = list.passing(ctx, all); err == nil && len(list.order) > 0 {
			slices.SortFunc(found.items, func(a, b *plimsollv1.FleetPlacement) int { return list.order.Compare(list.place(a), list.place(b)) })
		}
		return found, err
	}
	found, next, err := list.page(ctx)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListFleetPlacementsResponse{Placements: found.items, NextPageToken: next, AsOf: found.moment()}, nil
}

// in are the FleetPlacements of a namespace as whoever may see everything sees them, by name.
func (s *fleetService) in(namespace string) []*plimsollv1.FleetPlacement {
	var all []*plimsollv1.FleetPlacement
	for _, p := range s.fleet.Placements(namespace) {
		all = append(all, fleetPlacementMessage(p))
	}
	return all
}

func nameOfFleetPlacement(p *plimsollv1.FleetPlacement) lists.Position {
	return lists.Position{p.GetNamespace(), p.GetName()}
}

// GetFleetPlacement implements [plimsollv1.FleetServiceServer].
func (s *fleetService) GetFleetPlacement(ctx context.Context, request *plimsollv1.GetFleetPlacementRequest) (*plimsollv1.GetFleetPlacementResponse, error) {
	found, err := s.placement(request.GetNamespace(), request.GetName())
	if err != nil {
		return nil, err
	}
	shown, err := s.shown(ctx, fleetPlacementMessage(found))
	if err != nil {
		return nil, err
	}
	return &plimsollv1.GetFleetPlacementResponse{Placement: shown, AsOf: timestamppb.New(time.Now())}, nil
}

// placement is one FleetPlacement, or NOT_FOUND.
func (s *fleetService) placement(namespace, name string) (*fleetv1.FleetPlacement, error) {
	if err := s.follows(); err != nil {
		return nil, err
	}
	found, ok := s.fleet.Placement(namespace, name)
	if !ok {
		return nil, status.Errorf(codes.NotFound, "namespace %q has no FleetPlacement %q", namespace, name)
	}
	return found, nil
}

// WatchFleetPlacements implements [plimsollv1.FleetServiceServer].
func (s *fleetService) WatchFleetPlacements(request *plimsollv1.WatchFleetPlacementsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchFleetPlacementsResponse]) error {
	if err := s.follows(); err != nil {
		return err
	}
	compiled, err := lists.FleetFilters.Compile(request.GetFilter())
	if err != nil {
		return err
	}
	w := watching[*plimsollv1.FleetPlacement, *plimsollv1.WatchFleetPlacementsResponse]{
		core: s.core, by: s.byNamespace(), feed: s.feed, filter: compiled, token: request.GetResumeToken(), send: sending(stream), member: request.GetNamespace(),
		needs:   auth.Access{Group: fleetv1.GroupVersion.Group, Verb: verbList, Resource: resourceFleetPlacements},
		query:   []string{resourceFleetPlacements, request.GetNamespace(), request.GetFilter()},
		selects: func(*plimsollv1.FleetPlacement) bool { return true },
		shown:   s.shown,
		nameOnly: func(p *plimsollv1.FleetPlacement) *plimsollv1.FleetPlacement {
			return &plimsollv1.FleetPlacement{Namespace: p.GetNamespace(), Name: p.GetName()}
		},
		event: func(e watchEvent, item *plimsollv1.FleetPlacement) *plimsollv1.WatchFleetPlacementsResponse {
			return &plimsollv1.WatchFleetPlacementsResponse{Type: e.what, Placement: item, ResumeToken: e.token, Reason: e.reason}
		},
	}
	return w.run(stream.Context())
}
