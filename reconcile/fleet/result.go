package fleet

import "time"

// Placement is one workload of the fleet: what is asked for, and what runs.
type Placement struct {
	// Name identifies the placement, as in namespace/name.
	Name   string
	Policy Policy
	// Members is what is known about members as this placement sees them, by name, in place of what the fleet says: capacity may
	// have no room for its pods alone, and failure domains are what it says. Nil: as the fleet says.
	Members map[string]*Member
	// Running is what runs, by member; members that run none may be left out.
	Running []Running
	// LastMove is when replicas that served were moved last.
	LastMove time.Time
}

// Running is what a member runs of a placement.
type Running struct {
	Member string
	// Out is why the member's workload takes no part, in words; empty: it does. Its replicas then count for nothing.
	Out            string
	Spot, OnDemand Count
	// Ordinals are the replicas of a StatefulSet, in the order of their numbers: the last goes first when it shrinks. There are as many as
	// are counted, without those that leave. Nil: the workload is none.
	Ordinals []Ordinal
}

// Count counts replicas of one capacity type in one member.
type Count struct {
	Ready int
	// Starting have a node, and will be ready.
	Starting int
	// Waiting have none, and nobody knows whether they get one.
	Waiting int
	// Leaving are being taken back, or deleted. They may still serve, and count for nothing.
	Leaving int
}

func (c Count) have() int { return c.Ready + c.Starting + c.Waiting }

// Result is a plan.
type Result struct {
	Name string
	// Members says what each member is to have: those of the tiers, in the order of the tiers, and then others that run some.
	Members []Wanted
	// Moves are to be made now, in this order. They can be made at once, whatever happens to the ones before.
	Moves []Move
	// Later are moves that wait for others to be done.
	Later []Move
	// Recheck is when to plan again although nothing has changed; zero: only on change.
	Recheck time.Time
	// Conditions say what of the policy cannot be had.
	Conditions []Condition
	// Insurance is how many spot replicas of the plan are beyond the wanted number, and Risk the share of time for which
	// replicas are expected to be missing with them.
	Insurance int
	Risk      float64
	// Unplaced is how many replicas there is no place for.
	Unplaced int
}

// Wanted is what a member is to have.
type Wanted struct {
	Member string
	// Spot and OnDemand are where the plan goes to.
	Spot, OnDemand int
	// SpotNow and OnDemandNow are what to set now.
	SpotNow, OnDemandNow int
	// Exchanges is how many replicas of a StatefulSet may be moved to the other capacity type in the member, because the ordinal that goes
	// when it shrinks is not the one that should.
	Exchanges int
	// Reason says why, in words.
	Reason string
}

// Move starts or stops replicas.
type Move struct {
	Member   string
	Capacity Capacity
	// By is how many are started; stopped, where it is negative.
	By     int
	Reason string
}

// ConditionType names what a policy asks for and cannot have.
type ConditionType string

// What can be wrong with a policy.
const (
	// InvalidPolicy: a value that has no meaning; it was taken as the nearest that has.
	InvalidPolicy ConditionType = "InvalidPolicy"
	// NoMembers: no tier has a member that takes part.
	NoMembers ConditionType = "NoMembers"
	// FloorAboveReplicas: more on-demand replicas are asked for than replicas.
	FloorAboveReplicas ConditionType = "FloorAboveReplicas"
	// BoundsTooHigh: the minima of the members ask for more than there are replicas.
	BoundsTooHigh ConditionType = "BoundsTooHigh"
	// BoundsTooLow: maxima and spread leave no place for some replicas.
	BoundsTooLow ConditionType = "BoundsTooLow"
	// NoRoom: no member has room for some replicas.
	NoRoom ConditionType = "NoRoom"
)

// Condition says that something of a policy cannot be had, and what is done instead.
type Condition struct {
	Type    ConditionType
	Message string
}
