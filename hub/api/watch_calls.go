package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// WatchClusters implements [plimsollv1.ClusterServiceServer].
func (s *clusterService) WatchClusters(request *plimsollv1.WatchClustersRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error {
	compiled, err := lists.ClusterFilters.Compile(request.GetFilter())
	if err != nil {
		return err
	}
	if err := s.registered(""); err != nil {
		return err
	}
	w := watching[*plimsollv1.Cluster, *plimsollv1.WatchClustersResponse]{
		core: s.core, feed: s.feed, filter: compiled, token: request.GetResumeToken(), send: sending(stream),
		needs: auth.Access{Verb: verbList, Resource: resourceClusters}, query: []string{resourceClusters, request.GetFilter()},
		selects:  func(*plimsollv1.Cluster) bool { return true },
		nameOnly: func(c *plimsollv1.Cluster) *plimsollv1.Cluster { return &plimsollv1.Cluster{Name: c.GetName()} },
		event: func(e watchEvent, item *plimsollv1.Cluster) *plimsollv1.WatchClustersResponse {
			return &plimsollv1.WatchClustersResponse{Type: e.what, Cluster: item, ResumeToken: e.token, Reason: e.reason, Unreachable: e.unreachable}
		},
	}
	return w.run(stream.Context())
}

// WatchWorkloads implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) WatchWorkloads(request *plimsollv1.WatchWorkloadsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchWorkloadsResponse]) error {
	compiled, err := lists.WorkloadFilters.Compile(request.GetFilter())
	if err != nil {
		return err
	}
	if err := s.registered(request.GetCluster()); err != nil {
		return err
	}
	w := watching[*plimsollv1.Workload, *plimsollv1.WatchWorkloadsResponse]{
		core: s.core, feed: s.feed, filter: compiled, token: request.GetResumeToken(), send: sending(stream), member: request.GetCluster(),
		needs: auth.Access{Verb: verbList, Resource: resourceWorkloads, Namespace: request.GetNamespace()},
		query: []string{resourceWorkloads, request.GetCluster(), request.GetNamespace(), request.GetFilter()},
		selects: func(w *plimsollv1.Workload) bool {
			return request.GetNamespace() == "" || request.GetNamespace() == w.GetNamespace()
		},
		nameOnly: func(w *plimsollv1.Workload) *plimsollv1.Workload {
			return &plimsollv1.Workload{Cluster: w.GetCluster(), Namespace: w.GetNamespace(), Kind: w.GetKind(), Name: w.GetName()}
		},
		event: func(e watchEvent, item *plimsollv1.Workload) *plimsollv1.WatchWorkloadsResponse {
			return &plimsollv1.WatchWorkloadsResponse{Type: e.what, Workload: item, ResumeToken: e.token, Reason: e.reason, Unreachable: e.unreachable}
		},
	}
	return w.run(stream.Context())
}

// WatchObjects implements [plimsollv1.ObjectServiceServer].
func (s *objectService) WatchObjects(request *plimsollv1.WatchObjectsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchObjectsResponse]) error {
	compiled, err := lists.ObjectFilters.Compile(request.GetFilter())
	if err != nil {
		return err
	}
	if err := s.registered(request.GetCluster()); err != nil {
		return err
	}
	w := watching[*plimsollv1.ObjectState, *plimsollv1.WatchObjectsResponse]{
		core: s.core, feed: s.feed, filter: compiled, token: request.GetResumeToken(), send: sending(stream), member: request.GetCluster(),
		needs: auth.Access{Verb: verbList, Resource: resourceObjects, Namespace: request.GetNamespace()},
		query: []string{resourceObjects, request.GetCluster(), request.GetController(), request.GetNamespace(), request.GetFilter()},
		selects: func(o *plimsollv1.ObjectState) bool {
			return (request.GetNamespace() == "" || request.GetNamespace() == o.GetKey().GetNamespace()) &&
				(request.GetController() == "" || request.GetController() == o.GetKey().GetController())
		},
		nameOnly: func(o *plimsollv1.ObjectState) *plimsollv1.ObjectState {
			return &plimsollv1.ObjectState{Key: o.GetKey()}
		},
		event: func(e watchEvent, item *plimsollv1.ObjectState) *plimsollv1.WatchObjectsResponse {
			return &plimsollv1.WatchObjectsResponse{Type: e.what, Object: item, ResumeToken: e.token, Reason: e.reason, Unreachable: e.unreachable}
		},
	}
	return w.run(stream.Context())
}

// registered is NOT_FOUND for a member that is not, and UNAVAILABLE while that is not known; "" stands for all members.
func (c *core) registered(member string) error {
	if member == "" {
		return c.knowsMembers()
	}
	_, err := c.member(member)
	return err
}

// sending returns what sends messages, or ends when the watch does: who reads nothing must not keep it.
func sending(stream grpc.ServerStream) func(context.Context, []proto.Message) error {
	return func(ctx context.Context, messages []proto.Message) error {
		sent := make(chan error, 1)
		go func() {
			for _, message := range messages {
				if err := stream.SendMsg(message); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		select {
		case err := <-sent:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// newClusterFeed follows all members.
func newClusterFeed(s *clusterService) *feed[*plimsollv1.Cluster] {
	return newFeed(s.core, func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} },
		func(ctx context.Context, member string, failed *failures) ([]*plimsollv1.Cluster, string, bool) {
			found, err := s.part(ctx, member, failed)
			if err != nil {
				return nil, unread, true
			}
			return found.items, found.gap, false
		})
}

// versionHere reports when members of this replica change. Other replicas are asked again and again.
func (c *core) versionHere(of interface{ Version(member string) uint64 }) func(member string) (uint64, bool) {
	return func(member string) (uint64, bool) {
		if !c.ownership.Mine(member) {
			return 0, false
		}
		return of.Version(member), true
	}
}

// unread is why nothing is known about a member that could not be read.
const unread = "it cannot be read"

// all reads everything of a member. blind: what was there before may still be, for the reason in gap.
func (l *ownerListing[T]) all(ctx context.Context, member string, failed *failures) (items []T, gap string, blind bool) {
	l.failed = failed
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		found, err := l.ofOwner(ctx, member, maxScan)
		if err != nil {
			return items, unread, true
		}
		items = append(items, found.items...)
		if found.gap != "" {
			gap = found.gap
		}
		switch {
		case found.blind || !found.more:
			return items, gap, found.blind
		case found.reached != nil:
			l.after = found.reached
		default:
			l.after = l.nameOf(found.items[len(found.items)-1])
		}
	}
}
