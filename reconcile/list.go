package reconcile

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// Filter says which keys of a member to list.
type Filter struct {
	// Member is needed.
	Member string
	// Controller and Namespace leave out what is of others; empty: nothing is left out.
	Controller, Namespace string
	// After leaves out what is not behind it in the order of controller, namespace and name. The zero value: nothing.
	After Key
	// Limit is how many records are wanted at most; 0: all.
	Limit int
}

// RecordsIn returns records of a member in the order of controller, namespace and name, and whether there are more. Each record is
// consistent in itself; see [Runtime.Records] for keys that come and go meanwhile. It may be called concurrently.
func (rt *Runtime) RecordsIn(f Filter) (records []Record, more bool) {
	keys := slices.DeleteFunc(rt.keys(f.Member), func(key Key) bool { return !f.passes(key) })
	for some := range slices.Chunk(keys, snapshotBatch) {
		for _, record := range rt.snapshots(some) {
			if f.Limit > 0 && len(records) == f.Limit {
				return records, true
			}
			records = append(records, record)
		}
	}
	return records, false
}

func (f *Filter) passes(key Key) bool {
	if f.Controller != "" && f.Controller != key.Controller || f.Namespace != "" && f.Namespace != key.Namespace {
		return false
	}
	if f.After.NamespacedName == (types.NamespacedName{}) && f.After.Controller == "" {
		return true
	}
	return cmp.Or(cmp.Compare(key.Controller, f.After.Controller), cmp.Compare(key.Namespace, f.After.Namespace), cmp.Compare(key.Name, f.After.Name)) > 0
}

// ControllerState is one controller as it works in one member.
type ControllerState struct {
	Name, Member string
	Kind         string // that is reconciled, for example "apps/v1 Deployment"
	Objects      int    // that it knows
	Queued       int    // that wait for a worker, or are held
	Running      int
	Held         string // why all of them are held; empty: they are not
}

// ControllersIn returns the controllers that work in a member, by name. It may be called concurrently.
func (rt *Runtime) ControllersIn(member string) []ControllerState {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var all []ControllerState
	for name, c := range rt.controllers {
		l := c.queue.flows[member]
		if l == nil {
			continue
		}
		state := ControllerState{Name: name, Member: member, Kind: object.KindName(c.queue.kind), Objects: len(l.records), Running: l.running}
		for b := range l.seats {
			state.Queued += l.seats[b].line.n
		}
		if reason, closed := l.member.closed(); closed {
			state.Held = reason
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b ControllerState) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
