package api

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

type workloadService struct {
	plimsollv1.UnimplementedWorkloadServiceServer
	*core
}

// ListWorkloads implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) ListWorkloads(ctx context.Context, request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	list := workloadList{workloadService: s, cluster: request.GetCluster(), namespace: request.GetNamespace()}
	var err error
	if list.after, err = decodePosition(request.GetPageToken(), 4, list.filters(list.cluster)...); err != nil {
		return nil, err
	}
	needs := Access{Verb: verbList, Resource: resourceWorkloads, Namespace: list.namespace}
	members, err := list.candidates(ctx, needs)
	if err != nil {
		return nil, err
	}
	found, err := gather(ctx, members, pageSize(request.GetPageSize()), list.part)
	if err != nil {
		return nil, err
	}
	if members.denied() {
		return nil, denied(identityOf(ctx), needs)
	}
	answer := &plimsollv1.ListWorkloadsResponse{Workloads: found.items, AsOf: found.moment(), Unreachable: found.unreachable}
	switch {
	case found.skipped != "":
		answer.NextPageToken = encodePosition(position{found.skipped, afterAll, "", ""}, list.filters(list.cluster)...)
	case found.more:
		last := found.items[len(found.items)-1]
		answer.NextPageToken = encodePosition(positionOf(last), list.filters(list.cluster)...)
	}
	return answer, nil
}

// workloadList is one call of ListWorkloads.
type workloadList struct {
	*workloadService
	cluster, namespace string
	after              position // member, namespace, kind, name; nil: from the start
	failed             failures
}

// filters of the list, for its page tokens.
func (l *workloadList) filters(cluster string) []string {
	return []string{resourceWorkloads, cluster, l.namespace}
}

func (l *workloadList) candidates(ctx context.Context, needs Access) (*candidates, error) {
	if l.cluster != "" {
		if _, err := l.member(l.cluster); err != nil {
			return nil, err
		}
		return one(l.cluster), nil
	}
	from := ""
	if l.after != nil {
		from = l.after[0]
	}
	return newCandidates(ctx, l.gate, needs, l.names(), from)
}

