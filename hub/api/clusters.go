package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

type clusterService struct {
	plimsollv1.UnimplementedClusterServiceServer
	*core
	feed *feed[*plimsollv1.Cluster]
}

// ListClusters implements [plimsollv1.ClusterServiceServer].
func (s *clusterService) ListClusters(ctx context.Context, request *plimsollv1.ListClustersRequest) (*plimsollv1.ListClustersResponse, error) {
	list := listing[*plimsollv1.Cluster]{
		core: s.core, asked: request, what: []string{resourceClusters}, needs: auth.Access{Verb: verbList, Resource: resourceClusters}, length: 1,
		nameOf: func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} },
	}
	if err := list.read(ctx, lists.ClusterFilters); err != nil {
		return nil, err
	}
	list.part = func(ctx context.Context, member string, _ int) (part[*plimsollv1.Cluster], error) {
		shown, err := s.part(ctx, member, list.failed)
		if err == nil {
			for _, c := range shown.items {
				list.spend(uint64(viewCost * max(0, c.GetWorkloads().GetManaged())))
			}
			shown.items, err = list.passing(ctx, shown.items)
		}
		return shown, err
	}
	found, next, err := list.page(ctx)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListClustersResponse{Clusters: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// GetCluster implements [plimsollv1.ClusterServiceServer].
func (s *clusterService) GetCluster(ctx context.Context, request *plimsollv1.GetClusterRequest) (*plimsollv1.GetClusterResponse, error) {
	name := request.GetCluster()
	if _, err := s.member(name); err != nil {
		return nil, err
	}
	found := page[*plimsollv1.Cluster]{asOf: time.Now()}
	shown, err := s.part(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if len(shown.items) == 0 {
		return nil, apierror.NoMember(name) // it went meanwhile
	}
	found.add(name, &shown, 1)
	return &plimsollv1.GetClusterResponse{Cluster: shown.items[0], AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// part is one member as its owner sees it or, when that does not answer, as this replica does.
func (s *clusterService) part(ctx context.Context, member string, failed *failures) (part[*plimsollv1.Cluster], error) {
	known, ok := s.members.Status(member)
	if !ok {
		return part[*plimsollv1.Cluster]{}, nil // it has just gone
	}
	answer, err := askOwner(ctx, s.core, member, question[*plimsollv1.GetClusterResponse]{
		failed: failed,
		local: func() (*plimsollv1.GetClusterResponse, error) {
			shown := clusterMessage(known)
			shown.Workloads = s.counts(known)
			return &plimsollv1.GetClusterResponse{Cluster: shown}, nil
		},
		remote: pass(plimsollv1.NewClusterServiceClient, plimsollv1.ClusterServiceClient.GetCluster, &plimsollv1.GetClusterRequest{Cluster: member}),
	})
	found := part[*plimsollv1.Cluster]{}
	if err != nil {
		if found.gap, err = gapOf(err); err != nil {
			return found, err
		}
	}
	shown := answer.GetCluster()
	if shown == nil { // the owner does not say
		shown = clusterMessage(known)
	}
	if at := answer.GetAsOf(); at != nil {
		found.asOf = at.AsTime()
	}
	shown.Owner = s.ownership.Owner(member)
	found.items = []*plimsollv1.Cluster{shown}
	return found, nil
}

// names of all members, in any order.
func (c *core) names() []string {
	known := c.members.Statuses()
	names := make([]string, 0, len(known))
	for i := range known {
		names = append(names, known[i].Name)
	}
	return names
}

// counts sums up the workloads of a member; nil while no kind of them is cached.
func (c *core) counts(known clusters.Status) *plimsollv1.WorkloadCounts {
	if !c.anyWorkloadKind(known) {
		return nil
	}
	sum := &plimsollv1.WorkloadCounts{}
	for _, view := range c.workloads.List(known.Name, "") {
		sum.Managed++
		sum.SpotWanted += count(view.SpotWanted)
		sum.SpotActual += count(view.SpotActual)
		sum.OnDemandWanted += count(view.OnDemandWanted)
		sum.OnDemandActual += count(view.OnDemandActual)
	}
	return sum
}

func clusterMessage(known clusters.Status) *plimsollv1.Cluster {
	shown := &plimsollv1.Cluster{
		Name:              known.Name,
		State:             clusterStates[known.State],
		Reason:            known.Reason,
		Message:           plain.Text(known.Message, apierror.MaxText),
		Server:            known.Server,
		KubernetesVersion: plain.Text(known.Version, apierror.MaxText),
		ClusterUid:        plain.Text(known.UID, apierror.MaxText),
		RegisteredAt:      moment(known.RegisteredAt),
		LastProbeAt:       moment(known.LastProbe),
		StateChangedAt:    moment(known.Since),

		RegistrationVersion: known.Registration.ResourceVersion,
	}
	for _, condition := range known.Conditions {
		shown.Conditions = append(shown.Conditions, &plimsollv1.Condition{
			Type: condition.Type, Status: string(condition.Status), Reason: condition.Reason, Message: plain.Text(condition.Message, apierror.MaxText),
			LastTransitionTime: moment(condition.LastTransitionTime.Time),
		})
	}
	for _, kind := range known.Kinds {
		shown.Kinds = append(shown.Kinds, &plimsollv1.ClusterKind{Name: kind.Kind, Engaged: kind.Engaged, Reason: kind.Reason})
	}
	return shown
}

var clusterStates = map[clusters.State]plimsollv1.ClusterState{
	clusters.StateConnecting:  plimsollv1.ClusterState_CLUSTER_STATE_CONNECTING,
	clusters.StateReady:       plimsollv1.ClusterState_CLUSTER_STATE_READY,
	clusters.StateDegraded:    plimsollv1.ClusterState_CLUSTER_STATE_DEGRADED,
	clusters.StateUnreachable: plimsollv1.ClusterState_CLUSTER_STATE_UNREACHABLE,
	clusters.StateRefused:     plimsollv1.ClusterState_CLUSTER_STATE_REFUSED,
}

// moment is a time as a message; nil for the zero time.
func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
