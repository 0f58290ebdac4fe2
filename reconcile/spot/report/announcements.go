package report

import (
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// Reasons of Events about workloads. Those of states have the state's name.
const (
	eventInvalidPolicy = "InvalidPolicy"             // An annotation has an invalid value; the message has its name, value and rule, and what holds until it is corrected.
	eventUnprotected   = "Unprotected"               // No PodDisruptionBudget protects the on-demand replicas.
	eventSkewed        = "Skewed"                    // The replicas do not keep a topology spread constraint of the pod template over both capacity types; the message names it.
	eventContradiction = "Contradiction"             // The pod template's node selector or affinity fits no node of one capacity type.
	eventConverged     = string(plan.StateConverged) // Every replica is on the capacity type where it belongs.
	eventWaiting       = string(plan.StateWaiting)   // Replicas should move, and cannot now; the message says what they wait for.
	eventReadOnly      = string(plan.StateReadOnly)  // Read-only mode holds for the workload: it is planned, and nothing is moved.
	eventUnmanaged     = string(plan.StateUnmanaged) // The workload is enabled, and neither it nor its namespace nor the hub's defaults set a percentage or a floor.
)

// Announcement is one Event about a workload.
type Announcement struct {
	// Warning is its type: Warning, else Normal.
	Warning bool
	// Reason is that of the Event, one word in CamelCase. Message is one or more sentences.
	Reason, Message string
}

// Announcements returns the Events that say what has changed between two plans of a workload: one for each change, none without. known says
// whether there was a plan before; if not, before is not looked at.
//
// A process that has just started does not know what was before, and says nothing that its predecessor has said already:
// known is false. Only what a person has to fix is always said; its Event has a name by what it says, so that it is written
// once whoever writes it.
func Announcements(before *Workload, known bool, now *Workload) []Announcement {
	var all []Announcement
	for _, problem := range now.Policy.Problems {
		if !known || !slices.Contains(before.Policy.Problems, problem) {
			all = append(all, Announcement{true, eventInvalidPolicy, problem.String() + "; " + problem.Severity.Consequence()})
		}
	}
	if now.Unprotected && (!known || !before.Unprotected) {
		all = append(all, Announcement{true, eventUnprotected, plan.UnprotectedFloor(now.Policy.Mix().Floor)})
	}
	if now.Skew != "" && (!known || before.Skew == "") {
		all = append(all, Announcement{true, eventSkewed, phrase.Sentence(now.Skew)})
	}
	if c := now.Contradiction; c != plan.ContradictionNone && (!known || before.Contradiction != c) {
		all = append(all, Announcement{true, eventContradiction, phrase.Sentence(c.Message()) + " " + c.Consequence()})
	}
	if !known || signOf(before) == signOf(now) {
		return all
	}
	switch now.State {
	case plan.StateConverged:
		all = append(all, Announcement{false, eventConverged, phrase.Count(now.SpotActual, "replica") + " on spot, " + phrase.Count(now.OnDemandActual, "replica") + " on on-demand capacity"})
	case plan.StateWaiting:
		all = append(all, Announcement{false, eventWaiting, phrase.Sentence(now.Reason)})
	case plan.StateReadOnly:
		all = append(all, Announcement{false, eventReadOnly, phrase.Sentence(now.Reason)})
	case plan.StateUnmanaged:
		all = append(all, Announcement{false, eventUnmanaged, phrase.Sentence(now.Reason)})
	}
	return all // Moving: each batch says what it moves
}

// signOf is what two views have in common between which nothing has changed that people have to know: the state and, if
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