// part is what one member contributes: its workloads as its owner sees them, or the reason why they are missing.
func (l *workloadList) part(ctx context.Context, member string, limit int) (part[*plimsollv1.Workload], error) {
	known, ok := l.members.Status(member)
	if !ok {
		return part[*plimsollv1.Workload]{}, nil // it has just gone
	}
	var found part[*plimsollv1.Workload]
	err := l.ask(ctx, member, question{
		failed: &l.failed,
		local: func() error {
			found = l.local(known, limit)
			return nil
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			found, err = l.remote(ctx, conn, member, limit)
			return err
		},
	})
	if err != nil {
		if found.gap, err = gapOf(err); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (l *workloadList) local(known clusters.Status, limit int) part[*plimsollv1.Workload] {
	views := l.workloads.List(known.Name, l.namespace)
	if l.after != nil && l.after[0] == known.Name {
		behind := spot.WorkloadKey{Kind: l.after[2], NamespacedName: types.NamespacedName{Namespace: l.after[1], Name: l.after[3]}}
		views = views[sort.Search(len(views), func(i int) bool { return views[i].Compare(behind) > 0 }):]
	}
	found, now := part[*plimsollv1.Workload]{more: len(views) > limit, gap: l.gapOfMember(known)}, time.Now()
	for i := range views[:min(limit, len(views))] {
		found.items = append(found.items, workloadMessage(&views[i], now))
		found.asOf = older(found.asOf, views[i].Planned)
	}
	if known.State == clusters.StateUnreachable {
		found.asOf = older(found.asOf, known.Since)
	}
	return found
}

func (l *workloadList) remote(ctx context.Context, conn grpc.ClientConnInterface, member string, limit int) (part[*plimsollv1.Workload], error) {
	request := &plimsollv1.ListWorkloadsRequest{Cluster: member, Namespace: l.namespace, PageSize: count(limit)}
	if l.after != nil && l.after[0] == member {
		request.PageToken = encodePosition(l.after, l.filters(member)...)
	}
	answer, err := plimsollv1.NewWorkloadServiceClient(conn).ListWorkloads(ctx, request)
	if err != nil {
		return part[*plimsollv1.Workload]{}, err
	}
	items := answer.GetWorkloads()
	found := part[*plimsollv1.Workload]{items: items, more: len(items) > 0 && answer.GetNextPageToken() != "", asOf: answer.GetAsOf().AsTime()}
	for _, gap := range answer.GetUnreachable() {
		found.gap = gap.GetReason()
	}
	return found, nil
}

// GetWorkload implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) GetWorkload(ctx context.Context, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	known, err := s.member(request.GetCluster())
	if err != nil {
		return nil, err
	}
	var answer *plimsollv1.GetWorkloadResponse
	err = s.ask(ctx, known.Name, question{
		local: func() (err error) {
			answer, err = s.get(known, request)
			return err
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			answer, err = plimsollv1.NewWorkloadServiceClient(conn).GetWorkload(ctx, request, grpc.MaxCallRecvMsgSize(maxAnswer))
			return err
		},
	})
	return answer, err
}

func (s *workloadService) get(known clusters.Status, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	kind := s.kindOf(request.GetKind())
	view, ok := s.workloads.Get(known.Name, kind, request.GetNamespace(), request.GetName())
	if !ok {
		return nil, s.missing(known, kind, request.GetNamespace(), request.GetName())
	}
	found := s.aboutOne(known, view.Planned)
	return &plimsollv1.GetWorkloadResponse{Workload: workloadMessage(&view, time.Now()), AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// missing is why a workload cannot be shown.
func (s *workloadService) missing(known clusters.Status, kind, namespace, name string) error {
	if reason := s.blindTo(known, kind); reason != "" {
		return &unreachable{known.Name, reason}
	}
	return status.Errorf(codes.NotFound, "member %q: no %s %s/%s is enabled for spot placement there", known.Name, kind, namespace, name)
}

// aboutOne says how old an answer about one workload is, and whether it comes from a copy that may be old.
func (s *workloadService) aboutOne(known clusters.Status, planned time.Time) page[*plimsollv1.Workload] {
	found := page[*plimsollv1.Workload]{asOf: time.Now()}
	shown := part[*plimsollv1.Workload]{asOf: planned}
	if known.State != clusters.StateReady && known.State != clusters.StateDegraded {
		shown.gap = s.gapOfMember(known)
		shown.asOf = older(shown.asOf, known.Since)
	}
	found.add(known.Name, &shown, 1)
	return found
}

// RequeueWorkload implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) RequeueWorkload(ctx context.Context, request *plimsollv1.RequeueWorkloadRequest) (*plimsollv1.RequeueWorkloadResponse, error) {
	known, err := s.member(request.GetCluster())
	if err != nil {
		return nil, err
	}
	answer := &plimsollv1.RequeueWorkloadResponse{}
	err = s.ask(ctx, known.Name, question{
		order: true,
		local: func() (err error) {
			controller, ok := s.workloads.Controller(s.kindOf(request.GetKind()))
			if !ok {
				return status.Errorf(codes.NotFound, "no controller places workloads of kind %s", request.GetKind())
			}
			answer.Receipt, err = s.requeue(ctx, resourceWorkloads, reconcile.Key{
				Controller: controller, Member: known.Name,
				NamespacedName: types.NamespacedName{Namespace: request.GetNamespace(), Name: request.GetName()},
			})
			return err
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			answer, err = plimsollv1.NewWorkloadServiceClient(conn).RequeueWorkload(ctx, request)
			return err
		},
	})
	return answer, err
}

// placedAs returns the kind of workloads that a cached kind holds; false: it holds none. ReplicaSets are a part of Deployments
// as well, and counted with these.
func (c *core) placedAs(cached string) (spot.PlacedKind, bool) {
	for _, kind := range c.workloads.Placed() {
		if kind.Cached == cached {
			return kind, true
		}
	}
	return spot.PlacedKind{}, false
}

// kindOf is how a kind is written that a caller may have written in other letters.
func (c *core) kindOf(asked string) string {
	for _, kind := range c.workloads.Placed() {
		if strings.EqualFold(kind.Name, asked) {
			return kind.Name
		}
	}
	return asked
}

func (c *core) anyWorkloadKind(known clusters.Status) bool {
	return slices.ContainsFunc(known.Kinds, func(kind clusters.KindStatus) bool {
		_, placed := c.placedAs(kind.Kind)
		return kind.Engaged && placed
	})
}

// blindTo says why nobody can tell what workloads of a kind a member has; "": the kind is cached, or placed nowhere.
func (c *core) blindTo(known clusters.Status, kind string) string {
	placed := slices.IndexFunc(c.workloads.Placed(), func(one spot.PlacedKind) bool { return one.Name == kind })
	if placed < 0 {
		return ""
	}
	cached := c.workloads.Placed()[placed].Cached
	for _, one := range known.Kinds {
		if one.Kind == cached && one.Engaged {
			return ""
		}
	}
	if gap := c.gapOfMember(known); gap != "" {
		return gap
	}
	return cached + " is not cached"
}

// gapOfMember says why the workloads of a member are not all listed, or may be old; "": neither. What is optional and not
// there is no gap.
func (c *core) gapOfMember(known clusters.Status) string {
	switch known.State {
	case clusters.StateReady:
		return ""
	case clusters.StateDegraded:
		var missing []string
		for _, kind := range known.Kinds {
			placed, ok := c.placedAs(kind.Kind)
			absent := placed.Optional && kind.Reason == clusters.ReasonKindNotFound
			if ok && !kind.Engaged && !absent {
				missing = append(missing, fmt.Sprintf("%s is not cached: %s", kind.Kind, kind.Reason))
			}
		}
		return strings.Join(missing, "; ")
	}
	return fmt.Sprintf("the member is %s (%s): %s", known.State, known.Reason, known.Message)
}

// older returns the earlier of two times; a zero time is none.
func older(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
