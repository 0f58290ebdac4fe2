package spot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// action is one plan while it is carried out, and what became of its writes.
type action struct {
	*Engine
	dir     *directory
	subject *subject
	now     time.Time

	released map[Purpose]int
	eviction eviction
	stamped  int
	gone     bool // a pod that was to be stamped is gone
	denials  denialsMet
	errs     errorList
}

// act writes what the plan says, and tells when to look again. What is urgent and what ends releases comes first and depends
// on nothing else; then pods get their slots, and then replicas move for the mix. All of it is tried, whatever fails before:
// the errors are returned together, so that the workload is tried again with a back-off.
func (e *Engine) act(ctx context.Context, dir *directory, s *subject, plan *Result, now time.Time) (reconcile.Result, error) {
	e.underCeiling(s, plan, now)
	a := &action{Engine: e, dir: dir, subject: s, now: now, released: map[Purpose]int{}, eviction: eviction{evicted: map[Purpose]int{}}}
	a.evict(ctx, evictionsOf(plan.Evictions, comesFirst))
	a.release(ctx, releasesOf(plan.Releases, comesFirst))
	unchanged := a.stamp(ctx, plan.Stamps)
	stays := func(pod types.UID) bool { _, failed := unchanged[pod]; return failed } // the plan counts on its new slot
	rest := func(p Purpose) bool { return !comesFirst(p) }
	a.release(ctx, slices.DeleteFunc(releasesOf(plan.Releases, rest), func(r Release) bool { return stays(r.Pod) }))
	a.evict(ctx, slices.DeleteFunc(evictionsOf(plan.Evictions, rest), func(ev Eviction) bool { return stays(ev.Pod) }))
	e.tell(s, plan, a.released, a.eviction.evicted)
	a.settle(plan)
	a.searchAgain(plan)
	if err := a.errs.join(); err != nil {
		return reconcile.Done(), err
	}
	if plan.Recheck.IsZero() {
		return reconcile.Done(), nil
	}
	return reconcile.RequeueAfter(plan.Recheck.Sub(now), plan.Reason), nil
}

// searchAgain looks for pods without a slot anew when one of them is gone: no event tells of those.
func (a *action) searchAgain(plan *Result) {
	if !a.gone {
		return
	}
	for i := range a.subject.sources {
		if o := a.dir.owner(a.subject.sources[i].UID); o != nil {
			o.searchAgain()
		}
	}
	plan.Recheck = when.Earlier(plan.Recheck, a.now.Add(liveListPatience))
}

// comesFirst tells whether what is done for the purpose depends on no slot that this plan gives.
func comesFirst(p Purpose) bool { return p.Urgent() || p == PurposeFinish }

// evictionsOf returns the evictions for some purposes.
func evictionsOf(all []Eviction, purpose func(Purpose) bool) []Eviction {
	return slices.DeleteFunc(slices.Clone(all), func(e Eviction) bool { return !purpose(e.For) })
}

// releasesOf returns the releases for some purposes.
func releasesOf(all []Release, purpose func(Purpose) bool) []Release {
	return slices.DeleteFunc(slices.Clone(all), func(r Release) bool { return !purpose(r.Released.For) })
}

// settle adds to the plan what the API server refused: that is a wait. Where nothing was done, it is the workload's state.
func (a *action) settle(plan *Result) {
	idle := len(a.released)+len(a.eviction.evicted) == 0
	if d := a.denials; d.pods > 0 {
		plan.AddWait(Wait{Kind: WaitRefused, Replicas: d.pods, Until: d.retry, Reason: d.message})
		plan.Recheck = when.Earlier(plan.Recheck, d.retry)
		if idle && a.stamped == 0 {
			plan.State, plan.Reason = StateWaiting, d.message
		}
	}
	if r := a.eviction.refused; r != nil {
		plan.Refused(r.pods, r.budget, r.message, a.now.Add(r.retry))
		if idle {
			plan.State, plan.Reason = StateWaiting, r.message
		}
	}
}

// underCeiling takes the moves out of a plan that the ceilings of the member and the hub do not allow now. What is urgent, and
// what ends a release, is not held back.
func (e *Engine) underCeiling(s *subject, plan *Result, now time.Time) {
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
	grant := e.moves.Grant(MoveKey{Member: s.member, WorkloadKey: s.key}, plan.Moving, want, now)
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
func (e *Engine) tell(s *subject, plan *Result, released, evicted map[Purpose]int) {
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
