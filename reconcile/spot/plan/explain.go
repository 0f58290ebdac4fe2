package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Explain says in plain sentences what a workload's policy wants, what is there, and what is done about it.
func Explain(replicas int, p *policy.Policy, r *Result) []string {
	lines := []string{explainPolicy(replicas, p)}
	have := fmt.Sprintf("There are %d on spot and %d on-demand", r.SpotActual, r.OnDemandActual)
	if r.UnknownActual > 0 {
		have += fmt.Sprintf(", and %d of unknown type", r.UnknownActual)
	}
	if r.Pending > 0 {
		have += fmt.Sprintf("; %s not ready", phrase.Count(r.Pending, "of them is", "of them are"))
	}
	if r.Interrupted > 0 {
		have += fmt.Sprintf("; %s on nodes being terminated", phrase.Count(r.Interrupted, "more pod runs", "more pods run"))
	}
	if r.Advised > 0 {
		have += fmt.Sprintf("; %s on nodes at risk of interruption", phrase.Count(r.Advised, "of them is", "of them are"))
	}
	if r.Released > 0 {
		have += "; " + phrase.Count(r.Released, "released pod serves until its replacement is ready", "released pods serve until their replacements are ready")
	}
	lines = append(lines, have+".", phrase.Sentence(r.Reason))
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Reason != "" && !strings.Contains(r.Reason, w.Reason) {
			lines = append(lines, phrase.Sentence(w.Reason))
		}
	}
	for _, note := range r.Notes {
		lines = append(lines, phrase.Sentence(note))
	}
	return lines
}

func explainPolicy(replicas int, p *policy.Policy) string {
	switch {
	case !p.Valid():
		return "The policy is invalid: new replicas go on-demand, and none is moved to change the mix."
	case !p.Managed():
		return "There is no policy: new replicas are scheduled without a capacity type, and none is moved."
	}
	m := p.Mix()
	share, floor := "no share is set, so none", "no floor"
	if p.Percentage != nil {
		share = fmt.Sprintf("%d%% (from the %s)", m.Percent, p.PercentageSource)
	}
	if p.MinOnDemand != nil {
		floor = fmt.Sprintf("at least %d on-demand (from the %s)", m.Floor, p.MinOnDemandSource)
	}
	text := fmt.Sprintf("Of %s, %d belong on spot and %d on-demand: %s on spot, %s.", phrase.Count(replicas, "replica"), m.Spot(replicas), m.OnDemand(replicas), share, floor)
	if p.Window != nil {
		text += fmt.Sprintf(" Replicas are only moved in the window %s (from the %s).", p.Window, p.WindowSource)
	}
	if p.MaxMovesSource != policy.SourceNone {
		text += fmt.Sprintf(" At most %s of them are moved at a time (from the %s).", p.MaxMoves, p.MaxMovesSource)
	}
	if p.CooldownSource != policy.SourceNone {
		text += fmt.Sprintf(" Two batches are at least %s apart (from the %s).", p.Cooldown, p.CooldownSource)
	}
	return text
}

// ExplainFallBacks says where replicas go, step by step, when capacity has no room for them; empty: the policy asks for no spot
// capacity. patience is how long a replica waits before its capacity counts as dry; 0: forever.
func ExplainFallBacks(p *policy.Policy, patience time.Duration) string {
	m := p.Mix()
	if !m.Managed || m.Percent == 0 || patience == 0 {
		return ""
	}
	text := fmt.Sprintf("If spot has no room for %s, new replicas go on-demand until it has room again. If on-demand has no room, ", patience)
	if m.Floor > 0 {
		return text + fmt.Sprintf("new replicas above the floor of %d go to spot and the floor waits. If neither has room, all new replicas wait for a node.", m.Floor)
	}
	return text + "new replicas go to spot. If neither has room, all new replicas wait for a node."
}

// budgetPatience is how old an on-demand replica is before it is said that no disruption budget protects it: the budget may be
// created after the workload.
const budgetPatience = time.Minute

// noteProtection says what the floor and the mix may suffer from others.
func (pl *planner) noteProtection() {
	least := pl.floor.least
	if least <= 0 || pl.BudgetsUnknown {
		return
	}
	pl.result.Unprotected = slices.ContainsFunc(pl.owners, func(o ownerPods) bool {
		return slices.ContainsFunc(o.alive, func(pod *Pod) bool {
			return pod.Capacity == capacity.OnDemand && pl.now.Sub(pod.Created) >= budgetPatience && !pl.protected(pod, least)
		})
	})
	if pl.result.Unprotected {
		pl.note("%s", UnprotectedFloor(least))
	}
}

// UnprotectedFloor says what a floor lacks.
func UnprotectedFloor(floor int) string {
	return fmt.Sprintf("no PodDisruptionBudget keeps %s healthy: a node drain may evict the whole on-demand floor at once", phrase.Count(floor, "replica"))
}

// protected reports whether a disruption budget that selects a pod keeps at least so many pods healthy.
func (pl *planner) protected(pod *Pod, least int) bool {
	return slices.ContainsFunc(pod.Budgets, func(at int) bool { return pl.Budgets[at].Desired >= least })
}

// noteProblems notes the values that cannot be used and do not make the policy invalid.
func (pl *planner) noteProblems() {
	for _, found := range pl.policy.Problems {
		if found.Severity != policy.SeverityPlacement {
			pl.note("%s; %s", found, found.Severity.Consequence())
		}
	}
}

// state sets the state and its reason.
func (pl *planner) state(state State, format string, args ...any) {
	pl.result.State, pl.result.Reason = state, fmt.Sprintf(format, args...)
}

func (pl *planner) note(format string, args ...any) {
	pl.result.Notes = append(pl.result.Notes, fmt.Sprintf(format, args...))
}

// recheck asks for another plan at a time, if none is asked for earlier.
func (pl *planner) recheck(at time.Time) {
	if at.After(pl.now) && (pl.result.Recheck.IsZero() || at.Before(pl.result.Recheck)) {
		pl.result.Recheck = at
	}
}

// why is the message of the Event about an eviction.
func (pl *planner) why(o *ownerPods) string {
	return fmt.Sprintf("%s has %d replicas more than the policy's %d", pl.from, pl.excess, pl.mix.Wanted(pl.from, o.Replicas))
}

func problems(list []policy.Problem) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].String()
	}
	return strings.Join(texts, "; ")
}
