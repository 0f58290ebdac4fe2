package plan

import (
	"iter"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Contradiction says which of a member's nodes are not what a template's own nodeSelector and required node affinity ask for.
type Contradiction string

// Contradictions. The zero value is [ContradictionNone].
const (
	ContradictionNone     Contradiction = ""          // there is none, or nothing is known about the nodes that may come
	ContradictionSpot     Contradiction = "spot"      // no spot node fits, and on-demand nodes do
	ContradictionOnDemand Contradiction = "on-demand" // no on-demand node fits, and spot nodes do
	ContradictionBoth     Contradiction = "any"       // no node at all fits
)

// LeavesOut reports whether no node of a capacity type is what the template asks for.
func (c Contradiction) LeavesOut(capacityType capacity.Type) bool {
	switch c {
	case ContradictionSpot:
		return capacityType == capacity.Spot
	case ContradictionOnDemand:
		return capacityType == capacity.OnDemand
	}
	return c == ContradictionBoth
}

// Of returns what of a contradiction concerns so many replicas: those that belong on a type that fits have none.
func (c Contradiction) Of(mix policy.Mix, replicas int) Contradiction {
	switch {
	case replicas == 0 || !mix.Managed,
		c == ContradictionSpot && mix.Spot(replicas) == 0,
		c == ContradictionOnDemand && mix.OnDemand(replicas) == 0:
		return ContradictionNone
	}
	return c
}

// Message is the text for people.
func (c Contradiction) Message() string {
	const matches = " matches the template's own nodeSelector or node affinity"
	switch c {
	case ContradictionSpot:
		return "no spot node of the member" + matches + ", and on-demand nodes do"
	case ContradictionOnDemand:
		return "no on-demand node of the member" + matches + ", and spot nodes do"
	case ContradictionBoth:
		return "no node of the member" + matches
	}
	return ""
}

// Consequence is what follows from it for the replicas. A floor is not given up because its nodes are not there yet: an
// autoscaler brings nodes for pods that wait, and none for pods that were sent elsewhere.
func (c Contradiction) Consequence() string {
	switch c {
	case ContradictionSpot:
		return "Replicas are placed on-demand, and a probe pod requests such a node from time to time."
	case ContradictionOnDemand:
		return "Replicas that belong on-demand wait for such a node, and none is moved there."
	case ContradictionBoth:
		return "New replicas wait for such a node, and none is moved."
	}
	return ""
}

// karpenterPool is on the nodes that Karpenter made.
const karpenterPool = "karpenter.sh/nodepool"

// ContradictionOf reports which capacity type a pod cannot have although the member has nodes of it: none of them is what the
// pod asks for, and nodes of the other type are, or no node at all is. Where no node of a type exists at all, or an autoscaler
// makes nodes, nothing is known about the nodes that may come: then pods wait, and it is a drought if none comes.
func ContradictionOf(needs capacity.NodeRequirements, capacityType capacity.Labels, nodes iter.Seq2[string, map[string]string]) Contradiction {
	if len(needs) == 0 {
		return ContradictionNone
	}
	var all, fitting capacity.Tally
	for name, labels := range nodes {
		if _, made := labels[karpenterPool]; made {
			return ContradictionNone
		}
		of := capacityType.OfNode(labels)
		all.Add(of, 1)
		if needs.Fit(name, labels) {
			fitting.Add(of, 1)
		}
	}
	switch {
	case all.All > 0 && fitting.All == 0:
		return ContradictionBoth
	case all.Spot > 0 && fitting.Spot == 0 && fitting.OnDemand > 0:
		return ContradictionSpot
	case all.OnDemand > 0 && fitting.OnDemand == 0 && fitting.Spot > 0:
		return ContradictionOnDemand
	}
	return ContradictionNone
}

// noteContradiction finds the contradiction that concerns the workload, if there is one.
func (pl *planner) noteContradiction() {
	for i := range pl.owners {
		o := &pl.owners[i]
		if found := o.Contradiction.Of(pl.mix, o.Replicas); found != ContradictionNone {
			pl.result.Contradiction = found
		}
	}
}

// waitForNodes says of a workload whose replicas have nowhere to go what they wait for.
func (pl *planner) waitForNodes(c Contradiction, replicas int) {
	pl.wait(Wait{Kind: WaitTemplate, Replicas: replicas}, "%s", c.Message())
}
