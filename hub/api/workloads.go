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
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

type workloadService struct {
	plimsollv1.UnimplementedWorkloadServiceServer
	*core
	feed *feed[*plimsollv1.Workload]
}

// ListWorkloads implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) ListWorkloads(ctx context.Context, request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	found, next, err := s.workloadList(request, request.GetCluster(), request.GetNamespace()).list(ctx, lists.WorkloadFilters)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListWorkloadsResponse{Workloads: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// workloadList lists workloads of a member in a namespace; empty: of all of them.
func (s *workloadService) workloadList(asked listRequest, cluster, namespace string) *ownerListing[*plimsollv1.Workload] {
	list := &ownerListing[*plimsollv1.Workload]{}
	list.listing = listing[*plimsollv1.Workload]{
		core: s.core, asked: asked, cluster: cluster, what: []string{resourceWorkloads, namespace},
		needs: auth.Access{Verb: verbList, Resource: resourceWorkloads, Namespace: namespace}, length: 4, nameOf: nameOfWorkload,
	}
	list.scan = func(member string, behind lists.Position, limit int) ([]entry[*plimsollv1.Workload], uint64, bool) {
		views, now := s.workloads.List(member, namespace), time.Now()
		cost := uint64(viewCost * len(views))
		if behind != nil {
			last := policy.WorkloadKey{Kind: behind[2], NamespacedName: types.NamespacedName{Namespace: behind[1], Name: behind[3]}}
			views = views[sort.Search(len(views), func(i int) bool { return views[i].Compare(last) > 0 }):]
		}
		found := make([]entry[*plimsollv1.Workload], 0, min(limit, len(views)))
		for i := range views[:min(limit, len(views))] {
			found = append(found, entry[*plimsollv1.Workload]{workloadMessage(&views[i], now), views[i].Planned})
		}
		return found, cost + uint64(itemCost*len(found)), len(views) > limit
	}
	list.gap = func(known clusters.Status) (reason string, since time.Time) {
		if known.State == clusters.StateUnreachable {
			since = known.Since
		}
		return s.gapOfMember(known), since
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, request pageRequest) (listed[*plimsollv1.Workload], error) {
		answer, err := plimsollv1.NewWorkloadServiceClient(conn).ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{
			Cluster: request.cluster, Namespace: namespace,
			PageSize: request.size, PageToken: request.token, Filter: request.filter, OrderBy: request.orderBy,
		})
		return listed[*plimsollv1.Workload]{answer.GetWorkloads(), answer}, err
	}
	return list
}

// GetWorkload implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) GetWorkload(ctx context.Context, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	known, err := s.member(request.GetCluster())
	if err != nil {
		return nil, err
	}
	pods, err := s.podsOf(ctx, request)
	if err != nil {
		return nil, err
	}
	answer, err := askOwner(ctx, s.core, known.Name, question[*plimsollv1.GetWorkloadResponse]{
		local: func() (*plimsollv1.GetWorkloadResponse, error) {
			return s.get(ctx, known, request)
		},
		remote: pass(plimsollv1.NewWorkloadServiceClient, plimsollv1.WorkloadServiceClient.GetWorkload, pods.ofOwner(), grpc.MaxCallRecvMsgSize(maxAnswer)),
	})
	if err != nil {
		return nil, err
	}
	pods.cut(answer)
	return answer, nil
}

func (s *workloadService) get(ctx context.Context, known clusters.Status, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	kind := s.kindOf(request.GetKind())
	view, ok := s.workloads.Get(known.Name, kind, request.GetNamespace(), request.GetName())
	if !ok {
		return nil, s.missing(ctx, known, kind, request.GetNamespace(), request.GetName())
	}
	found := s.aboutOne(known, view.Planned)
	return &plimsollv1.GetWorkloadResponse{Workload: workloadMessage(&view, time.Now()), AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// reasonNotEnabled is that of a workload that exists and is not placed. Its details name the label, and on which of the workload and
// its namespace it is missing.
const reasonNotEnabled = "WORKLOAD_NOT_ENABLED"

// missing is why a workload cannot be shown: nobody sees its member, there is none, or it is not enabled and which label is missing.
func (s *workloadService) missing(ctx context.Context, known clusters.Status, kind, namespace, name string) error {
	if reason := s.blindTo(known, kind); reason != "" {
		return &unreachable{known.Name, reason}
	}
	key := policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	why, err := s.workloads.WhyNotEnabled(ctx, known.Name, key)
	switch {
	case spot.NoWorkload(err):
		return status.Errorf(codes.NotFound, "member %q: there is no %s %s/%s", known.Name, kind, namespace, name)
	case err != nil: // what the member answered is not for callers
		return status.Errorf(codes.NotFound, "member %q: no %s %s/%s is enabled for spot placement", known.Name, kind, namespace, name)
	}
	return apierror.WithReason(status.Newf(codes.NotFound, "member %q: %s %s/%s is not enabled for spot placement: %s", known.Name, kind, namespace, name, why.Reason),
		reasonNotEnabled, missingLabels(why)).Err()
}

// missingLabels are the details for programs: the label, and what does not have it.
func missingLabels(why spot.NotEnabled) map[string]string {
	var missing []string
	for _, object := range []struct {
		name  string
		lacks bool
	}{{"workload", why.Workload}, {"namespace", why.Namespace}} {
		if object.lacks {
			missing = append(missing, object.name)
		}
	}
	return map[string]string{"label": why.Label, "missing_on": strings.Join(missing, ",")}
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
	return askOwner(ctx, s.core, known.Name, question[*plimsollv1.RequeueWorkloadResponse]{
		order: true,
		local: func() (*plimsollv1.RequeueWorkloadResponse, error) {
			controller, ok := s.workloads.Controller(s.kindOf(request.GetKind()))
			if !ok {
				return nil, status.Errorf(codes.NotFound, "no controller places kind %s", request.GetKind())
			}
			operation, err := s.requeue(ctx, resourceWorkloads, reconcile.Key{
				Controller: controller, Member: known.Name,
				NamespacedName: types.NamespacedName{Namespace: request.GetNamespace(), Name: request.GetName()},
			}, request.GetForce())
			return &plimsollv1.RequeueWorkloadResponse{Operation: operation}, err
		},
		remote: pass(plimsollv1.NewWorkloadServiceClient, plimsollv1.WorkloadServiceClient.RequeueWorkload, request),
	})
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

// blindTo says why it is not known what workloads of a kind a member has; "": the kind is cached, or placed nowhere.
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
