package spot

import (
	"sync/atomic"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// spreadMemo remembers the spreads of a template while the nodes stay what they are.
type spreadMemo struct {
	last atomic.Pointer[spreadsFound]
}

type spreadsFound struct {
	nodes   uint64 // the table's generation
	spreads []plan.Spread
}

// spreads returns the topology spread constraints of a template with the domains that the nodes form now. The result is not to
// be changed.
func (t *nodeTable) spreads(tmpl *template, capacityType capacity.Labels) []plan.Spread {
	if len(tmpl.constraints) == 0 {
		return nil
	}
	generation := t.generation.Load()
	if before := tmpl.spreadMemo.last.Load(); before != nil && before.nodes == generation {
		return before.spreads
	}
	t.mu.RLock()
	found := &spreadsFound{generation, plan.SpreadsOf(tmpl.constraints, tmpl.needs, capacityType, t.labelled())}
	t.mu.RUnlock()
	tmpl.spreadMemo.last.Store(found)
	return found.spreads
}

// together returns the topology keys of an owner's constraints for which admission has all nodes counted.
func (d *directory) together(o *owner) []string {
	d.mu.RLock()
	tmpl := o.template
	d.mu.RUnlock()
	if tmpl == nil {
		return nil
	}
	var keys []string
	for _, s := range d.nodes.spreads(tmpl, d.capacity) {
		if s.Together {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// observeSpreads sets the topology spread constraints of a workload's owners, and the domains in which their pods are.
func (d *directory) observeSpreads(o *plan.Observed) {
	spread := map[string]*plan.Owner{}
	for i := range o.Owners {
		known := d.owner(o.Owners[i].UID)
		if known == nil {
			continue
		}
		d.mu.RLock()
		tmpl := known.template
		d.mu.RUnlock()
		if tmpl == nil || len(tmpl.constraints) == 0 {
			continue
		}
		o.Owners[i].Spreads = d.nodes.spreads(tmpl, d.capacity)
		spread[string(o.Owners[i].UID)] = &o.Owners[i]
	}
	if len(spread) == 0 {
		return
	}
	type place struct{ owner, node string }
	places := map[place][]int32{}
	for i := range o.Pods {
		pod := &o.Pods[i]
		owner := spread[string(pod.Owner)]
		if owner == nil || pod.Node == "" {
			continue
		}
		at := place{string(pod.Owner), pod.Node}
		domains, known := places[at]
		if !known {
			labels, _ := d.nodes.labelsOf(pod.Node)
			domains = plan.DomainsOf(owner.Spreads, labels)
			places[at] = domains
		}
		pod.Domains = domains
	}
}
