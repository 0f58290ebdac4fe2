package fleet

import "time"

// DefaultGrace is how long a member may be out of reach before its replicas are compensated for elsewhere.
const DefaultGrace = time.Minute

// DefaultPriceRatio is what an on-demand replica costs, as a multiple of a spot replica, where no prices are known.
const DefaultPriceRatio = 3

// DefaultAvailability is what insurance is weighed with: a replica beyond what is wanted must avert 0.5 % of time with replicas
// missing.
const DefaultAvailability = 0.995

// Policy is what a placement asks for.
type Policy struct {
	// Replicas that the fleet is to have ready.
	Replicas int
	// MinOnDemand of them are on-demand: the fleet's floor.
	MinOnDemand int
	// SpotPercentage of them may be on spot: 0 to 100.
	SpotPercentage int
	// ExtraSpot is how many replicas may run on spot beyond Replicas, as insurance. The plan runs as many as are worth it.
	ExtraSpot int
	// Availability weighs insurance: each extra spot replica must avert a share of time with replicas missing of 1 less this.
	// Outside 0 to 1, and 0: [DefaultAvailability].
	Availability float64
	// Tiers say where replicas may be, in order of preference.
	Tiers []Tier
	// Spread limits how much may be in one place.
	Spread Spread
	// Grace is how long a member may be out of reach before it is compensated for; zero: [DefaultGrace].
	Grace time.Duration
	// Pace limits what is moved although it serves where it is.
	Pace Pace
}

// Tier is a set of members. A later tier is used for what the earlier ones cannot run, and is left again when they can.
type Tier []Choice

// Choice is a member that replicas may be in.
type Choice struct {
	Member string
	// Weight is its share, relative to the others of its tier; zero or below: 1.
	Weight int
	// Min and Max bound its replicas of both capacity types; a Max of zero is no bound.
	Min, Max int
}

// Spread limits how many percent of the replicas may be in one place; zero is no limit. At least one replica always may.
type Spread struct {
	Member, Domain int
}

// Pace limits moves of replicas that serve.
type Pace struct {
	// Moves is how many may be on the move at a time; zero or below: 1.
	Moves int
	// Cooldown is the time between two batches.
	Cooldown time.Duration
	// Shut says that the disruption window is shut: nothing that serves is moved.
	Shut bool
	// Changes is when the window opens or shuts next; zero: never.
	Changes time.Time
}

func (p *Policy) grace() time.Duration {
	if p.Grace <= 0 {
		return DefaultGrace
	}
	return p.Grace
}

func (p *Policy) availability() float64 {
	if p.Availability <= 0 || p.Availability >= 1 {
		return DefaultAvailability
	}
	return p.Availability
}

// spotWanted is how many of n replicas belong on spot.
func (p *Policy) spotWanted(n int) int {
	return max(min(n*p.SpotPercentage/100, n-p.MinOnDemand), 0)
}
