package spot

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nodeNeeds are what a pod's own nodeSelector and required node affinity ask of a node, beside its capacity type: every
// element must hold, and of an element one of its terms. Nil: any node will do.
type nodeNeeds [][]corev1.NodeSelectorTerm

// needsOf reads what a shape asks of nodes.
func needsOf(s Shape) nodeNeeds {
	var needs nodeNeeds
	one := func(e corev1.NodeSelectorRequirement) {
		needs = append(needs, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}})
	}
	for _, constraint := range s.Constraints {
		if text, ok := strings.CutPrefix(constraint, constraintSelector); ok {
			key, value, _ := strings.Cut(text, "=")
			one(corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		}
		if text, ok := strings.CutPrefix(constraint, constraintNode); ok {
			var e corev1.NodeSelectorRequirement
			if json.Unmarshal([]byte(text), &e) == nil {
				one(e)
			}
		}
		if text, ok := strings.CutPrefix(constraint, constraintNodes); ok {
			var terms []corev1.NodeSelectorTerm
			if json.Unmarshal([]byte(text), &terms) == nil {
				needs = append(needs, terms)
			}
		}
	}
	return needs
}

// fit tells whether a node is what a pod asks for.
func (n nodeNeeds) fit(name string, labels map[string]string) bool {
	for _, terms := range n {
		if !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return termFits(&term, name, labels) }) {
			return false
		}
	}
	return true
}

// mayFit tells whether a node that is to come may be what a pod asks for: labels that it does not have yet speak for it.
func (n nodeNeeds) mayFit(labels map[string]string) bool {
	for _, terms := range n {
		if !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return termMayFit(&term, labels) }) {
			return false
		}
	}
	return true
}

func termMayFit(term *corev1.NodeSelectorTerm, labels map[string]string) bool {
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		if value, has := labels[e.Key]; has && !requirementFits(e, value, has) {
			return false
		}
	}
	return len(term.MatchFields) == 0 // which name a node that there is
}

func termFits(term *corev1.NodeSelectorTerm, name string, labels map[string]string) bool {
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		value, has := labels[e.Key]
		if !requirementFits(e, value, has) {
			return false
		}
	}
	for i := range term.MatchFields { // of which there is only metadata.name
		if !requirementFits(&term.MatchFields[i], name, true) {
			return false
		}
	}
	return true
}

// requirementFits says what the scheduler says; what cannot be read fits no node there, and every node here: it is no reason
// to place a pod elsewhere.
func requirementFits(e *corev1.NodeSelectorRequirement, value string, has bool) bool {
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		is, err := strconv.ParseInt(value, 10, 64)
		if len(e.Values) != 1 || (has && err != nil) {
			return true
		}
		limit, err := strconv.ParseInt(e.Values[0], 10, 64)
		return err != nil || (has && (is > limit) == (e.Operator == corev1.NodeSelectorOpGt) && is != limit)
	}
	return true
}

// Contradiction says which of a member's nodes are not what a template's own nodeSelector and required node affinity ask for.
type Contradiction string

// Contradictions. The zero value is [ContradictionNone].
const (
	ContradictionNone     Contradiction = ""          // there is none, or nothing is known of the nodes that may come
	ContradictionSpot     Contradiction = "spot"      // no spot node fits, and on-demand nodes do
	ContradictionOnDemand Contradiction = "on-demand" // no on-demand node fits, and spot nodes do
	ContradictionBoth     Contradiction = "any"       // no node at all fits
)

// leavesOut tells whether no node of a capacity type is what the template asks for.
func (c Contradiction) leavesOut(capacity Capacity) bool {
	switch c {
	case ContradictionSpot:
		return capacity == Spot
	case ContradictionOnDemand:
		return capacity == OnDemand
	}
	return c == ContradictionBoth
}

// of returns what of a contradiction concerns so many replicas: those that belong on a type that fits have none.
func (c Contradiction) of(mix Mix, replicas int) Contradiction {
	switch {
	case replicas == 0 || !mix.Managed,
		c == ContradictionSpot && mix.Spot(replicas) == 0,
		c == ContradictionOnDemand && mix.OnDemand(replicas) == 0:
		return ContradictionNone
	}
	return c
}

