package plan

import (
	"maps"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// CeilingLimits are the most replicas that may be on the move for the mix at a time; 0: without limit.
type CeilingLimits struct {
	// Member is for each member, Hub for all of them together.
	Member, Hub int
}

// MoveKey names a workload of a member.
type MoveKey struct {
	Member string
	policy.WorkloadKey
}

// Grant is what a [Ceiling] allows.
type Grant struct {
	// Moves that may start now.
	Moves int
	// Scope is what is at its ceiling, "member" or "hub"; empty when all that was asked for may start.
	Scope string
	// Retry is when to ask again; zero when all that was asked for may start.
	Retry time.Time
}

// Scopes of a ceiling.
const (
	scopeMember = "member"
	scopeHub    = "hub"
)

const (
	// ceilingRetry is when a workload that was refused asks again; one that does not ask for ceilingPatience wants no more.
	ceilingRetry    = time.Second
	ceilingPatience = 5 * time.Second
	// moverPatience is how long moves count that were granted, and how long a workload does that does not ask any more. It is longer
	// than a move takes, and than it takes to look at a workload again: who is silent for so long cannot be reached, or is gone.
	moverPatience = 15 * time.Minute
	// takeOverTime is how long all that is on the move in a member counts, whoever granted it, after its first workload has asked:
	// another process may have. What does not come up for so long is stuck.
	takeOverTime = StuckAfter
)

// MoveBudget says how many moves may start now. Safe for concurrent use; it answers from memory.
//
// [Ceiling] counts for all members in one process. Where members have several owners, each owner has a budget with a share of
// the hub's ceiling; the shares add up to it.
type MoveBudget interface {
	// Grant allows a workload of which moving replicas are on the move up to want more.
	Grant(key MoveKey, moving, want int, now time.Time) Grant
	// Forget drops a workload that is gone, ForgetMember all of a member that left, or that another replica owns now.
	Forget(key MoveKey)
	ForgetMember(member string)
}

var _ MoveBudget = (*Ceiling)(nil)

// Ceiling shares a bounded number of moves among the workloads that want to make some. Each has its fair share of what the
// limit allows, at least one; those that had to wait come first, in the order in which they came. It is safe for concurrent
// use.
//
// How many replicas of a workload are on the move is read off its pods, which a tenant writes. So it counts in full against the
// workload itself. Against others count at most the moves that it was granted, for 15 minutes each and, for 5 minutes after a
// member's first workload has asked, those that another process may have granted.
type Ceiling struct {
	limits CeilingLimits

	mu      sync.Mutex
	movers  map[MoveKey]*mover // that move or wait
	members map[string]*movesOfMember
	arrival uint64
}

// mover is one workload that moves replicas or waits to.
type mover struct {
	member  *movesOfMember
	moving  int // replicas on the move, as its pods show them
	granted grants
	arrival uint64 // its place among those that wait; 0: it does not
	asked   time.Time
}

// movesOfMember are the moves of one member.
type movesOfMember struct {
	takenOver time.Time // when its first workload asked
	taken     int       // a sum, while a share is calculated
}

// NewCeiling returns a ceiling under which nothing moves yet.
func NewCeiling(limits CeilingLimits) *Ceiling {
	return &Ceiling{limits: limits, movers: map[MoveKey]*mover{}, members: map[string]*movesOfMember{}}
}

// Grant takes in how many replicas of a workload are on the move, as its last plan says, and returns how many of those that it
// wants to move may start now. They count as moving from then on. It is asked after every plan, also when nothing is wanted.
func (c *Ceiling) Grant(key MoveKey, moving, want int, now time.Time) Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mover(key, now)
	m.moving, m.asked = moving, now
	if want == 0 {
		m.arrival = 0
		if moving == 0 {
			delete(c.movers, key)
		}
		return Grant{}
	}
	if m.arrival == 0 {
		c.arrival++
		m.arrival = c.arrival
	}
	grant := Grant{Moves: want}
	if c.limits.Member > 0 {
		grant.lower(c.share(c.limits.Member, m, m.member, now), scopeMember)
	}
	if c.limits.Hub > 0 {
		grant.lower(c.share(c.limits.Hub, m, nil, now), scopeHub)
	}
	m.start(grant.Moves, now)
	if grant.Moves == want {
		m.arrival = 0
		return grant
	}
	if grant.Moves > 0 {
		c.arrival++
		m.arrival = c.arrival // it had its turn
	}
	grant.Retry = now.Add(ceilingRetry)
	return grant
}

// mover returns what is known of a workload. The lock is held.
func (c *Ceiling) mover(key MoveKey, now time.Time) *mover {
	m := c.movers[key]
	if m != nil {
		return m
	}
	of := c.members[key.Member]
	if of == nil {
		of = &movesOfMember{takenOver: now}
		c.members[key.Member] = of
	}
	m = &mover{member: of}
	c.movers[key] = m
	return m
}

func (g *Grant) lower(limit int, scope string) {
	if limit < g.Moves {
		g.Moves, g.Scope = limit, scope
	}
}

// Movers returns how many workloads move replicas or wait to.
func (c *Ceiling) Movers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.movers)
}

// Forget takes a workload out that is gone.
func (c *Ceiling) Forget(key MoveKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.movers, key)
}

// ForgetMember takes all workloads of a member out that is gone.
func (c *Ceiling) ForgetMember(member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.movers, func(key MoveKey, _ *mover) bool { return key.Member == member })
	delete(c.members, member)
}

// share returns how many moves one workload may start under a limit for those of a member, or of the hub where it is nil. Of the
// hub's moves no member takes more than its own limit allows.
func (c *Ceiling) share(limit int, m *mover, of *movesOfMember, now time.Time) int {
	movers := 0
	for key, o := range c.movers {
		switch {
		case of != nil && o.member != of:
			continue
		case now.Sub(o.asked) > moverPatience:
			delete(c.movers, key)
			continue
		}
		counts := o.counts(now)
		waits := o.arrival > 0 && now.Sub(o.asked) <= ceilingPatience
		if counts > 0 || waits {
			movers++
		}
		if o != m && waits && o.arrival < m.arrival && o.moving == 0 {
			counts++ // its turn comes first
		}
		o.member.taken += counts
	}
	free := limit
	if of != nil {
		free -= of.sum(c.limits.Member)
	} else {
		for _, member := range c.members {
			free -= member.sum(c.limits.Member)
		}
	}
	return max(min(free, max(limit/max(movers, 1), 1)-m.moving), 0)
}

// sum ends the sum of what a member's workloads take, which is at most its limit; 0: there is none.
func (m *movesOfMember) sum(limit int) (taken int) {
	taken, m.taken = m.taken, 0
	if limit > 0 {
		return min(taken, limit)
	}
	return taken
}
