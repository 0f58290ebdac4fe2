package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Condition types beside Ready, Reconciling and Stalled, which follow kstatus.
const (
	// ConditionFeasible is false while something that the spec asks for cannot be had, with the reason; what is nearest to it is
	// done instead.
	ConditionFeasible = "Feasible"
)

// Reasons of Ready, and of Reconciling or Stalled beside it.
const (
	// ReasonPlaced: every replica is where the plan has it, and ready.
	ReasonPlaced = "Placed"
	// ReasonMoving: replicas are started or moved.
	ReasonMoving = "Moving"
	// ReasonWaiting: moves wait for others, for the pace or for the disruption window.
	ReasonWaiting = "Waiting"
	// ReasonIncomplete: fewer replicas than are wanted can be placed; see the condition Feasible.
	ReasonIncomplete = "Incomplete"
	// ReasonTargetNotFound: no member has the workload.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonNoMemberTakesPart: no member's workload takes part; the members' states say why.
	ReasonNoMemberTakesPart = "NoMemberTakesPart"
	// ReasonUnknownKind: the target's kind is none that spot placement knows.
	ReasonUnknownKind = "UnknownKind"
	// ReasonConflict: an older FleetPlacement has the same target.
	ReasonConflict = "Conflict"
	// ReasonInvalid: a value that the schema cannot check has no meaning.
	ReasonInvalid = "Invalid"
	// ReasonDeleting: it was deleted, and its members are handed back.
	ReasonDeleting = "Deleting"
	// ReasonWriteFailed: a member or the hub cluster refused a write.
	ReasonWriteFailed = "WriteFailed"
)

// ReasonFeasible is the reason of Feasible where all that is asked for can be had. Otherwise it is one of the condition types
// of package fleet, such as FloorAboveReplicas.
const ReasonFeasible = "AsAsked"

// FleetPlacementStatus is the observed state of a FleetPlacement.
type FleetPlacementStatus struct {
	reconcile.Status `json:",inline"`

	// replicas is the number of running and starting replicas, in members that are reachable or within clusterLossGrace.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of ready replicas.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector of the pods, for the scale subresource. It is that of the workload in the first member that has one.
	// +optional
	Selector string `json:"selector,omitempty"`
	// spot counts the replicas on spot capacity.
	// +optional
	Spot Counts `json:"spot,omitempty"`
	// onDemand counts the replicas on on-demand capacity.
	// +optional
	OnDemand Counts `json:"onDemand,omitempty"`
	// insurance is the number of planned replicas beyond spec.replicas.
	// +optional
	Insurance int32 `json:"insurance,omitempty"`
	// unplaced is the number of replicas that no member can run.
	// +optional
	Unplaced int32 `json:"unplaced,omitempty"`
	// members lists the members of the tiers, in the order of the tiers, and then other members that run replicas.
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`
	// lastMoves are the latest 10 moves, newest first.
	// +listType=atomic
	// +optional
	LastMoves []Move `json:"lastMoves,omitempty"`
}

// Counts counts replicas of one capacity type.
type Counts struct {
	// wanted is the planned number of replicas.
	// +optional
	Wanted int32 `json:"wanted,omitempty"`
	// set is the number of replicas that is set in the member now.
	// +optional
	Set int32 `json:"set,omitempty"`
	// running is the number of replicas, ready or not.
	// +optional
	Running int32 `json:"running,omitempty"`
	// ready is the number of ready replicas.
	// +optional
	Ready int32 `json:"ready,omitempty"`
}

// MemberState is the state of a member in a FleetPlacement.
//
// +kubebuilder:validation:Enum=Placed;Moving;Unreachable;Lost;Out
type MemberState string

// States of a member.
const (
	// MemberPlaced: it runs the planned replicas.
	MemberPlaced MemberState = "Placed"
	// MemberMoving: it does not run the planned replicas yet.
	MemberMoving MemberState = "Moving"
	// MemberUnreachable: it is unreachable, and its replicas count until clusterLossGrace ends.
	MemberUnreachable MemberState = "Unreachable"
	// MemberLost: it is unreachable for longer than clusterLossGrace, and other members replace its replicas.
	MemberLost MemberState = "Lost"
	// MemberOut: its workload is excluded; reason explains why.
	MemberOut MemberState = "Out"
)

// MemberStatus is the observed state of a FleetPlacement in one member.
type MemberStatus struct {
	// name of the member.
	Name string `json:"name"`
	// tier is the number of the member's tier, from 1. 0: it is in no tier.
	// +optional
	Tier int32 `json:"tier,omitempty"`
	// state of the member.
	State MemberState `json:"state"`
	// spot counts its replicas on spot capacity.
	// +optional
	Spot Counts `json:"spot,omitempty"`
	// onDemand counts the replicas on on-demand capacity.
	// +optional
	OnDemand Counts `json:"onDemand,omitempty"`
	// spotHeld is how long its spot capacity has lasted. The plan predicts its lifetime from it.
	// +optional
	SpotHeld Held `json:"spotHeld,omitzero"`
	// reason explains the number of its replicas, or why it is excluded.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// Held is how long capacity has lasted since the last interruption.
type Held struct {
	// since is when the running replicas' capacity began to last. Times without replicas do not count.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// seconds that it lasted, while no replica runs there.
	// +optional
	Seconds int64 `json:"seconds,omitempty"`
}

// Move is a change of the number of replicas in one member.
type Move struct {
	// time of the move.
	Time metav1.Time `json:"time"`
	// member in which replicas were started or stopped.
	Member string `json:"member"`
	// capacity is their capacity type: spot or on-demand.
	Capacity string `json:"capacity"`
	// by is the change of the number of replicas; negative: replicas were stopped.
	By int32 `json:"by"`
	// reason explains the move.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// CommonStatus implements [reconcile.StatusObject].
func (p *FleetPlacement) CommonStatus() *reconcile.Status { return &p.Status.Status }
