package spot

import (
	"fmt"
	"slices"
	"time"
)

// underCeiling takes the moves out of a plan that the ceilings of the member and the hub do not allow now. What is urgent, and
// what ends a release, is not held back.
func (e *Engine) underCeiling(s *subject, plan *PlanResult, now time.Time) {
	want := 0
	for i := range plan.Releases {
		if plan.Releases[i].Released.For.Paced() {
			want++
		}
	}
	for i := range plan.Evictions {
		if plan.Evictions[i].For.Paced() {
			want++
		}
	}
	grant := e.ceiling.Grant(MoveKey{Member: s.member, WorkloadKey: s.key}, plan.Moving, want, now)
	if grant.Moves >= want {
		return
	}
	left := grant.Moves
	over := func(purpose Purpose) bool {
		if !purpose.Paced() {
			return false
		}
		left--
		return left < 0
	}
	plan.Releases = slices.DeleteFunc(plan.Releases, func(r Release) bool { return over(r.Released.For) })
	plan.Evictions = slices.DeleteFunc(plan.Evictions, func(ev Eviction) bool { return over(ev.For) })
	plan.Deferred(want-grant.Moves, grant.Scope, grant.Retry)
}

// tell records in the member what was done about a workload, and counts it.
func (e *Engine) tell(s *subject, plan *PlanResult, released, evicted map[Purpose]int) {
	e.metrics.moved(s.member, released)
	e.metrics.moved(s.member, evicted)
	for purpose, reason := range map[Purpose]string{PurposeMove: "Moving", PurposeAdvisory: "Advised", PurposeDrought: "Drought", PurposeInterruption: "Interrupted"} {
		if n := released[purpose] + evicted[purpose]; n > 0 {
			s.events.Normal(reason, "%s %d of %d replicas: %s", verb(released[purpose], evicted[purpose]), n, s.replicas, plan.Reason)
		}
	}
	if n := evicted[PurposeFinish]; n > 0 {
		s.events.Normal("Released", "Evicted %d released pods, whose replacements are ready", n)
	}
}

// verb is the word for what was done to pods.
func verb(released, evicted int) string {
	switch {
	case evicted == 0:
		return "Released"
	case released == 0:
		return "Evicted"
	}
	return fmt.Sprintf("Released %d and evicted %d, together", released, evicted)
}
