package report

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// keptMoves is how many moves of a workload are remembered.
const keptMoves = 10

// Move is one pod that was evicted or released.
type Move struct {
	// At is when; zero: the move is only planned.
	At time.Time
	// Pod is its name, in the namespace of its workload. From is the capacity type that it ran on.
	Pod  string
	From capacity.Type
	// For is what the move was done for.
	For plan.Purpose
	// Strategy reports whether the pod was evicted or released.
	Strategy policy.Strategy
	// Why says it in a part of a sentence; empty: nothing is to be added.
	Why string
}

// MoveOfRelease returns what is remembered of a release that was done at a time; zero: it is only planned.
func MoveOfRelease(r *plan.Release, at time.Time) Move {
	return Move{At: at, Pod: r.Name, From: r.From, For: r.Released.For, Strategy: policy.StrategyRelease, Why: r.Why}
}

// MoveOfEviction returns what is remembered of an eviction that was done at a time; zero: it is only planned.
func MoveOfEviction(e *plan.Eviction, at time.Time) Move {
	return Move{At: at, Pod: e.Name, From: e.From, For: e.For, Strategy: policy.StrategyEvict, Why: e.Why}
}

// Planned is what a plan was made from, and the plan. Nothing in it is ever changed.
type Planned struct {
	Observed plan.Observed
	Policy   policy.Policy
	Settings plan.Settings
	Plan     plan.Result
	// At is when it was planned.
	At time.Time
}

// Journal remembers, in memory, what was planned last for each workload of a member and which pods were moved: what the API
// is asked about and nothing else shows. The zero value is empty. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	plans map[policy.WorkloadKey]Planned
	moves map[policy.WorkloadKey][]Move // the oldest first
}

// RecordPlan remembers the last plan of a workload in place of the one before.
func (j *Journal) RecordPlan(key policy.WorkloadKey, p Planned) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.plans == nil {
		j.plans = map[policy.WorkloadKey]Planned{}
	}
	j.plans[key] = p
}

// RecordMove remembers a move of a workload. The last 10 of each workload are kept.
func (j *Journal) RecordMove(key policy.WorkloadKey, m Move) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.moves == nil {
		j.moves = map[policy.WorkloadKey][]Move{}
	}
	moves := append(j.moves[key], m)
	j.moves[key] = moves[max(len(moves)-keptMoves, 0):]
}

// LastPlan returns the last plan of a workload; false when there is none.
func (j *Journal) LastPlan(key policy.WorkloadKey) (Planned, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.plans[key]
	return p, ok
}

// LastMoves returns the last moves of a workload, at most 10, the newest first. The result is the caller's.
func (j *Journal) LastMoves(key policy.WorkloadKey) []Move {
	j.mu.Lock()
	defer j.mu.Unlock()
	moves := slices.Clone(j.moves[key])
	slices.Reverse(moves)
	return moves
}

// Forget drops the plan and the moves of a workload.
func (j *Journal) Forget(key policy.WorkloadKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.plans, key)
	delete(j.moves, key)
}

// Explain says in plain sentences what was planned, what it falls back to, and what keeps it from being carried out. The result is the
// caller's.
func (p *Planned) Explain() []string {
	lines := plan.Explain(p.Observed.Replicas, &p.Policy, &p.Plan)
	if fallBacks := plan.ExplainFallBacks(&p.Policy, p.Settings.PendingTimeout); fallBacks != "" {
		lines = append(lines, fallBacks)
	}
	if by := p.Settings.ReadOnlyBy; p.Settings.ReadOnly {
		lines = append(lines, phrase.Sentence(cmp.Or(by, "the hub")+" is in read-only mode: nothing is written"))
	}
	if p.Settings.Paused {
		lines = append(lines, "Moves are paused; new pods are placed.")
	}
	return lines
}
