package spot

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// WorkloadView is what the API tells of one workload: the outcome of its last plan. It is a snapshot and may be kept.
type WorkloadView struct {
	Member string
	policy.WorkloadKey
	State plan.State
	// Reason says in one sentence what the state means, or what is waited for.
	Reason string
	// Policy is the policy in force, with the source of each value and the problems found.
	Policy policy.Policy
	// Replicas is what the workload's spec asks for.
	Replicas int
	// SpotWanted + OnDemandWanted = Replicas.
	SpotWanted, OnDemandWanted int
	// SpotActual and OnDemandActual count live pods by capacity type; Unassigned those of unknown type.
	SpotActual, OnDemandActual, Unassigned int
	// Pending counts live pods that are not ready.
	Pending int
	// Doomed and Released count pods that run and are no replicas any more.
	Doomed, Released int
	// Contradiction says which nodes are not what the workload's own template asks for, if that concerns its replicas.
	Contradiction plan.Contradiction
	// Unprotected says that no disruption budget keeps others from the floor.
	Unprotected bool
	// Skew says which topology spread constraint is not kept over both capacity types, where and why; empty: none.
	Skew string
	// Settings are those in force.
	Settings plan.Settings
	// Waits are what is waited for, the soonest to end first.
	Waits []plan.Wait
	// NextCheck is when the plan looks again without an event; zero: only on change or resync.
	NextCheck time.Time
	// Planned is when the plan was made.
	Planned time.Time
	// Pods are filled by Engine.Get only, ordered by name.
	Pods []PodView
	// Moves are the last moves, the newest first, and Explanation says in sentences what is wanted, there and done. Both are
	// filled by Engine.Get only.
	Moves       []Move
	Explanation []string
}

// PodView is one live pod of a workload.
type PodView struct {
	Name string
	// Slot is negative while the pod has none.
	Slot int
	// Wanted is the capacity type of the pod's slot, Actual that of its node or, before it is bound, of its selector.
	Wanted, Actual capacity.Type
	Node           string
	Phase          string
	Ready          bool
	Reason         string
	// Doomed: its node goes for certain, or has gone. Released: it has left its ReplicaSet.
	Doomed, Released bool
	// Waits is the kind of wait that keeps the pod from going; empty: none.
	Waits plan.WaitKind
}