// reason is what people are told.
func (c Contradiction) reason() string {
	const asked = " what the template's own nodeSelector or node affinity asks for"
	switch c {
	case ContradictionSpot:
		return "no spot node of the member is" + asked + ", and on-demand nodes are"
	case ContradictionOnDemand:
		return "no on-demand node of the member is" + asked + ", and spot nodes are"
	case ContradictionBoth:
		return "no node of the member is" + asked
	}
	return ""
}

// consequence is what follows from it for the replicas. A floor is not given up because its nodes are not there yet: an
// autoscaler brings nodes for pods that wait, and none for pods that were sent elsewhere.
func (c Contradiction) consequence() string {
	switch c {
	case ContradictionSpot:
		return "Replicas are placed on-demand, and a probe asks for such a node from time to time."
	case ContradictionOnDemand:
		return "Replicas that belong on-demand wait for such a node, and none is moved there."
	case ContradictionBoth:
		return "New replicas wait for such a node, and none is moved."
	}
	return ""
}

// karpenterPool is on the nodes that Karpenter made.
const karpenterPool = "karpenter.sh/nodepool"

// contradiction tells which capacity type a pod cannot have although the member has nodes of it: none of them is what the
// pod asks for, and nodes of the other type are, or no node at all is. Where no node of a type exists at all, or an autoscaler
// makes nodes, nothing is known of the nodes that may come: then pods wait, and it is a drought if none comes.
func (n nodeNeeds) contradiction(capacity CapacityLabels, nodes map[string]*nodeFacts) Contradiction {
	if len(n) == 0 {
		return ContradictionNone
	}
	var all, fitting tally
	for name, facts := range nodes {
		if _, made := facts.labels[karpenterPool]; made {
			return ContradictionNone
		}
		of := capacity.OfNode(facts.labels)
		all.add(of, 1)
		if n.fit(name, facts.labels) {
			fitting.add(of, 1)
		}
	}
	switch {
	case all.all > 0 && fitting.all == 0:
		return ContradictionBoth
	case all.spot > 0 && fitting.spot == 0 && fitting.onDemand > 0:
		return ContradictionSpot
	case all.onDemand > 0 && fitting.onDemand == 0 && fitting.spot > 0:
		return ContradictionOnDemand
	}
	return ContradictionNone
}

// contradictionMemo remembers the answer for a template while the nodes stay what they are: admissions ask for it.
type contradictionMemo struct {
	last atomic.Pointer[contradictionFound]
}

type contradictionFound struct {
	nodes uint64 // the table's generation
	what  Contradiction
	since time.Time
}

// contradiction returns what of the nodes pods of a template cannot have, and since when that is known.
func (t *nodeTable) contradiction(needs nodeNeeds, memo *contradictionMemo, capacity CapacityLabels, now time.Time) (Contradiction, time.Time) {
	if len(needs) == 0 {
		return ContradictionNone, time.Time{}
	}
	before, generation := memo.last.Load(), t.generation.Load()
	if before != nil && before.nodes == generation {
		return before.what, before.since
	}
	found := &contradictionFound{nodes: generation, since: now}
	if !t.scaled.Load() {
		t.mu.RLock()
		found.what = needs.contradiction(capacity, t.known)
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
func (d *directory) contradictionLocked(o *owner) (Contradiction, time.Time) {
	if o.template == nil {
		return ContradictionNone, time.Time{}
	}
	return d.nodes.contradiction(o.template.needs, &o.template.memo, d.capacity, time.Now())
}

// observeContradictions sets what the nodes cannot give to the templates of a workload's owners.
func (d *directory) observeContradictions(o *Observed) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range o.Owners {
		if known := d.owners[o.Owners[i].UID]; known != nil {
			o.Owners[i].Contradiction, _ = d.contradictionLocked(known)
		}
	}
}

// tellContradiction finds the contradiction that concerns the workload, if there is one.
func (pl *planner) tellContradiction() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if found := o.Contradiction.of(pl.mix, o.Replicas); found != ContradictionNone {
			pl.result.Contradiction = found
		}
	}
}

// waitForNodes says of a workload whose replicas have nowhere to go what they wait for.
func (pl *planner) waitForNodes(c Contradiction, replicas int) {
	pl.wait(Wait{Kind: WaitTemplate, Replicas: replicas}, "%s", c.reason())
}
