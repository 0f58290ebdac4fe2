package spot

import "github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"

// spreadsOf returns the topology spread constraints of a template with the domains that the nodes form now. The result is not to
// be changed.
func (d *directory) spreadsOf(tmpl *template) []plan.Spread {
	if !tmpl.spread {
		return nil
	}
	return d.nodes.Spreads(tmpl.spreads, &tmpl.spreadMemo, d.capacity)
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
	for _, s := range d.spreadsOf(tmpl) {
		if s.Together {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// observeSpreads sets the topology spread constraints of a workload's owners, and the domains in which their pods are.
func (d *directory) observeSpreads(namespace string, o *plan.Observed) {
	spread := map[string]*plan.Owner{}
	for i := range o.Owners {
		known := d.owner(ownerKey{namespace, o.Owners[i].UID})
		if known == nil {
			continue
		}
		d.mu.RLock()
		tmpl := known.template
		d.mu.RUnlock()
		if tmpl == nil || !tmpl.spread {
			continue
		}
		o.Owners[i].Spreads = d.spreadsOf(tmpl)
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
			labels, _ := d.nodes.LabelsOf(pod.Node)
			domains = plan.DomainsOf(owner.Spreads, labels)
			places[at] = domains
		}
		pod.Domains = domains
	}
}
