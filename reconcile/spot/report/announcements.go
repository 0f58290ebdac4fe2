package report

import (
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// Announcement is one Event about a workload.
type Announcement struct {
	// Warning tells its type: Warning, else Normal.
	Warning bool
	// Reason is that of the Event, one word in CamelCase. Message is one or more sentences.
	Reason, Message string
}

// Announcements returns the Events that say what has changed between two plans of a workload: one for each change, none without. known tells
// whether there was a plan before; if not, before is not looked at.
//
// A process that has just started does not know what was before, and says nothing that its predecessor has said already:
// known is false. Only what a person has to fix is always said; its Event has a name by what it says, so that it is written
// once whoever writes it.
func Announcements(before *Workload, known bool, now *Workload) []Announcement {
	var all []Announcement
	for _, problem := range now.Policy.Problems {
		if !known || !slices.Contains(before.Policy.Problems, problem) {
			all = append(all, Announcement{true, "InvalidPolicy", problem.String() + "; " + problem.Severity.Consequence()})
		}
	}
	if now.Unprotected && (!known || !before.Unprotected) {
		all = append(all, Announcement{true, "Unprotected", plan.UnprotectedFloor(now.Policy.Mix().Floor)})
	}
	if now.Skew != "" && (!known || before.Skew == "") {
		all = append(all, Announcement{true, "Skewed", phrase.Sentence(now.Skew)})
	}
	if c := now.Contradiction; c != plan.ContradictionNone && (!known || before.Contradiction != c) {
		all = append(all, Announcement{true, "Contradiction", phrase.Sentence(c.Message()) + " " + c.Consequence()})
	}
	if !known || signOf(before) == signOf(now) {
		return all
	}
	switch now.State {
	case plan.StateConverged:
		all = append(all, Announcement{false, "Converged", phrase.Count(now.SpotActual, "replica") + " on spot, " + phrase.Count(now.OnDemandActual, "replica") + " on on-demand capacity"})
	case plan.StateWaiting, plan.StateReadOnly, plan.StateUnmanaged:
		all = append(all, Announcement{false, string(now.State), phrase.Sentence(now.Reason)})
	}
	return all // Moving: each batch says what it moves
}

// signOf is what two views have in common between which nothing has changed that people have to be told: the state and, if
// it waits, what for. Numbers and times are no part of it, nor are waits that come and go with every batch.
func signOf(v *Workload) string {
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
