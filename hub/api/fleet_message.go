package api

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// fleetStates are the reasons of condition Ready in one word. The ones that stop it are those that the alert on them has.
var fleetStates = map[string]plimsollv1.FleetPlacementState{
	fleetv1.ReasonPlaced:            plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_PLACED,
	fleetv1.ReasonMoving:            plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_MOVING,
	fleetv1.ReasonWaiting:           plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_WAITING,
	fleetv1.ReasonIncomplete:        plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_INCOMPLETE,
	fleetv1.ReasonTargetNotFound:    plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	fleetv1.ReasonNoMemberTakesPart: plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	fleetv1.ReasonUnknownKind:       plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	fleetv1.ReasonConflict:          plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	fleetv1.ReasonInvalid:           plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	fleetv1.ReasonWriteFailed:       plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_STOPPED,
	reconcile.ReasonPaused:          plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_PAUSED,
	fleetv1.ReasonDeleting:          plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_DELETING,
}

var fleetMemberStates = map[fleetv1.MemberState]plimsollv1.FleetMemberState{
	fleetv1.MemberPlaced:      plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_PLACED,
	fleetv1.MemberMoving:      plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_MOVING,
	fleetv1.MemberUnreachable: plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_UNREACHABLE,
	fleetv1.MemberLost:        plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_LOST,
	fleetv1.MemberOut:         plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_OUT,
}

// capacityWords are the words of package fleet for capacity types.
var capacityWords = map[string]plimsollv1.CapacityType{
	"spot":      plimsollv1.CapacityType_CAPACITY_TYPE_SPOT,
	"on-demand": plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND,
}

func fleetPlacementMessage(p *fleetv1.FleetPlacement) *plimsollv1.FleetPlacement {
	shown := &plimsollv1.FleetPlacement{
		Namespace: p.Namespace, Name: p.Name,
		Target: &plimsollv1.FleetTarget{ApiVersion: p.Spec.TargetRef.APIVersion, Kind: p.Spec.TargetRef.Kind, Name: p.Spec.TargetRef.Name},
		State:  plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_PENDING,
		Policy: fleetPolicyMessage(&p.Spec), Running: p.Status.Replicas, Ready: p.Status.ReadyReplicas,
		Spot: fleetCountsMessage(&p.Status.Spot), OnDemand: fleetCountsMessage(&p.Status.OnDemand),
		Insurance: p.Status.Insurance, Unplaced: p.Status.Unplaced, CreatedAt: momentOf(p.CreationTimestamp),
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); ready != nil {
		shown.State, shown.Reason, shown.Message = fleetStates[ready.Reason], ready.Reason, ready.Message
	}
	for i := range p.Status.Members {
		m := &p.Status.Members[i]
		shown.Members = append(shown.Members, &plimsollv1.FleetMember{
			Name: m.Name, Tier: m.Tier, State: fleetMemberStates[m.State], Reason: m.Reason,
			Spot: fleetCountsMessage(&m.Spot), OnDemand: fleetCountsMessage(&m.OnDemand),
		})
	}
	for i := range p.Status.LastMoves {
		m := &p.Status.LastMoves[i]
		shown.LastMoves = append(shown.LastMoves, &plimsollv1.FleetMove{
			MovedAt: momentOf(m.Time), Member: m.Member, Capacity: capacityWords[m.Capacity], By: m.By, Reason: m.Reason,
		})
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		shown.Conditions = append(shown.Conditions, &plimsollv1.Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: momentOf(c.LastTransitionTime),
		})
	}
	return shown
}

func momentOf(at metav1.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at.Time)
}

func fleetCountsMessage(c *fleetv1.Counts) *plimsollv1.FleetCounts {
	return &plimsollv1.FleetCounts{Wanted: c.Wanted, Set: c.Set, Running: c.Running, Ready: c.Ready}
}

// Defaults of the definition, for objects that were written before it had them.
const (
	defaultFleetReplicas, defaultFleetSpot = 1, 100
	defaultFleetGrace, defaultFleetPause   = time.Minute, 10 * time.Second
)

func fleetPolicyMessage(spec *fleetv1.FleetPlacementSpec) *plimsollv1.FleetPolicy {
	shown := &plimsollv1.FleetPolicy{
		Replicas: orDefault(spec.Replicas, defaultFleetReplicas), MinOnDemand: spec.Capacity.MinOnDemand,
		SpotPercentage: orDefault(spec.Capacity.SpotPercentage, defaultFleetSpot), ExtraSpot: spec.Capacity.ExtraSpot,
		Tiers: fleetTierMessages(spec.Clusters), Prices: fleetPriceMessages(spec.Prices),
		Spread: &plimsollv1.FleetSpread{
			MaxPercentPerMember: orDefault(spec.Spread.MaxPercentPerMember, 0), DomainLabel: spec.Spread.DomainLabel,
			MaxPercentPerDomain: orDefault(spec.Spread.MaxPercentPerDomain, 0),
		},
		ClusterLossGrace: durationOf(spec.ClusterLossGrace, defaultFleetGrace),
		Pace:             &plimsollv1.FleetPace{MaxMoves: orDefault(spec.Pace.MaxMoves, 0), Cooldown: durationOf(spec.Pace.Cooldown, defaultFleetPause)},
		OnDelete:         string(cmp.Or(spec.OnDelete, fleetv1.Keep)), GatherInto: spec.GatherInto,
	}
	if w := spec.Pace.Window; w != nil {
		shown.Pace.WindowSchedule, shown.Pace.WindowTimeZone = w.Schedule, w.TimeZone
		shown.Pace.WindowDuration = durationpb.New(w.Duration.Duration.Duration)
	}
	return shown
}

func orDefault(value *int32, otherwise int32) int32 {
	if value == nil {
		return otherwise
	}
	return *value
}

func durationOf(d *fleetv1.Duration, otherwise time.Duration) *durationpb.Duration {
	if d == nil {
		return durationpb.New(otherwise)
	}
	return durationpb.New(d.Duration.Duration)
}

func fleetTierMessages(tiers []fleetv1.Tier) []*plimsollv1.FleetTier {
	var shown []*plimsollv1.FleetTier
	for t := range tiers {
		tier := &plimsollv1.FleetTier{}
		for i := range tiers[t].Members {
			c := &tiers[t].Members[i]
			tier.Members = append(tier.Members, &plimsollv1.FleetChoice{
				Selector: selectorText(&c.Selector), Weight: c.Weight, Min: c.Min, Max: orDefault(c.Max, 0),
			})
		}
		shown = append(shown, tier)
	}
	return shown
}

func fleetPriceMessages(prices []fleetv1.Price) []*plimsollv1.FleetPrice {
	var shown []*plimsollv1.FleetPrice
	for i := range prices {
		shown = append(shown, &plimsollv1.FleetPrice{
			Selector: selectorText(&prices[i].Selector), Spot: string(prices[i].Spot), OnDemand: string(prices[i].OnDemand),
		})
	}
	return shown
}

// selectorText writes a selector as kubectl takes it; empty: all.
func selectorText(s *metav1.LabelSelector) string {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(s)
}
