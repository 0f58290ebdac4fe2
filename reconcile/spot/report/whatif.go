package report

import (
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Hypothesis is what a workload's policy might be. What is nil or empty stays as it is.
type Hypothesis struct {
	// Percentage and MinOnDemand take the place of those values, and heal them where they are invalid.
	Percentage, MinOnDemand *int
	// Replicas that the workload asks for.
	Replicas *int
	// Strategy of moves.
	Strategy policy.Strategy
	// IgnoreWindow plans as if the disruption window were open.
	IgnoreWindow bool
}

// WhatIf is the answer to a [Hypothesis].
type WhatIf struct {
	// Now is the workload as its last plan showed it, Then as its next plan would.
	Now, Then Workload
	// Moves is how many replicas are on the capacity type that would have too many.
	Moves int
	// First are the moves that would start at once, in their order.
	First []Move
}

// apply returns what the plan would be made from.
func (h Hypothesis) apply(p Planned, keys policy.Keys) Planned {
	overrule := func(into **int, from *int, source *policy.Source, key, path string) {
		if from == nil {
			return
		}
		*into, *source = from, policy.SourceRequest
		p.Policy.Problems = slices.DeleteFunc(slices.Clone(p.Policy.Problems), func(found policy.Problem) bool { return found.Key == key || found.Key == path })
	}
	overrule(&p.Policy.Percentage, h.Percentage, &p.Policy.PercentageSource, keys.SpotPercentage(), policy.PathPercentage)
	overrule(&p.Policy.MinOnDemand, h.MinOnDemand, &p.Policy.MinOnDemandSource, keys.MinOnDemand(), policy.PathMinOnDemand)
	if h.Replicas != nil {
		p.Observed.Replicas = *h.Replicas
		if len(p.Observed.Owners) == 1 {
			p.Observed.Owners = slices.Clone(p.Observed.Owners)
			p.Observed.Owners[0].Replicas = *h.Replicas
		}
	}
	if h.Strategy != "" {
		p.Settings.Strategy = h.Strategy
	}
	if h.IgnoreWindow {
		p.Policy.Window, p.Policy.WindowSource, p.Policy.WindowInvalid = nil, policy.SourceNone, false
	}
	return p
}

// Suppose answers what the plan of a workload would be under a hypothesis, from what its last plan was made of. view is what was shown of the
// last plan, keys are those of the annotations that a hypothesis overrules, now is the time for which is planned. It changes nothing.
func Suppose(view *Workload, last Planned, h Hypothesis, keys policy.Keys, now time.Time) WhatIf {
	supposed := h.apply(last, keys)
	supposed.Plan, supposed.At = plan.Plan(supposed.Observed, supposed.Policy, supposed.Settings, now), now
	then := Of(view.Member, view.WorkloadKey, &supposed)
	then.Explanation = supposed.Explain()
	return WhatIf{Now: *view, Then: then, Moves: excessIn(&then), First: firstMoves(&supposed.Plan)}
}

// excessIn is how many replicas are on the capacity type that has too many of them.
func excessIn(v *Workload) int {
	if !v.Policy.Managed() || !v.Policy.Valid() {
		return 0
	}
	return max(v.SpotActual-v.SpotWanted, v.OnDemandActual-v.OnDemandWanted, 0)
}

// firstMoves are what a plan starts at once.
func firstMoves(plan *plan.Result) []Move {
	var moves []Move
	for i := range plan.Releases {
		moves = append(moves, MoveOfRelease(&plan.Releases[i], time.Time{}))
	}
	for i := range plan.Evictions {
		moves = append(moves, MoveOfEviction(&plan.Evictions[i], time.Time{}))
	}
	return moves
}
