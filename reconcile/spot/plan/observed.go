package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// State is one word for where a workload stands.
type State string

// States, as the API names them.
const (
	StateUnmanaged State = "Unmanaged" // enabled, but no value is set anywhere: counted, never moved
	StateConverged State = "Converged" // every replica is where it belongs
	StateMoving    State = "Moving"    // replicas are being moved or are starting
	StateWaiting   State = "Waiting"   // replicas should move and may not yet
	StateInvalid   State = "Invalid"   // percentage or floor cannot be used: nothing is moved, new pods go on-demand
	StateReadOnly  State = "ReadOnly"  // replicas should move, and the hub is configured to move nothing
)

// Settings are the parts of the configuration that plans depend on.
type Settings struct {
	MaxMoves policy.MoveLimit
	// Cooldown is the least time between two batches of moves of a workload.
	Cooldown time.Duration
	// ReadOnly plans nothing that writes, for the hub, the member, the namespace or the workload.
	ReadOnly bool
	// ReadOnlyBy says what is in read-only mode; empty: the hub.
	ReadOnlyBy string
	// Paused moves nothing of the workload, whatever for: no eviction and no release. Slots are still assigned, and new pods
	// are placed.
	Paused bool
	// PausedBy says what is paused; empty: the workload.
	PausedBy string
	// PendingTimeout is how long a spot pod of the workload may be unschedulable before spot counts as dry for its shape. The
	// caller hands it to [shortage.Tracker.Observe]; [Plan] does not look at it.
	PendingTimeout time.Duration
	// Strategy is how replicas that serve are moved.
	Strategy policy.Strategy
}

// Observed is what is known about one workload and its pods. [Plan] changes nothing in it.
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
	// Stalled says that nothing comes of a rollout that is under way: somebody paused it, or the workload's controller has given
	// it up. The plan finds that by itself where nothing has come of it for 10 minutes.
	Stalled bool
	// MinReady is how long a pod must have been ready to count as available: minReadySeconds of the workload.
	MinReady time.Duration
	// LastMove is when this process last evicted or released a pod of the workload; zero: never.
	LastMove time.Time
	// Budgets are the PodDisruptionBudgets that select pods of the workload. Without any, evictions are tried and the API
	// server's word counts; see [Result.Refused].
	Budgets []Budget
	// BudgetsUnknown says that the PodDisruptionBudgets cannot be read.
	BudgetsUnknown bool
	// NoRelease says why pods cannot be released, such as "Service shop/web selects pod-template-hash"; empty: they can. It is
	// looked at where the strategy is to release, and where a pod has a Interruption: the floor is released whatever the strategy.
	NoRelease string
}

// Budget is what is known about one PodDisruptionBudget.
type Budget struct {
	Name string
	// Allowed is status.disruptionsAllowed; 0 also while the budget's controller has not seen its newest generation.
	Allowed int
	// Desired is status.desiredHealthy: how many of the pods have to stay healthy.
	Desired int
	// Healthy says that status.currentHealthy is at least status.desiredHealthy, and that this is more than none: then the
	// API server lets pods go that are not ready, whatever is allowed.
	Healthy bool
	// UnhealthyAlways is unhealthyPodEvictionPolicy AlwaysAllow: pods that are not ready may always go.
	UnhealthyAlways bool
}

// Owner is one direct controller of pods.
type Owner struct {
	UID  types.UID
	Name string
	// Replicas that the owner's spec asks for.
	Replicas int
	// Start is the first ordinal of a StatefulSet.
	Start int
	// Accounting is what the owner's accounting knows beyond the pods; see Accounting.Summary. The zero value: nothing.
	Accounting Summary
	// DrySince is since when spot capacity has had no room for pods of the owner's shape, as [shortage.Tracker.Dry] says; zero: it has.
	DrySince time.Time
	// OnDemandDrySince is the same for on-demand capacity; zero: it has room.
	OnDemandDrySince time.Time
	// SpotProbing and OnDemandProbing say that a probe found room for pods of the owner's shape after a drought, and no replica has
	// yet: replicas move there one at a time.
	SpotProbing, OnDemandProbing bool
	// Contradiction says which of the member's nodes the owner's template leaves out by itself.
	Contradiction Contradiction
	// Spreads are the topology spread constraints of the owner's template that must hold.
	Spreads []Spread
}

// Summary is what an Accounting knows beyond the pods that the cache shows.
type Summary struct {
	// Reserved are the reservations whose pods were not seen yet, the oldest first, without their ids.
	Reserved []Reservation
	// Unexplained is how many pods more were admitted lately than the owner wants, or than ordinals have room for: as many
	// that the cache still shows are gone, or were refused. While it is not 0, counts cannot be trusted.
	Unexplained int
	// UnansweredUntil is when evictions and releases that nobody answered no longer count, if the cache does not show them by
	// then; zero: there are none. See Accounting.Unanswered.
	UnansweredUntil time.Time
	// UnprovenUntil is until when what another process did for the owner may not be known; zero: it is. See
	// Accounting.TakeOver.
	UnprovenUntil time.Time
}

