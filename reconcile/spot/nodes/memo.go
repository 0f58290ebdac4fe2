package nodes

import (
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// ContradictionMemo remembers the answer for a template while the nodes stay what they are: admissions ask for it.
type ContradictionMemo struct {
	last atomic.Pointer[contradictionFound]
}

type contradictionFound struct {
	nodes uint64 // the table's generation
	what  plan.Contradiction
	since time.Time
}

// Contradiction returns what of the nodes pods of a template cannot have, and since when that is known. needs is called when the memo does
// not know it.
func (t *Table) Contradiction(needs func() capacity.NodeRequirements, memo *ContradictionMemo, capacityType capacity.Labels, now time.Time) (plan.Contradiction, time.Time) {
	before, generation := memo.last.Load(), t.generation.Load()
	if before != nil && before.nodes == generation {
		return before.what, before.since
	}
	found := &contradictionFound{nodes: generation, since: now}
	if !t.scaled.Load() {
		asked := needs()
		t.mu.RLock()
		found.what = plan.ContradictionOf(asked, capacityType, t.labelled())
		t.mu.RUnlock()
	}
	if before != nil && before.what == found.what {
		found.since = before.since
	}
	memo.last.Store(found)
	return found.what, found.since
}

// SpreadMemo remembers the spreads of a template while the nodes stay what they are.
type SpreadMemo struct {
	last atomic.Pointer[spreadsFound]
}

type spreadsFound struct {
	nodes   uint64 // the table's generation
	spreads []plan.Spread
}

// Spreads returns topology spread constraints of a template, with the domains that the nodes form now. The result is not to be changed. of returns
// the constraints and which nodes the template needs, and is called when the memo does not know them.
func (t *Table) Spreads(of func() ([]corev1.TopologySpreadConstraint, capacity.NodeRequirements), memo *SpreadMemo, labels capacity.Labels) []plan.Spread {
	generation := t.generation.Load()
	if before := memo.last.Load(); before != nil && before.nodes == generation {
		return before.spreads
	}
	constraints, needs := of()
	t.mu.RLock()
	found := &spreadsFound{generation, plan.SpreadsOf(constraints, needs, labels, t.labelled())}
	t.mu.RUnlock()
	memo.last.Store(found)
	return found.spreads
}
