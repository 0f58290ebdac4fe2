package spot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// action is one plan while it is carried out, and the result of its writes.
type action struct {
	*Engine
	dir     *directory
	subject *subject
	now     time.Time

	released map[plan.Purpose]int
	eviction eviction
	assigned int
	gone     bool // a pod that was to be assigned is gone
	denials  denialsMet
	errs     errorList
}

// act writes what the plan says, and returns when to look again. What is urgent and what ends releases comes first and depends
// on nothing else; then pods get their slots, and then replicas move for the mix. All of it is tried, whatever fails before:
// the errors are returned together, so that the workload is tried again with a back-off.
func (e *Engine) act(ctx context.Context, dir *directory, s *subject, decided *plan.Result, now time.Time) (reconcile.Result, error) {
	e.underCeiling(s, decided, now)
	a := &action{Engine: e, dir: dir, subject: s, now: now, released: map[plan.Purpose]int{}, eviction: eviction{evicted: map[plan.Purpose]int{}}}
	a.evict(ctx, evictionsOf(decided.Evictions, comesFirst))
	a.release(ctx, releasesOf(decided.Releases, comesFirst))
	unchanged := a.assignSlots(ctx, decided.Assignments)
	stays := func(pod types.UID) bool { _, failed := unchanged[pod]; return failed } // the plan counts on its new slot
	rest := func(p plan.Purpose) bool { return !comesFirst(p) }
	a.release(ctx, slices.DeleteFunc(releasesOf(decided.Releases, rest), func(r plan.Release) bool { return stays(r.Pod) }))
	a.evict(ctx, slices.DeleteFunc(evictionsOf(decided.Evictions, rest), func(ev plan.Eviction) bool { return stays(ev.Pod) }))
	e.record(s, decided, a.released, a.eviction.evicted)
	a.settle(decided)
	a.searchAgain(decided)
	if err := a.errs.join(); err != nil {
		return reconcile.Done(), err
	}
	if decided.Recheck.IsZero() {
		return reconcile.Done(), nil
	}
	return reconcile.RequeueAfter(decided.Recheck.Sub(now), decided.Reason), nil
}

// searchAgain looks for pods without a slot again when one of them is gone: there is no event for those.
func (a *action) searchAgain(decided *plan.Result) {
	if !a.gone {
		return
	}
	for i := range a.subject.sources {
		if o := a.dir.owner(ownerKey{a.subject.key.Namespace, a.subject.sources[i].UID}); o != nil {
			o.searchAgain()
		}
	}
	decided.Recheck = when.Earlier(decided.Recheck, a.now.Add(plan.SearchPatience))
}

// comesFirst reports whether what is done for the purpose depends on no slot that this plan gives.
func comesFirst(p plan.Purpose) bool { return p.Urgent() || p == plan.PurposeFinish }

// evictionsOf returns the evictions for some purposes.
func evictionsOf(all []plan.Eviction, purpose func(plan.Purpose) bool) []plan.Eviction {
	return slices.DeleteFunc(slices.Clone(all), func(e plan.Eviction) bool { return !purpose(e.For) })
}

// releasesOf returns the releases for some purposes.
func releasesOf(all []plan.Release, purpose func(plan.Purpose) bool) []plan.Release {
	return slices.DeleteFunc(slices.Clone(all), func(r plan.Release) bool { return !purpose(r.Released.For) })
}

// settle adds to the plan what the API server refused: that is a wait. Where nothing was done, it is the workload's state.
func (a *action) settle(decided *plan.Result) {
	idle := len(a.released)+len(a.eviction.evicted) == 0
	if d := a.denials; d.pods > 0 {
		decided.AddWait(plan.Wait{Kind: plan.WaitRefused, Replicas: d.pods, Until: d.retry, Reason: d.message})
		decided.Recheck = when.Earlier(decided.Recheck, d.retry)
		if idle && a.assigned == 0 {
			decided.State, decided.Reason = plan.StateWaiting, d.message
		}
	}
	if r := a.eviction.refused; r != nil {
		decided.Refused(r.pods, r.budget, r.message, a.now.Add(r.retry))
		if idle {
			decided.State, decided.Reason = plan.StateWaiting, r.message
		}
	}
}

// underCeiling takes the moves out of a plan that the ceilings of the member and the hub do not allow now. What is urgent, and
// what ends a release, is not held back.
func (e *Engine) underCeiling(s *subject, decided *plan.Result, now time.Time) {
	want := 0
	for i := range decided.Releases {
		if decided.Releases[i].Released.For.Paced() {
			want++
		}
	}
	for i := range decided.Evictions {
		if decided.Evictions[i].For.Paced() {
			want++
		}
	}
	grant := e.moves.Grant(plan.MoveKey{Member: s.member, WorkloadKey: s.key}, decided.Moving, want, now)
	if grant.Moves >= want {
		return
	}
	left := grant.Moves
	over := func(purpose plan.Purpose) bool {
		if !purpose.Paced() {
			return false
		}
		left--
		return left < 0
	}
	decided.Releases = slices.DeleteFunc(decided.Releases, func(r plan.Release) bool { return over(r.Released.For) })
	decided.Evictions = slices.DeleteFunc(decided.Evictions, func(ev plan.Eviction) bool { return over(ev.For) })
	decided.Deferred(want-grant.Moves, grant.Scope, grant.Retry)
}

// Reasons of Events about batches of pods. Each message says how many of the replicas, and why.
const (
	eventInterrupted = "Interrupted" // Pods were evicted or released because their node is being terminated.
	// Pods that wait for a capacity type without room were evicted, so that their replacements go to the other type.
	eventInsufficientCapacity = "InsufficientCapacity"
	eventAdvised              = "Advised"  // Pods were evicted or released because their node is at risk of termination.
	eventMoving               = "Moving"   // Pods were evicted or released so that their replacements go to the other capacity type.
	eventReleased             = "Released" // Released pods were evicted: their replacements are ready.
)

// movedFor are the reasons of Events about moves, in the order in which they are recorded.
var movedFor = []struct {
	purpose plan.Purpose
	reason  string
}{
	{plan.PurposeInterruption, eventInterrupted}, {plan.PurposeInsufficientCapacity, eventInsufficientCapacity}, {plan.PurposeAdvisory, eventAdvised}, {plan.PurposeMove, eventMoving},
}

// record records in the member what was done about a workload, and counts it.
func (e *Engine) record(s *subject, decided *plan.Result, released, evicted map[plan.Purpose]int) {
	e.metrics.CountMoves(s.member, released)
	e.metrics.CountMoves(s.member, evicted)
	for _, moved := range movedFor {
		if n := released[moved.purpose] + evicted[moved.purpose]; n > 0 {
			s.events.Normal(moved.reason, "%s %d of %d replicas: %s", verb(released[moved.purpose], evicted[moved.purpose]), n, s.replicas, decided.Reason)
		}
	}
	if n := evicted[plan.PurposeFinish]; n > 0 {
		s.events.Normal(eventReleased, "Evicted %d released pods, whose replacements are ready", n)
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
