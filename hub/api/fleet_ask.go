package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	planner "github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// askPlanner puts a question to the replica that plans, which owns the members: here, or by way of its peer address.
func askPlanner[T any](ctx context.Context, s *fleetService, p *fleetv1.FleetPlacement, q question[T]) (T, error) {
	var names []string
	for i := range p.Status.Members {
		if _, registered := s.members.Status(p.Status.Members[i].Name); registered {
			names = append(names, p.Status.Members[i].Name)
		}
	}
	if len(names) == 0 {
		names = s.names()
	}
	if len(names) == 0 {
		return q.local()
	}
	answer, err := askOwner(ctx, s.core, slices.Min(names), q)
	if nobody := (*unreachable)(nil); errors.As(err, &nobody) { // which member it was asked by way of says nothing, and the caller may not see it
		err = apierror.WithReason(status.New(codes.Unavailable, "the replica that plans FleetPlacements does not answer"), "PLANNER_UNAVAILABLE", nil).Err()
	}
	return answer, err
}

// reasonNotPlanned is of FleetPlacements that no round has planned.
const reasonNotPlanned = "NOT_PLANNED"

// errNotPlanned is why a FleetPlacement that is there cannot be explained.
func errNotPlanned(p *fleetv1.FleetPlacement) error {
	return apierror.WithReason(status.Newf(codes.Unavailable, "FleetPlacement %q of namespace %q has not been planned yet", p.Name, p.Namespace), reasonNotPlanned, nil).Err()
}

// ExplainFleetPlacement implements [plimsollv1.FleetServiceServer].
func (s *fleetService) ExplainFleetPlacement(ctx context.Context, request *plimsollv1.ExplainFleetPlacementRequest) (*plimsollv1.ExplainFleetPlacementResponse, error) {
	p, err := s.placement(request.GetNamespace(), request.GetName())
	if err != nil {
		return nil, err
	}
	answer, err := askPlanner(ctx, s, p, question[*plimsollv1.ExplainFleetPlacementResponse]{
		local: func() (*plimsollv1.ExplainFleetPlacementResponse, error) {
			var found placing.Explanation
			var ok bool
			if err := s.questions.Ask(ctx, payer(ctx), func() { found, ok = s.fleet.Explain(p.Namespace, p.Name) }); err != nil {
				return nil, err
			}
			if !ok {
				return nil, errNotPlanned(p)
			}
			return explanationMessage(p, &found), nil
		},
		remote: pass(plimsollv1.NewFleetServiceClient, plimsollv1.FleetServiceClient.ExplainFleetPlacement, request),
	})
	if err != nil {
		return nil, err
	}
	return answer, s.hideInExplanation(ctx, answer)
}

func explanationMessage(p *fleetv1.FleetPlacement, e *placing.Explanation) *plimsollv1.ExplainFleetPlacementResponse {
	answer := &plimsollv1.ExplainFleetPlacementResponse{Placement: fleetPlacementMessage(p), Summary: e.Summary, AsOf: timestamppb.New(e.At)}
	if e.Stopped != "" {
		answer.Summary = []string{"There is no plan: " + e.Stopped}
		return answer
	}
	for i := range e.Members {
		w := &e.Members[i]
		m := &plimsollv1.FleetMemberExplanation{
			Name: w.Member, WhyMember: w.Place, WhySpot: w.Capacity[planner.Spot], WhyOnDemand: w.Capacity[planner.OnDemand],
			Spot: supplyMessage(&w.Supply[planner.Spot]), OnDemand: supplyMessage(&w.Supply[planner.OnDemand]),
		}
		for _, o := range w.Obstacles {
			m.WouldChange = append(m.WouldChange, &plimsollv1.FleetObstacle{Obstacle: o.Is, Change: o.Change, Spot: count(o.Spot), OnDemand: count(o.OnDemand)})
		}
		answer.Members = append(answer.Members, m)
	}
	answer.Moves, answer.Later = plannedMoves(e.Result.Moves), plannedMoves(e.Result.Later)
	answer.Risk = e.Result.Risk
	if !e.Result.Recheck.IsZero() {
		answer.RecheckAt = timestamppb.New(e.Result.Recheck)
	}
	return answer
}

func supplyMessage(s *planner.Supply) *plimsollv1.FleetSupply {
	shown := &plimsollv1.FleetSupply{DrySince: instant(s.DrySince), TryAt: instant(s.TryAt), Price: s.Price, Start: durationpb.New(s.Start)}
	if s.Life > 0 {
		shown.Life = durationpb.New(s.Life)
	}
	return shown
}