// Reservation is a slot promised to a pod that was admitted and not seen yet.
type Reservation struct {
	ID       string
	Slot     int
	Capacity capacity.Type
	// Moved says that it replaces a pod that we evicted.
	Moved bool
	// At is when it was made.
	At time.Time
}

// Result is what a workload needs now, and what to report about it. The shell first does the Evictions and Releases
// that are not for the mix, which depend on nothing, then the Assignments, and then moves for the mix.
type Result struct {
	State State
	// Reason is a sentence that says why the state is what it is.
	Reason string
	// SpotWanted + OnDemandWanted = Replicas.
	SpotWanted, OnDemandWanted int
	// SpotActual, OnDemandActual and UnknownActual count the pods that are supply by capacity type, which interrupted and released
	// ones are not; Pending those of them that are not ready, and Advised those on nodes that may go.
	SpotActual, OnDemandActual, UnknownActual, Pending, Advised int
	// Interrupted and Released count pods that run and are no supply any more. A pod that is both counts as released.
	Interrupted, Released int
	// Unprotected says that no disruption budget keeps others, such as an autoscaler that drains a node, from the floor.
	Unprotected bool
	// Contradiction is what keeps replicas from the capacity type where they belong, whatever the hub does.
	Contradiction Contradiction
	// Skew says which topology spread constraint the replicas, which all run, do not keep over both capacity types, in which domains,
	// and why; empty: they keep all.
	Skew string
	// Moving is how many replicas are on the move now, whatever for, without those that this plan starts: what a [Ceiling] is told.
	// Released pods that only wait for a disruption window, and what is stuck, are not on the move.
	Moving int
	// Assignments give pods their slots. They come before moves for the mix.
	Assignments []Assignment
	// Releases take pods out of their ReplicaSets, which make replacements while the pods go on serving.
	Releases []Release
	// Evictions may start now, in this order: what is urgent first, then what ends releases, then moves for the mix.
	Evictions []Eviction
	// Waits are what is waited for, in no particular order; empty: nothing. Waits of one kind and subject are one.
	Waits []Wait
	// Pods says what is special about single pods, ordered by name.
	Pods []PodPlan
	// Recheck is when to plan again although nothing has changed; zero: only on change or resync.
	Recheck time.Time
	// Notes are further sentences for people; they do not depend on the state.
	Notes []string
}

// Assignment gives a pod another slot. It moves nothing.
type Assignment struct {
	Pod  types.UID
	Name string
	Slot int
	// DeletionCost to set; empty: the pod's annotation stays as it is.
	DeletionCost string
}

// Purpose is what a pod is evicted or released for.
type Purpose string

// Purposes.
const (
	// PurposeMove moves a replica for the mix. Windows, cool-downs, the limit of moves and ceilings hold.
	PurposeMove Purpose = "move"
	// PurposeInsufficientCapacity replaces a pod that waits for capacity that has no room.
	PurposeInsufficientCapacity Purpose = "insufficient-capacity"
	// PurposeInterruption replaces a pod whose node goes or has gone.
	PurposeInterruption Purpose = "interruption"
	// PurposeFinish ends a release: the replacement is ready, or the pod stands in for nobody any more.
	PurposeFinish Purpose = "finish"
	// PurposeAdvisory replaces a pod whose node may go, as an advisory notice says. What holds for moves holds for it.
	PurposeAdvisory Purpose = "advisory"
)

// Urgent reports whether the purpose ignores disruption windows, cool-downs and ceilings.
func (p Purpose) Urgent() bool { return p == PurposeInsufficientCapacity || p == PurposeInterruption }

// Paced reports whether disruption windows, cool-downs, the limit of moves and ceilings hold for the purpose.
func (p Purpose) Paced() bool { return p == PurposeMove || p == PurposeAdvisory }

// Eviction takes one pod away, through the API that honours disruption budgets.
type Eviction struct {
	Pod  types.UID
	Name string
	// Owner is the UID of the controller in whose accounting the pod is.
	Owner types.UID
	From  capacity.Type
	// Ready reports whether the pod served when the plan was made.
	Ready bool
	// For is never empty.
	For Purpose
	// Version is the resourceVersion that the pod must still have, as a precondition beside its UID; 0: any. A pod that is
	// replaced for lack of a node may have found one since.
	Version uint64
	// Why is a sentence for the Event.
	Why string
}

// Release takes one pod out of its ReplicaSet: in one write, with the pod's UID as precondition, its label
// pod-template-hash becomes [ReleasedHash] of Released.Hash and the annotation [policy.Keys.Released] becomes Released.String().
// Accounting.LetGo comes before the write, Accounting.Restore after one that failed, Accounting.Unanswered after one
// of which that is not known.
type Release struct {
	Pod  types.UID
	Name string
	From capacity.Type
	// Released is what the annotation says.
	Released Released
	// Why is a sentence for the Event.
	Why string
}

