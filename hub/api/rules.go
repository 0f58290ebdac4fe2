package api

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// Verbs and resources of [Group].
const (
	verbGet     = "get"
	verbList    = "list"
	verbRequeue = "requeue"

	resourceClusters  = "clusters"
	resourceWorkloads = "workloads"
	resourceObjects   = "objects"
	resourceEvents    = "events"
)

// rule says what a method needs.
type rule struct {
	// needs returns the access that a request takes; without a member, in all of them.
	needs func(request any) (auth.Access, error)
	// lists: without a member it answers for those that the caller may see; other methods need one.
	lists bool
	// byNamespace: what it lists is in namespaces of the hub cluster and not in members.
	byNamespace bool
	// order: it makes something happen.
	order bool
}

// rules of all methods. A method without one is denied to everybody.
var rules = map[string]rule{
	plimsollv1.ClusterService_ListClusters_FullMethodName:        {needs: onMember(verbList, resourceClusters), lists: true},
	plimsollv1.ClusterService_GetCluster_FullMethodName:          {needs: onMember(verbGet, resourceClusters)},
	plimsollv1.WorkloadService_ListWorkloads_FullMethodName:      {needs: onMember(verbList, resourceWorkloads), lists: true},
	plimsollv1.WorkloadService_GetWorkload_FullMethodName:        {needs: onMember(verbGet, resourceWorkloads)},
	plimsollv1.WorkloadService_WhatIf_FullMethodName:             {needs: onMember(verbGet, resourceWorkloads)},
	plimsollv1.WorkloadService_RequeueWorkload_FullMethodName:    {needs: onMember(verbRequeue, resourceWorkloads), order: true},
	plimsollv1.ClusterService_WatchClusters_FullMethodName:       {needs: onMember(verbList, resourceClusters), lists: true},
	plimsollv1.WorkloadService_WatchWorkloads_FullMethodName:     {needs: onMember(verbList, resourceWorkloads), lists: true},
	plimsollv1.ObjectService_WatchObjects_FullMethodName:         {needs: onMember(verbList, resourceObjects), lists: true},
	plimsollv1.ObjectService_ListControllers_FullMethodName:      {needs: onMember(verbList, resourceObjects), lists: true},
	plimsollv1.ObjectService_ListObjects_FullMethodName:          {needs: onMember(verbList, resourceObjects), lists: true},
	plimsollv1.ObjectService_GetObjectState_FullMethodName:       {needs: onMember(verbGet, resourceObjects)},
	plimsollv1.ObjectService_RequeueObject_FullMethodName:        {needs: onMember(verbRequeue, resourceObjects), order: true},
	plimsollv1.ObjectService_RequeueMatching_FullMethodName:      {needs: onMember(verbRequeue, resourceObjects), lists: true, order: true},
	plimsollv1.ObjectService_GetOperation_FullMethodName:         {needs: onOperation(verbGet)},
	plimsollv1.ObjectService_ListOperations_FullMethodName:       {needs: onMember(verbList, resourceObjects), lists: true},
	plimsollv1.ObjectService_CancelOperation_FullMethodName:      {needs: onOperation(verbRequeue), order: true},
	plimsollv1.EventService_ListEvents_FullMethodName:            {needs: onMember(verbList, resourceEvents), lists: true},
	plimsollv1.EventService_WatchEvents_FullMethodName:           {needs: onMember(verbList, resourceEvents), lists: true},
	plimsollv1.FleetService_ListFleetPlacements_FullMethodName:   {needs: onFleetPlacements(verbList), lists: true, byNamespace: true},
	plimsollv1.FleetService_WatchFleetPlacements_FullMethodName:  {needs: onFleetPlacements(verbList), lists: true, byNamespace: true},
	plimsollv1.FleetService_ExplainFleetPlacement_FullMethodName: {needs: onFleetPlacements(verbGet)},
	plimsollv1.FleetService_WhatIfFleetPlacement_FullMethodName:  {needs: onFleetPlacements(verbGet)},
	plimsollv1.FleetService_GetFleetPlacement_FullMethodName:     {needs: onFleetPlacements(verbGet)},
}

// onMember needs verb on resource for the member, and in the namespace, that the request names, if it names one.
func onMember(verb, resource string) func(any) (auth.Access, error) {
	return func(request any) (auth.Access, error) {
		needs := auth.Access{Verb: verb, Resource: resource}
		if named, ok := request.(interface{ GetCluster() string }); ok {
			needs.Member = named.GetCluster()
		}
		if within, ok := request.(interface{ GetNamespace() string }); ok {
			needs.Namespace = within.GetNamespace()
		}
		return needs, nil
	}
}

