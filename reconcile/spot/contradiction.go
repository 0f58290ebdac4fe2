package spot

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// contradictionLocked reports which nodes are not what an owner's template asks for, and since when. The caller holds the
// directory's mu.
func (d *directory) contradictionLocked(o *owner) (plan.Contradiction, time.Time) {
	if o.template == nil || !o.template.narrow {
		return plan.ContradictionNone, time.Time{}
	}
	return d.nodes.Contradiction(o.template.needs, &o.template.memo, d.capacity, time.Now())
}

// observeContradictions sets what the nodes cannot give to the templates of a workload's owners.
func (d *directory) observeContradictions(namespace string, o *plan.Observed) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range o.Owners {
		if known := d.owners[ownerKey{namespace, o.Owners[i].UID}]; known != nil {
			o.Owners[i].Contradiction, _ = d.contradictionLocked(known)
		}
	}
}
