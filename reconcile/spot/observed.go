package spot

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State is one word for where a workload stands.
type State string

// States, as DESIGN and the API name them.
const (
	StateUnmanaged State = "Unmanaged" // enabled, but no value is set anywhere: counted, never moved
	StateConverged State = "Converged" // every replica is where it belongs
	StateMoving    State = "Moving"    // replicas are being moved or are starting
	StateWaiting   State = "Waiting"   // replicas should move and may not yet
	StateInvalid   State = "Invalid"   // a value cannot be used: nothing is moved, new pods go on-demand
	StateReadOnly  State = "ReadOnly"  // replicas should move, and the hub is configured to move nothing
)

// MoveLimit is how many replicas of a workload may be on the move at a time. Use [ParseMoveLimit].
type MoveLimit struct {
	Percent int // of the replicas, rounded down; used when Count is 0
	Count   int
}

// ParseMoveLimit reads a number of replicas ("3") or a share of them ("10%").
func ParseMoveLimit(value string) (MoveLimit, error) {
	share, percent := strings.CutSuffix(value, "%")
	n, ok := parseNumber(share, maxSlot)
	if !ok || n == 0 || (percent && n > 100) {
		return MoveLimit{}, fmt.Errorf("max moves %q: want a number of replicas from 1, or 1%% to 100%% of them", shorten(value))
	}
	if percent {
		return MoveLimit{Percent: n}, nil
	}
	return MoveLimit{Count: n}, nil
}

// Of returns how many of n replicas may be on the move at a time; at least one.
func (l MoveLimit) Of(n int) int {
	if l.Count > 0 {
		return l.Count
	}
	return max(n*l.Percent/100, 1)
}

// Settings are the parts of the configuration that plans depend on.
type Settings struct {
	MaxMoves MoveLimit
	// Cooldown is the least time between two batches of moves of a workload.
	Cooldown time.Duration
	// ReadOnly plans nothing that writes.
	ReadOnly bool
}

// Observed is what is known of one workload and its pods. [Plan] changes nothing in it.
type Observed struct {
	// Ordinals is true for a StatefulSet, whose pods have slots by their names.
	Ordinals bool
	// Replicas that the workload's spec asks for.
	Replicas int
	// Owners are the controllers of the workload's pods: the StatefulSet itself, or every ReplicaSet of a Deployment that
	// wants replicas or still has pods.
	Owners []Owner
	// Pods of these owners, in any order; those of other owners are ignored.
	Pods []Pod
	// Rolling says that the workload's controller is not at rest with its spec: a generation that it has not observed, or
	// a rollout under way.
	Rolling bool
	// LastMove is when this process last evicted a pod of the workload; zero: never.
	LastMove time.Time
}

// Owner is one direct controller of pods.
type Owner struct {
	UID  types.UID
	Name string
	// Replicas that the owner's spec asks for.
	Replicas int
	// Start is the first ordinal of a StatefulSet.
	Start int
	// Accounting is what the owner's accounting knows beyond the pods; see [Accounting.Summary]. The zero value: nothing.
	Accounting Summary
}

// Summary is what an [Accounting] knows beyond the pods that the cache shows.
type Summary struct {
	// Reserved are the reservations whose pods were not seen yet, the oldest first.
	Reserved []Reservation
	// Unexplained is how many pods more were admitted lately than the owner wants: as many that the cache still shows are
	// gone, or were refused. While it is not 0, counts cannot be trusted.
	Unexplained int
}

// Reservation is a slot promised to a pod that was admitted and not seen yet.
type Reservation struct {
	ID       string
	Slot     int
	Capacity Capacity
	// Moved says that it replaces a pod that we evicted.
	Moved bool
	// At is when it was made.
	At time.Time
}

// PlanResult is what a workload needs now, and what to tell people about it.
type PlanResult struct {
	State State
	// Reason is a sentence that says why the state is what it is.
	Reason string
	// SpotWanted + OnDemandWanted = Replicas.
	SpotWanted, OnDemandWanted int
	// SpotActual, OnDemandActual and UnknownActual count pods that are alive by capacity type; Pending those of them that
	// are not ready.
	SpotActual, OnDemandActual, UnknownActual, Pending int
	// Stamps give pods their slots. They come before the evictions.
	Stamps []Stamp
	// Evictions are the moves that may start now, in this order. They are one batch.
	Evictions []Eviction
	// Recheck is when to plan again although nothing has changed; zero: only on change or resync.
	Recheck time.Time
	// Notes are further sentences for people; they do not depend on the state.
	Notes []string
}

// Stamp gives a pod another slot. It moves nothing.
type Stamp struct {
	Pod  types.UID
	Name string
	Slot int
	// DeletionCost to set; empty: the pod's annotation stays as it is.
	DeletionCost string
}

// Eviction moves one replica: its replacement is admitted to the other capacity type.
type Eviction struct {
	Pod  types.UID
	Name string
	From Capacity
	// Ready tells whether the pod served when the plan was made.
	Ready bool
	// Why is a sentence for the Event.
	Why string
}
