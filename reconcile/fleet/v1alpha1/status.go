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
	// ReasonNobodyTakesPart: no member's workload takes part; the members' states say why.
	ReasonNobodyTakesPart = "NobodyTakesPart"
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

// FleetPlacementStatus says what there is of a FleetPlacement.
type FleetPlacementStatus struct {
	reconcile.Status `json:",inline"`

	// replicas is how many run or start, in members that are in reach or within the grace.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas of them are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector of the pods, for the scale subresource. It is that of the workload in the first member that has one.
	// +optional
	Selector string `json:"selector,omitempty"`
	// spot is those on spot capacity.
	// +optional
	Spot Counts `json:"spot,omitempty"`
	// onDemand is those on on-demand capacity.
	// +optional
	OnDemand Counts `json:"onDemand,omitempty"`
	// insurance is how many replicas of the plan are beyond those that are wanted.
	// +optional
	Insurance int32 `json:"insurance,omitempty"`
	// unplaced is how many replicas there is no place for.
	// +optional
	Unplaced int32 `json:"unplaced,omitempty"`
	// members are those of the tiers, in the order of the tiers, and then others that run some.
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`
	// lastMoves are the latest moves, the last one first; at most 10.
	// +listType=atomic
	// +optional
	LastMoves []Move `json:"lastMoves,omitempty"`
}

// Counts counts replicas of one capacity type.
type Counts struct {
	// wanted is how many the plan leads to.
	// +optional
	Wanted int32 `json:"wanted,omitempty"`
	// set is how many the member is told to have now.
	// +optional
	Set int32 `json:"set,omitempty"`
	// running is how many there are, ready or not.
	// +optional
	Running int32 `json:"running,omitempty"`
	// ready of them are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
}

// MemberState says whether a member takes part.
//
// +kubebuilder:validation:Enum=Placed;Moving;Unreachable;Lost;Out
type MemberState string

// States of a member.
const (
	// MemberPlaced: it runs what it is to run.
	MemberPlaced MemberState = "Placed"
	// MemberMoving: it does not yet.
	MemberMoving MemberState = "Moving"
	// MemberUnreachable: it is out of reach, and its replicas count until the grace is over.
	MemberUnreachable MemberState = "Unreachable"
	// MemberLost: it is out of reach for longer than the grace, and its replicas are made up for elsewhere.
	MemberLost MemberState = "Lost"
	// MemberOut: its workload takes no part; reason says why.
	MemberOut MemberState = "Out"
)

// MemberStatus says what there is of a FleetPlacement in one member.
type MemberStatus struct {
	// name of the member.
	Name string `json:"name"`
	// tier of the member, from 1; 0: it is in none.
	// +optional
	Tier int32 `json:"tier,omitempty"`
	// state says whether it takes part.
	State MemberState `json:"state"`
	// spot is its replicas on spot capacity.
	// +optional
	Spot Counts `json:"spot,omitempty"`
	// onDemand is those on on-demand capacity.
	// +optional
	OnDemand Counts `json:"onDemand,omitempty"`
	// spotHeld is how long its spot capacity was seen to hold, from which its lifetime is predicted.
	// +optional
	SpotHeld Held `json:"spotHeld,omitzero"`
	// reason says why it has as many as it has, or why it takes no part.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// Held is how long capacity was seen to hold since it was last taken back.
type Held struct {
	// since when it holds, while replicas run there. Times without any are left out of it.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// seconds for which it held, while none run there.
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
	// by is how many were started; stopped, where it is negative.
	By int32 `json:"by"`
	// reason says why.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// CommonStatus implements [reconcile.StatusObject].
func (p *FleetPlacement) CommonStatus() *reconcile.Status { return &p.Status.Status }