func instant(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

func plannedMoves(moves []planner.Move) (shown []*plimsollv1.FleetMove) {
	for i := range moves {
		m := &moves[i]
		shown = append(shown, &plimsollv1.FleetMove{Member: m.Member, Capacity: capacityWords[m.Capacity.String()], By: int32(m.By), Reason: m.Reason})
	}
	return shown
}

// hideInExplanation leaves out members that the caller may not see.
func (s *fleetService) hideInExplanation(ctx context.Context, answer *plimsollv1.ExplainFleetPlacementResponse) error {
	var named []string
	for _, m := range answer.GetMembers() {
		named = append(named, m.GetName())
	}
	not, err := s.hiddenFrom(ctx, answer.GetPlacement(), named)
	if err != nil || len(not) == 0 {
		return err
	}
	answer.Placement = not.of(answer.GetPlacement())
	for i, text := range answer.GetSummary() {
		answer.Summary[i] = not.text(text)
	}
	answer.Members = slices.DeleteFunc(answer.GetMembers(), func(m *plimsollv1.FleetMemberExplanation) bool { return slices.Contains(not, m.GetName()) })
	for _, m := range answer.GetMembers() {
		m.WhyMember, m.WhySpot, m.WhyOnDemand = not.text(m.GetWhyMember()), not.text(m.GetWhySpot()), not.text(m.GetWhyOnDemand())
		for _, o := range m.GetWouldChange() {
			o.Obstacle, o.Change = not.text(o.GetObstacle()), not.text(o.GetChange())
		}
	}
	answer.Moves, answer.Later = not.moves(answer.GetMoves()), not.moves(answer.GetLater())
	return nil
}

// WhatIfFleetPlacement implements [plimsollv1.FleetServiceServer].
func (s *fleetService) WhatIfFleetPlacement(ctx context.Context, request *plimsollv1.WhatIfFleetPlacementRequest) (*plimsollv1.WhatIfFleetPlacementResponse, error) {
	p, err := s.placement(request.GetNamespace(), request.GetName())
	if err != nil {
		return nil, err
	}
	change, err := anotherPolicy(request)
	if err != nil {
		return nil, err
	}
	if err := s.maySelect(ctx, p, request); err != nil {
		return nil, err
	}
	answer, err := askPlanner(ctx, s, p, question[*plimsollv1.WhatIfFleetPlacementResponse]{
		local: func() (*plimsollv1.WhatIfFleetPlacementResponse, error) {
			var found placing.Supposition
			var ok bool
			if err := s.questions.Ask(ctx, payer(ctx), func() {
				found, ok = s.fleet.Suppose(p.Namespace, p.Name, placing.Hypothesis{Change: change, IgnoreWindow: request.GetIgnoreWindow()})
			}); err != nil {
				return nil, err
			}
			if !ok {
				return nil, errNotPlanned(p)
			}
			return suppositionMessage(p, &found), nil
		},
		remote: pass(plimsollv1.NewFleetServiceClient, plimsollv1.FleetServiceClient.WhatIfFleetPlacement, request),
	})
	if err != nil {
		return nil, err
	}
	return answer, s.hideInSupposition(ctx, answer)
}

// maySelect refuses a policy that chooses members by their labels to callers who may not see all members: the totals, and what is
// left for the members that they see, would show which labels the others have.
func (s *fleetService) maySelect(ctx context.Context, p *fleetv1.FleetPlacement, request *plimsollv1.WhatIfFleetPlacementRequest) error {
	domain := request.GetSpread().GetDomainLabel()
	if len(request.GetTiers()) == 0 && len(request.GetPrices()) == 0 && (domain == "" || domain == p.Spec.Spread.DomainLabel) {
		return nil
	}
	not, err := s.hiddenFrom(ctx, fleetPlacementMessage(p), nil)
	if err != nil || len(not) == 0 {
		return err
	}
	return apierror.WithReason(status.Newf(codes.PermissionDenied, "user %q may not use tiers, prices and spread.domain_label, which choose members by their labels: "+
		"an RBAC rule of the hub cluster must grant %s on %s.%s in namespace %s of all members", identityOf(ctx).User, verbGet, resourceWorkloads, auth.Group, p.Namespace),
		"ACCESS_DENIED", map[string]string{"verb": verbGet, "resource": resourceWorkloads, "namespace": p.Namespace}).Err()
}

// anotherPolicy is what a request changes of a spec.
func anotherPolicy(request *plimsollv1.WhatIfFleetPlacementRequest) (func(spec *fleetv1.FleetPlacementSpec), error) {
	tiers, err := tiersOf(request.GetTiers())
	if err != nil {
		return nil, err
	}
	prices, err := pricesOf(request.GetPrices())
	if err != nil {
		return nil, err
	}
	return func(spec *fleetv1.FleetPlacementSpec) {
		if request.Replicas != nil {
			spec.Replicas = new(request.GetReplicas())
		}
		if request.MinOnDemand != nil {
			spec.Capacity.MinOnDemand = request.GetMinOnDemand()
		}
		if request.SpotPercentage != nil {
			spec.Capacity.SpotPercentage = new(request.GetSpotPercentage())
		}
		if request.ExtraSpot != nil {
			spec.Capacity.ExtraSpot = request.GetExtraSpot()
		}
		if tiers != nil {
			spec.Clusters = tiers
		}
		if prices != nil {
			spec.Prices = prices
		}
		if s := request.GetSpread(); s != nil {
			spec.Spread = fleetv1.Spread{DomainLabel: s.GetDomainLabel(), MaxPercentPerMember: unlessZero(s.GetMaxPercentPerMember()), MaxPercentPerDomain: unlessZero(s.GetMaxPercentPerDomain())}
		}
	}, nil
}

func unlessZero(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func tiersOf(asked []*plimsollv1.FleetTier) (tiers []fleetv1.Tier, err error) {
	for t, tier := range asked {
		var made fleetv1.Tier
		for i, c := range tier.GetMembers() {
			choice := fleetv1.Choice{Weight: c.GetWeight(), Min: c.GetMin(), Max: unlessZero(c.GetMax())}
			if choice.Selector, err = selectorIn(fmt.Sprintf("tiers[%d].members[%d].selector", t, i), c.GetSelector()); err != nil {
				return nil, err
			}
			if c.GetMax() > 0 && c.GetMin() > c.GetMax() {
				return nil, apierror.InvalidField(fmt.Sprintf("tiers[%d].members[%d].min", t, i), "min.max", "must not be above max")
			}
			made.Members = append(made.Members, choice)
		}
		tiers = append(tiers, made)
	}
	return tiers, nil
}

func pricesOf(asked []*plimsollv1.FleetPrice) (prices []fleetv1.Price, err error) {
	for i, p := range asked {
		price := fleetv1.Price{Spot: fleetv1.Decimal(p.GetSpot()), OnDemand: fleetv1.Decimal(p.GetOnDemand())}
		if price.Selector, err = selectorIn(fmt.Sprintf("prices[%d].selector", i), p.GetSelector()); err != nil {
			return nil, err
		}
		prices = append(prices, price)
	}
	return prices, nil
}

func selectorIn(field, text string) (metav1.LabelSelector, error) {
	if text == "" {
		return metav1.LabelSelector{}, nil
	}
	parsed, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return metav1.LabelSelector{}, apierror.InvalidField(field, "selector.invalid", "must be a label selector such as region=eu,provider!=b")
	}
	return *parsed, nil
}

func suppositionMessage(p *fleetv1.FleetPlacement, found *placing.Supposition) *plimsollv1.WhatIfFleetPlacementResponse {
	r := &found.Result
	answer := &plimsollv1.WhatIfFleetPlacementResponse{
		Now: fleetPlacementMessage(p), Insurance: count(r.Insurance), Unplaced: count(r.Unplaced), FirstMoves: plannedMoves(r.Moves), Later: count(len(r.Later)),
		CostNow: found.CostNow, CostThen: found.Cost, AsOf: timestamppb.New(found.At),
	}
	if found.Stopped != "" {
		answer.Conditions = []*plimsollv1.Condition{{Type: reconcile.ConditionStalled, Status: "True", Message: "there would be no plan: " + found.Stopped}}
	}
	now := map[string]*plimsollv1.FleetMember{}
	for _, m := range answer.GetNow().GetMembers() {
		now[m.GetName()] = m
	}
	for i := range r.Members {
		w := &r.Members[i]
		then := &plimsollv1.FleetMember{
			Name: w.Member, Reason: w.Reason, State: now[w.Member].GetState(), Tier: now[w.Member].GetTier(),
			Spot:     &plimsollv1.FleetCounts{Wanted: count(w.Spot), Set: count(w.SpotNow), Running: now[w.Member].GetSpot().GetRunning(), Ready: now[w.Member].GetSpot().GetReady()},
			OnDemand: &plimsollv1.FleetCounts{Wanted: count(w.OnDemand), Set: count(w.OnDemandNow), Running: now[w.Member].GetOnDemand().GetRunning(), Ready: now[w.Member].GetOnDemand().GetReady()},
		}
		answer.Then = append(answer.Then, then)
		answer.Spot += then.GetSpot().GetWanted()
		answer.OnDemand += then.GetOnDemand().GetWanted()
	}
	for _, c := range slices.Concat(found.Problems, r.Conditions) {
		answer.Conditions = append(answer.Conditions, &plimsollv1.Condition{Type: string(c.Type), Message: c.Message})
	}
	return answer
}

// hideInSupposition leaves out members that the caller may not see.
func (s *fleetService) hideInSupposition(ctx context.Context, answer *plimsollv1.WhatIfFleetPlacementResponse) error {
	var named []string
	for _, m := range answer.GetThen() {
		named = append(named, m.GetName())
	}
	not, err := s.hiddenFrom(ctx, answer.GetNow(), named)
	if err != nil || len(not) == 0 {
		return err
	}
	answer.Now = not.of(answer.GetNow())
	answer.Then = slices.DeleteFunc(answer.GetThen(), func(m *plimsollv1.FleetMember) bool { return slices.Contains(not, m.GetName()) })
	for _, m := range answer.GetThen() {
		m.Reason = not.text(m.GetReason())
	}
	for _, c := range answer.GetConditions() {
		c.Message = not.text(c.GetMessage())
	}
	answer.FirstMoves = not.moves(answer.GetFirstMoves())
	return nil
}
