package spot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// publish tells the API, the metrics and, when the state has changed, the member's Events what the plan said.
func (e *Engine) publish(dir *directory, s *subject, p *planned) {
	before, known := dir.view(s.key)
	view := viewOf(s.member, s.key, p)
	dir.setView(view)
	dir.journal.planned(s.key, *p)
	e.metrics.planned(&view)
	if !known && s.meta.CreationTimestamp.After(dir.since) {
		before, known = WorkloadView{}, true // it is new, and not only new to this process
	}
	for _, a := range announcements(&before, known, &view) {
		if a.warning {
			s.events.Warning(a.reason, "%s", a.message)
		} else {
			s.events.Normal(a.reason, "%s", a.message)
		}
	}
}

// viewOf is what a plan says to people.
func viewOf(member string, key policy.WorkloadKey, p *planned) WorkloadView {
	plan := &p.plan
	waits := slices.Clone(plan.Waits)
	slices.SortStableFunc(waits, compareWaits)
	return WorkloadView{
		Member: member, WorkloadKey: key, State: plan.State, Reason: plan.Reason, Policy: p.policy, Settings: p.settings,
		Replicas: p.observed.Replicas, SpotWanted: plan.SpotWanted, OnDemandWanted: plan.OnDemandWanted, SpotActual: plan.SpotActual,
		OnDemandActual: plan.OnDemandActual, Unassigned: plan.UnknownActual, Pending: plan.Pending,
		Contradiction: plan.Contradiction, Unprotected: plan.Unprotected, Skew: plan.Skew, Doomed: plan.Doomed, Released: plan.Released, Waits: waits, NextCheck: plan.Recheck, Planned: p.at,
	}
}

// compareWaits orders waits by their end, those without one last.
func compareWaits(a, b plan.Wait) int {
	if a.Until.IsZero() != b.Until.IsZero() {
		if b.Until.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
}

// announcement is one Event about a workload.
type announcement struct {
	warning         bool
	reason, message string
}

// announcements are the Events that say what has changed between two plans: one for a change, none without.
//
// A process that has just started does not know what was before, and says nothing that its predecessor has said already:
// known is false. Only what a person has to mend is always said; its Event has a name by what it says, so that it is written
// once whoever writes it.
func announcements(before *WorkloadView, known bool, now *WorkloadView) []announcement {
	var all []announcement
	for _, problem := range now.Policy.Problems {
		if !known || !slices.Contains(before.Policy.Problems, problem) {
			all = append(all, announcement{true, "InvalidPolicy", problem.String() + "; " + problem.Severity.Consequence()})
		}
	}
	if now.Unprotected && (!known || !before.Unprotected) {
		all = append(all, announcement{true, "Unprotected", plan.UnprotectedFloor(now.Policy.Mix().Floor)})
	}
	if now.Skew != "" && (!known || before.Skew == "") {
		all = append(all, announcement{true, "Skewed", phrase.Sentence(now.Skew)})
	}
	if c := now.Contradiction; c != plan.ContradictionNone && (!known || before.Contradiction != c) {
		all = append(all, announcement{true, "Contradiction", phrase.Sentence(c.Message()) + " " + c.Consequence()})
	}
	if !known || signOf(before) == signOf(now) {
		return all
	}
	switch now.State {
	case plan.StateConverged:
		all = append(all, announcement{false, "Converged", phrase.Count(now.SpotActual, "replica") + " on spot, " + phrase.Count(now.OnDemandActual, "replica") + " on on-demand capacity"})
	case plan.StateWaiting, plan.StateReadOnly, plan.StateUnmanaged:
		all = append(all, announcement{false, string(now.State), phrase.Sentence(now.Reason)})
	}
	return all // Moving: each batch says what it moves
}

// signOf is what two views have in common between which nothing has changed that people have to be told: the state and, if
// it waits, what for. Numbers and times are no part of it, nor are waits that come and go with every batch.
func signOf(v *WorkloadView) string {
	if v.State != plan.StateWaiting {
		return string(v.State)
	}
	sign := []string{string(v.State)}
	for i := range v.Waits {
		switch v.Waits[i].Kind {
		case plan.WaitCooldown, plan.WaitReplacement, plan.WaitUnexplained, plan.WaitCeiling:
		default:
			sign = append(sign, string(v.Waits[i].Kind)+"/"+v.Waits[i].Subject)
		}
	}
	slices.Sort(sign)
	return strings.Join(sign, " ")
}

// tellOfPods adds to the pods what the last plan said of them.
func tellOfPods(pods []PodView, plans []plan.PodPlan) {
	byName := make(map[string]*plan.PodPlan, len(plans))
	for i := range plans {
		byName[plans[i].Name] = &plans[i]
	}
	for i := range pods {
		if p := byName[pods[i].Name]; p != nil {
			pods[i].Doomed, pods[i].Released, pods[i].Waits = p.Doomed, p.Released, p.Waits
			pods[i].Reason = cmp.Or(p.Reason, pods[i].Reason)
		}
	}
}

// forget takes back what was published of a workload that is gone, or not enabled any more.
func (e *Engine) forget(member string, key policy.WorkloadKey) {
	e.metrics.forgetWorkload(member, key)
	e.moves.Forget(plan.MoveKey{Member: member, WorkloadKey: key})
	if dir := e.directory(member); dir != nil {
		dir.dropView(key)
		dir.journal.forget(key)
		dir.droughts.Note(key, false)
		dir.waits.note(key, nil)
	}
}
