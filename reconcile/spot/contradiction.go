package spot

import (
	"sync/atomic"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// contradictionMemo remembers the answer for a template while the nodes stay what they are: admissions ask for it.
type contradictionMemo struct {
	last atomic.Pointer[contradictionFound]
}

type contradictionFound struct {
	nodes uint64 // the table's generation
	what  plan.Contradiction
	since time.Time
}

// contradiction returns what of the nodes pods of a template cannot have, and since when that is known.
func (t *nodeTable) contradiction(needs capacity.NodeRequirements, memo *contradictionMemo, capacityType capacity.Labels, now time.Time) (plan.Contradiction, time.Time) {
	if len(needs) == 0 {
		return plan.ContradictionNone, time.Time{}
	}
	before, generation := memo.last.Load(), t.generation.Load()
	if before != nil && before.nodes == generation {
		return before.what, before.since
	}
	found := &contradictionFound{nodes: generation, since: now}
	if !t.scaled.Load() {
		t.mu.RLock()
		found.what = plan.ContradictionOf(needs, capacityType, t.labelled())
		t.mu.RUnlock()
	}
	if before != nil && before.what == found.what {
		found.since = before.since
	}
	memo.last.Store(found)
	return found.what, found.since
}

// contradictionLocked tells which nodes are not what an owner's template asks for, and since when. The caller holds the
// directory's mu.
func (d *directory) contradictionLocked(o *owner) (plan.Contradiction, time.Time) {
	if o.template == nil {
		return plan.ContradictionNone, time.Time{}
	}
	return d.nodes.contradiction(o.template.needs, &o.template.memo, d.capacity, time.Now())
}

// observeContradictions sets what the nodes cannot give to the templates of a workload's owners.
func (d *directory) observeContradictions(o *plan.Observed) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range o.Owners {
		if known := d.owners[o.Owners[i].UID]; known != nil {
			o.Owners[i].Contradiction, _ = d.contradictionLocked(known)
		}
	}
}
