package fleet

import (
	"math"
	"time"
)

// Unbounded is the [Supply.Room] of a supply of which no limit is known.
const Unbounded = math.MaxInt32

// Capacity is a capacity type.
type Capacity uint8

// The capacity types. They index arrays of two.
const (
	Spot Capacity = iota
	OnDemand
)

// String returns the word that is used in reasons.
func (c Capacity) String() string {
	if c == Spot {
		return "spot"
	}
	return "on-demand"
}

// Fleet is what is known about the members, whatever the workload.
type Fleet struct {
	Members []Member
	// Domains are the failure domains of which more is known than their names.
	Domains []Domain
}

// Domain is what the members of one failure domain share, such as a region.
type Domain struct {
	Name string
	// Life is how long it takes, on average, until a member of the domain loses spot capacity, alone or with others, see
	// [Together]; zero: as long as in its shortest-lived member.
	Life time.Duration
}

// Member is a cluster that replicas can run in.
type Member struct {
	// Name identifies the member.
	Name string
	// Domain names what fails together with this member; empty: nothing does.
	Domain string
	// UnreachableSince is since when the member is out of reach; zero: it is ready.
	UnreachableSince time.Time
	// Spot and OnDemand are what its capacity types have to give.
	Spot, OnDemand Supply
}

// of returns the supply of a capacity type.
func (m *Member) of(c Capacity) *Supply {
	if c == Spot {
		return &m.Spot
	}
	return &m.OnDemand
}

// Supply is what is known about one capacity type of a member.
type Supply struct {
	// Room is how many replicas it takes beyond what runs, as far as that is known; [Unbounded]: no limit is known.
	Room int
	// DrySince is since when it has had no room for more; zero: it is not known to be dry. What runs there is not concerned.
	DrySince time.Time
	// TryAt is from when a dry supply may be tried with one replica; zero: not before a probe has found room.
	TryAt time.Time
	// Assured says that nothing has been refused there of late, and that whoever manages the replicas says when one is: what
	// is started counts as sure to come, and nothing is started in its place meanwhile.
	Assured bool
	// Price of a replica, in any unit that is the same for all; zero or below: not known, see [DefaultPriceRatio].
	Price float64
	// Start is how long a replica takes from being asked for to being ready.
	Start time.Duration
	// Life is how long it takes, on average, until the supply takes back what runs there; zero: it does not.
	Life time.Duration
	// Notice is how long before that it says so.
	Notice time.Duration
}

// dry reports whether the supply is not to be counted on for more.
func (s *Supply) dry() bool { return !s.DrySince.IsZero() || s.Room <= 0 }

// tryable reports whether a dry supply may be tried with one replica.
func (s *Supply) tryable(now time.Time) bool {
	return !s.DrySince.IsZero() && s.Room > 0 && !s.TryAt.IsZero() && !now.Before(s.TryAt)
}

// gap is how long a replica is missing that the supply takes back, when its replacement is asked for at the notice.
func (s *Supply) gap() time.Duration { return max(s.Start-s.Notice, 0) }

// rate is how often a second the supply takes back what runs there.
func (s *Supply) rate() float64 { return rateOf(s.Life) }

func rateOf(life time.Duration) float64 {
	if life <= 0 {
		return 0
	}
	return 1 / life.Seconds()
}
