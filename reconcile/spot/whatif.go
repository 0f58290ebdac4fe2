package spot

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	Now, Then WorkloadView
	// Moves is how many replicas are on the capacity type that would have too many.
	Moves int
	// First are the moves that would start at once, in their order.
	First []Move
}

// apply returns what the plan would be made from.
func (h Hypothesis) apply(p planned, keys policy.Keys) planned {
	overrule := func(into **int, from *int, source *policy.Source, key, path string) {
		if from == nil {
			return
		}
		*into, *source = from, policy.SourceRequest
		p.policy.Problems = slices.DeleteFunc(slices.Clone(p.policy.Problems), func(found policy.Problem) bool { return found.Key == key || found.Key == path })
	}
	overrule(&p.policy.Percentage, h.Percentage, &p.policy.PercentageSource, keys.SpotPercentage(), policy.PathPercentage)
	overrule(&p.policy.MinOnDemand, h.MinOnDemand, &p.policy.MinOnDemandSource, keys.MinOnDemand(), policy.PathMinOnDemand)
	if h.Replicas != nil {
		p.observed.Replicas = *h.Replicas
		if len(p.observed.Owners) == 1 {
			p.observed.Owners = slices.Clone(p.observed.Owners)
			p.observed.Owners[0].Replicas = *h.Replicas
		}
	}
	if h.Strategy != "" {
		p.settings.Strategy = h.Strategy
	}
	if h.IgnoreWindow {
		p.policy.Window, p.policy.WindowSource, p.policy.WindowInvalid = nil, policy.SourceNone, false
	}
	return p
}

// Suppose answers what the plan of a workload would be under a hypothesis, from what its last plan was made of. It changes
// nothing. It is false when the workload is not known, or not planned yet.
func (e *Engine) Suppose(member, kind, namespace, name string, h Hypothesis, now time.Time) (WhatIf, bool) {
	dir := e.directory(member)
	if dir == nil {
		return WhatIf{}, false
	}
	key := policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	view, shown := dir.view(key)
	last, known := dir.journal.last(key)
	if !shown || !known {
		return WhatIf{}, false
	}
	supposed := h.apply(last, e.Keys)
	supposed.plan, supposed.at = plan.Plan(supposed.observed, supposed.policy, supposed.settings, now), now
	then := viewOf(member, key, &supposed)
	then.Explanation = supposed.explain()
	return WhatIf{Now: view, Then: then, Moves: excessIn(&then), First: firstMoves(&supposed.plan)}, true
}

// excessIn is how many replicas are on the capacity type that has too many of them.
func excessIn(v *WorkloadView) int {
	if !v.Policy.Managed() || !v.Policy.Valid() {
		return 0
	}
	return max(v.SpotActual-v.SpotWanted, v.OnDemandActual-v.OnDemandWanted, 0)
}

// firstMoves are what a plan starts at once.
func firstMoves(plan *plan.Result) []Move {
	var moves []Move
	for i := range plan.Releases {
		moves = append(moves, moveOfRelease(&plan.Releases[i], time.Time{}))
	}
	for i := range plan.Evictions {
		moves = append(moves, moveOfEviction(&plan.Evictions[i], time.Time{}))
	}
	return moves
}

// moveOfRelease is what is remembered of a release.
func moveOfRelease(r *plan.Release, at time.Time) Move {
	return Move{At: at, Pod: r.Name, From: r.From, For: r.Released.For, Strategy: policy.StrategyRelease, Why: r.Why}
}

// moveOfEviction is what is remembered of an eviction.
func moveOfEviction(e *plan.Eviction, at time.Time) Move {
	return Move{At: at, Pod: e.Name, From: e.From, For: e.For, Strategy: policy.StrategyEvict, Why: e.Why}
}
