package api

import (
	"context"
	"time"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// WhatIf implements [plimsollv1.WorkloadServiceServer].
func (s *workloadService) WhatIf(ctx context.Context, request *plimsollv1.WhatIfRequest) (*plimsollv1.WhatIfResponse, error) {
	known, err := s.member(request.GetCluster())
	if err != nil {
		return nil, err
	}
	return askOwner(ctx, s.core, known.Name, question[*plimsollv1.WhatIfResponse]{
		local: func() (*plimsollv1.WhatIfResponse, error) {
			return s.suppose(ctx, known, request)
		},
		remote: pass(plimsollv1.NewWorkloadServiceClient, plimsollv1.WorkloadServiceClient.WhatIf, request),
	})
}

func (s *workloadService) suppose(ctx context.Context, known clusters.Status, request *plimsollv1.WhatIfRequest) (*plimsollv1.WhatIfResponse, error) {
	now, kind := time.Now(), s.kindOf(request.GetKind())
	var found report.WhatIf
	var ok bool
	if err := s.questions.Ask(ctx, payer(ctx), func() {
		found, ok = s.workloads.Suppose(known.Name, kind, request.GetNamespace(), request.GetName(), hypothesisOf(request), now)
	}); err != nil {
		return nil, err
	}
	if !ok {
		return nil, s.missing(ctx, known, kind, request.GetNamespace(), request.GetName())
	}
	about := s.aboutOne(known, found.Now.Planned)
	answer := &plimsollv1.WhatIfResponse{
		Now: workloadMessage(&found.Now, now), Then: workloadMessage(&found.Then, now), Moves: count(found.Moves),
		AsOf: about.moment(), Unreachable: about.unreachable,
	}
	for i := range found.First {
		answer.FirstMoves = append(answer.FirstMoves, moveMessage(&found.First[i]))
	}
	return answer, nil
}

func hypothesisOf(request *plimsollv1.WhatIfRequest) report.Hypothesis {
	h := report.Hypothesis{
		Percentage: whole(request.SpotPercentage), MinOnDemand: whole(request.MinOnDemand), Replicas: whole(request.Replicas),
		IgnoreWindow: request.GetIgnoreWindow(),
	}
	for strategy, named := range strategies {
		if named == request.GetStrategy() {
			h.Strategy = strategy
		}
	}
	return h
}

func whole(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
