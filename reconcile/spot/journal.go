package spot

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
	At   time.Time
	Pod  string
	From capacity.Type
	For  plan.Purpose
	// Strategy tells whether the pod was evicted or released.
	Strategy policy.Strategy
	Why      string
}

// planned is what a plan was made from, and the plan. Nothing in it is ever changed.
type planned struct {
	observed plan.Observed
	policy   policy.Policy
	settings plan.Settings
	plan     plan.Result
	at       time.Time
}

// journal remembers, in memory, what was planned last for each workload of a member and which pods were moved: what the API
// is asked about and nothing else tells. The zero value is empty. It is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	plans map[policy.WorkloadKey]planned
	moves map[policy.WorkloadKey][]Move // the oldest first
}

// planned notes the last plan of a workload.
func (j *journal) planned(key policy.WorkloadKey, p planned) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.plans == nil {
		j.plans = map[policy.WorkloadKey]planned{}
	}
	j.plans[key] = p
}

// moved notes a move, and forgets the oldest when there are too many.
func (j *journal) moved(key policy.WorkloadKey, m Move) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.moves == nil {
		j.moves = map[policy.WorkloadKey][]Move{}
	}
	moves := append(j.moves[key], m)
	j.moves[key] = moves[max(len(moves)-keptMoves, 0):]
}

// last returns the last plan of a workload; false when there is none.
func (j *journal) last(key policy.WorkloadKey) (planned, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.plans[key]
	return p, ok
}

// lastMoves returns the last moves of a workload, the newest first.
func (j *journal) lastMoves(key policy.WorkloadKey) []Move {
	j.mu.Lock()
	defer j.mu.Unlock()
	moves := slices.Clone(j.moves[key])
	slices.Reverse(moves)
	return moves
}

// forget drops what is known of a workload.
func (j *journal) forget(key policy.WorkloadKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.plans, key)
	delete(j.moves, key)
}

// noteMove remembers that a pod of an owner was moved. Nobody can ask about workloads that are not known, or are gone.
func (d *directory) noteMove(o *owner, m Move) {
	if o == nil {
		return
	}
	d.mu.RLock()
	defer d.mu.RUnlock() // not before it is noted: what is known of a workload is forgotten under the lock
	if o.kind != "" && d.workloads[o.workload] != nil {
		d.journal.moved(o.workload, m)
		if d.toldMove != nil {
			d.toldMove(o.workload, m)
		}
	}
}

// explain says in plain sentences what was planned.
func (p *planned) explain() []string {
	lines := plan.Explain(p.observed.Replicas, &p.policy, &p.plan)
	if fallBacks := plan.ExplainFallBacks(&p.policy, p.settings.PendingTimeout); fallBacks != "" {
		lines = append(lines, fallBacks)
	}
	if by := p.settings.ReadOnlyBy; p.settings.ReadOnly {
		lines = append(lines, phrase.Sentence(cmp.Or(by, "the hub")+" is in read-only mode: nothing is written"))
	}
	if p.settings.Paused {
		lines = append(lines, "Moves are paused; new pods are placed.")
	}
	return lines
}