// WaitKind is what a workload waits for.
type WaitKind string

// Kinds of waits.
const (
	WaitWindow      WaitKind = "window"      // the disruption window is shut; Until is when it opens
	WaitCooldown    WaitKind = "cooldown"    // the next batch may start at Until
	WaitBudget      WaitKind = "budget"      // a PodDisruptionBudget, the Subject, allows no more; Until is the next try
	WaitRollout     WaitKind = "rollout"     // the workload's controller is not at rest
	WaitUnexplained WaitKind = "unexplained" // pods were admitted that the cache does not explain yet
	WaitReplacement WaitKind = "replacement" // moved replicas must become ready first
	WaitDry         WaitKind = "dry"         // capacity has no room for pods of this shape; Since is since when
	WaitCapacity    WaitKind = "capacity"    // the capacity type of pods is not known
	WaitCeiling     WaitKind = "ceiling"     // the moves of the member or the hub, the Subject, are at their ceiling
	WaitPaused      WaitKind = "paused"      // a person paused the workload
	WaitReadOnly    WaitKind = "readonly"    // the Subject is in read-only mode
	WaitProtected   WaitKind = "protected"   // pods ask not to be disrupted
	WaitTemplate    WaitKind = "template"    // no node of the capacity type that is wanted is what the template asks for
	WaitRefused     WaitKind = "refused"     // the API server refuses what is to be written, by a policy for instance; Until is the next try
)

// Wait is one thing that a workload waits for.
type Wait struct {
	Kind WaitKind
	// Subject names what is waited for where the kind has many: a PodDisruptionBudget, "member" or "hub".
	Subject string
	// Replicas is how many wait; 0: it does not go by replicas.
	Replicas int
	// Since and Until are zero where nobody knows.
	Since, Until time.Time
	// Reason is a sentence without its end, such as "the disruption window opens at 2026-01-01T04:00:00Z".
	Reason string
}

// PodPlan says what is special about one pod.
type PodPlan struct {
	Pod  types.UID
	Name string
	// Interrupted: its node goes for certain, or has gone. Released: it has left its ReplicaSet and serves until its replacement is ready.
	Interrupted, Released bool
	// Going: this plan evicts or releases it.
	Going bool
	// Waits is the kind of wait that keeps it from going; empty: none.
	Waits WaitKind
	// Reason is a sentence without its end.
	Reason string
}

// Refused takes in that the API server refused evictions for now (429): that is a wait and not an error. budget may be
// empty when it is not known, message is what the API server said, and retry is when it is tried again.
func (r *Result) Refused(pods int, budget, message string, retry time.Time) {
	r.AddWait(Wait{Kind: WaitBudget, Subject: budget, Replicas: pods, Until: retry, Reason: message})
	r.Recheck = when.Earlier(r.Recheck, retry)
}

// Deferred takes in that a [Ceiling] let only some of the plan's moves start: the others wait.
func (r *Result) Deferred(moves int, scope string, retry time.Time) {
	r.AddWait(Wait{Kind: WaitCeiling, Subject: scope, Replicas: moves, Until: retry,
		Reason: "the limit of moves of the " + scope + " is reached"})
	r.Recheck = when.Earlier(r.Recheck, retry)
}

// AddWait adds a wait; one of the same kind and subject is counted up.
func (r *Result) AddWait(w Wait) {
	for i := range r.Waits {
		if known := &r.Waits[i]; known.Kind == w.Kind && known.Subject == w.Subject {
			known.Replicas += w.Replicas
			known.Until = when.Earlier(known.Until, w.Until)
			return
		}
	}
	r.Waits = append(r.Waits, w)
}

// SettleTime bounds how far a cache may lag behind: what was admitted longer ago and is still not seen does not exist.
const SettleTime = 10 * time.Second

// For returns the settings as they hold for one workload of a member. readOnlyBy is what puts the member into read-only mode; empty:
// nothing does.
func (s Settings) For(m policy.Modes, readOnlyBy string) Settings {
	if m.Strategy != "" {
		s.Strategy = m.Strategy
	}
	if m.MaxMovesSource != policy.SourceNone {
		s.MaxMoves = m.MaxMoves
	}
	if m.CooldownSource != policy.SourceNone {
		s.Cooldown = m.Cooldown
	}
	if m.PendingTimeout > 0 {
		s.PendingTimeout = m.PendingTimeout
	}
	s.Paused = s.Paused || m.Paused != policy.SourceNone
	switch {
	case s.ReadOnly:
	case readOnlyBy != "":
		s.ReadOnly, s.ReadOnlyBy = true, readOnlyBy
	case m.ReadOnly != policy.SourceNone:
		s.ReadOnly, s.ReadOnlyBy = true, "the "+m.ReadOnly.String()
	}
	return s
}