// onOperation needs verb on the kind of resource that was ordered: who may order workloads can follow what comes of it.
func onOperation(verb string) func(any) (auth.Access, error) {
	return func(request any) (auth.Access, error) {
		asked, ok := request.(interface{ GetOperation() string })
		if !ok {
			return auth.Access{}, status.Error(codes.Internal, "the request names no operation")
		}
		id, err := parseOperationID(asked.GetOperation())
		return auth.Access{Verb: verb, Resource: id.resource, Member: id.member, Namespace: id.namespace}, err
	}
}

// authorize refuses calls about a member that the caller has no right to.
func authorize(rights access) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := rights.mayCall(ctx, info.FullMethod, request); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// mayCall refuses a call about a member that the caller has no right to.
func (a access) mayCall(ctx context.Context, method string, request any) error {
	rule, ok := rules[method]
	if !ok {
		return status.Error(codes.PermissionDenied, "no user may call this method")
	}
	needs, err := rule.needs(request)
	part := needs.Member
	if rule.byNamespace {
		part = needs.Namespace
	}
	if err != nil || part == "" && rule.lists {
		return err
	}
	return a.require(ctx, needs)
}

// access answers what the caller of a context may do.
type access struct {
	authorizer auth.Authorizer
	hidden     *auth.Unlisted // nil: nothing is remembered of members that callers may not see
	log        *slog.Logger
}

// everything allows anything: the peers, whose callers were authorized by the peer, and the unauthenticated mode.
type everything struct{}

func (everything) Allowed(context.Context, auth.Identity, auth.Access) (bool, error) {
	return true, nil
}

// require returns PERMISSION_DENIED when the caller has not got what a call needs.
func (a access) require(ctx context.Context, needs auth.Access) error {
	allowed, err := a.allowed(ctx, needs)
	if err != nil || allowed {
		return err
	}
	return denied(identityOf(ctx), needs)
}

// allowed reports whether the caller has it, or returns UNAVAILABLE.
func (a access) allowed(ctx context.Context, needs auth.Access) (bool, error) {
	return a.has(ctx, identityOf(ctx), needs)
}

// mayGet checks the same for a non-resource URL.
func (a access) mayGet(ctx context.Context, who auth.Identity, path string) (bool, error) {
	return a.has(ctx, who, auth.Access{Verb: verbGet, Path: path})
}

func (a access) has(ctx context.Context, who auth.Identity, needs auth.Access) (bool, error) {
	allowed, err := a.authorizer.Allowed(ctx, who, needs)
	if err == nil {
		return allowed, nil
	}
	if ctx.Err() != nil {
		return false, status.FromContextError(ctx.Err()).Err()
	}
	a.log.Warn("cannot check access", "error", err)
	return false, status.Error(codes.Unavailable, "cannot check access: the hub cluster does not answer")
}

func denied(who auth.Identity, needs auth.Access) error {
	if needs.Group != "" {
		return deniedInHub(who, needs)
	}
	where := "any member"
	if needs.Member != "" {
		where = "member " + needs.Member
	}
	if needs.Namespace != "" {
		where += " in namespace " + needs.Namespace
	}
	return apierror.WithReason(status.Newf(codes.PermissionDenied,
		"user %q may not %s %s of %s: an RBAC rule of the hub cluster must grant %s on %s.%s, for the member's name or for all",
		who.User, needs.Verb, needs.Resource, where, needs.Verb, needs.Resource, auth.Group),
		"ACCESS_DENIED", map[string]string{"verb": needs.Verb, "resource": needs.Resource, "member": needs.Member, "namespace": needs.Namespace}).Err()
}

// deniedInHub is the same of a resource of the hub cluster.
func deniedInHub(who auth.Identity, needs auth.Access) error {
	where := "all namespaces"
	if needs.Namespace != "" {
		where = "namespace " + needs.Namespace
	}
	return apierror.WithReason(status.Newf(codes.PermissionDenied, "user %q may not %s %s.%s in %s: an RBAC rule of the hub cluster must grant %s on %s.%s there",
		who.User, needs.Verb, needs.Resource, needs.Group, where, needs.Verb, needs.Resource, needs.Group),
		"ACCESS_DENIED", map[string]string{"verb": needs.Verb, "resource": needs.Resource, "group": needs.Group, "namespace": needs.Namespace}).Err()
}
