package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// Types of the conditions that the framework keeps after the rules of kstatus, so that kubectl wait, Flux and Argo CD
// understand them. Ready is always there; the others are there only while they are true.
const (
	// ConditionReady: the object is as its spec wants it.
	ConditionReady = "Ready"
	// ConditionReconciling: work is under way or is tried again; nobody has to do anything.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: no progress without a change: of the spec, or of what the message names.
	ConditionStalled = "Stalled"
	// ConditionPaused: the annotation plimsoll.dev/paused keeps the object from being reconciled.
	ConditionPaused = "Paused"
)

// Reasons of those conditions when the framework sets them. A server's refusal has the server's own reason, for example
// Forbidden or Invalid.
const (
	// ReasonSucceeded: the reconcile said Done.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing: it asked to look again.
	ReasonProgressing = "Progressing"
	// ReasonFailed: it returned an error, which is retried with back-off.
	ReasonFailed = "ReconcileFailed"
	// ReasonPanicked: it panicked, and is retried with back-off.
	ReasonPanicked = "ReconcilePanicked"
	// ReasonTimedOut: its deadline passed; it is retried with back-off.
	ReasonTimedOut = "DeadlineExceeded"
	// ReasonContested: another field manager sets a field differently again and again; see [ContestedError].
	ReasonContested = "FieldContested"
	// ReasonTerminal: it returned a TerminalError that no server's answer is behind.
	ReasonTerminal = "Terminal"
	// ReasonDeleting: the object is being deleted, and is cleaned up first.
	ReasonDeleting = "Deleting"
	// ReasonOverdue: finalizing the object has taken longer than its deadline, and continues.
	ReasonOverdue = "CleanUpOverdue"
	// ReasonPaused: a person paused the object.
	ReasonPaused = "PausedByAnnotation"
)

// Conditions are the conditions of a request's object as the status will show them. They carry the generation that is
// reconciled, and lastTransitionTime moves only when the status of a condition does. Not safe for concurrent use; all
// methods do nothing on nil, and on an object that is no [StatusObject] they are written nowhere.
//
// What a reconciler leaves open is filled in when it has ended:
//
//	ended with            Ready                        Reconciling             Stalled
//	Done                  True                         absent                  absent
//	Requeue(After)        False, with the reason       True, with the reason   absent
//	an error              False, with the error        True                    absent
//	a TerminalError       False, with the error        absent                  True, with the server's reason
//
// Leaving open means: neither set nor removed by this reconcile. When a reconciler that did not fail says itself that
// Ready is True, Reconciling is absent; when it says that Ready is not, Reconciling is True with the same reason and
// message. After an error Ready is False whatever the reconciler said before, but for conflicts and for writes that
// this replica may no longer make: those are nobody's business and change no condition.
type Conditions struct {
	generation int64
	list       []metav1.Condition
	touched    map[string]bool
}

// True sets a condition. The reason is CamelCase, the message a format; an empty format gives an empty message.
func (c *Conditions) True(condition, reason, format string, args ...any) {
	c.set(condition, metav1.ConditionTrue, reason, message(format, args))
}

// False sets a condition.
func (c *Conditions) False(condition, reason, format string, args ...any) {
	c.set(condition, metav1.ConditionFalse, reason, message(format, args))
}

// Unknown sets a condition.
func (c *Conditions) Unknown(condition, reason, format string, args ...any) {
	c.set(condition, metav1.ConditionUnknown, reason, message(format, args))
}

// Remove removes a condition, so that it is absent: the way in which Reconciling, Stalled and their like say that all is well.
func (c *Conditions) Remove(condition string) {
	if c != nil {
		meta.RemoveStatusCondition(&c.list, condition)
		c.touch(condition)
	}
}

// Get returns a condition as it is now.
func (c *Conditions) Get(condition string) (metav1.Condition, bool) {
	if c != nil {
		if found := meta.FindStatusCondition(c.list, condition); found != nil {
			return *found, true
		}
	}
	return metav1.Condition{}, false
}

// isTrue reports whether a condition is there and True.
func (c *Conditions) isTrue(condition string) bool {
	found, _ := c.Get(condition)
	return found.Status == metav1.ConditionTrue
}

// conclude fills in what the reconciler left open, by how the reconcile ended.
func (c *Conditions) conclude(end ending) {
	if end.outcome == codePaused {
		c.True(ConditionPaused, ReasonPaused, pausedReason)
		return
	}
	if !c.said(ConditionPaused) {
		c.Remove(ConditionPaused)
	}
	switch {
	case end.overdue != "":
		c.stall(ReasonOverdue, end.overdue+": "+end.says())
	case end.terminal():
		c.stall(terminalReason(end.err), end.err.Error())
	case end.err != nil:
		c.fill(failureReason(end), end.err.Error())
	case end.outcome == codePending:
		c.fill(ReasonDeleting, end.result.reason)
	default:
		c.complete(end.result)
	}
}

// stall says that nothing moves without a change.
func (c *Conditions) stall(reason, message string) {
	c.False(ConditionReady, reason, "%s", message)
	c.True(ConditionStalled, reason, "%s", message)
	c.Remove(ConditionReconciling)
}

// fill says that it continues.
func (c *Conditions) fill(reason, message string) {
	c.False(ConditionReady, reason, "%s", message)
	c.True(ConditionReconciling, reason, "%s", message)
	c.Remove(ConditionStalled)
}

// complete fills in what the reconciler left open when it did not fail.
func (c *Conditions) complete(result Result) {
	switch {
	case c.said(ConditionReady):
	case result.verb == verbDone:
		c.True(ConditionReady, ReasonSucceeded, "")
	default:
		c.False(ConditionReady, ReasonProgressing, "%s", result.reason)
	}
	if !c.said(ConditionStalled) {
		c.Remove(ConditionStalled)
	}
	if c.said(ConditionReconciling) {
		return
	}
	if ready, there := c.Get(ConditionReady); there && ready.Status != metav1.ConditionTrue && !c.isTrue(ConditionStalled) {
		c.True(ConditionReconciling, ready.Reason, "%s", ready.Message)
	} else {
		c.Remove(ConditionReconciling)
	}
}

var failureReasons = map[outcomeCode]string{codeNone: ReasonFailed, codePanic: ReasonPanicked, codeTimeout: ReasonTimedOut}

// failureReason is the word for an error that is retried.
func failureReason(end ending) string {
	if end.outcome == codeNone && errors.As(end.err, new(*ContestedError)) {
		return ReasonContested
	}
	return failureReasons[end.outcome]
}

// terminalReason is the word of the server that refused something, if one did.
func terminalReason(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return ReasonTerminal
}

// says is what an ending says in words.
func (e ending) says() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.result.reason
}

// newConditions starts from those that an object has.
func newConditions(have []metav1.Condition, generation int64) *Conditions {
	return &Conditions{generation: generation, list: copyConditions(have)}
}

func (c *Conditions) set(condition string, status metav1.ConditionStatus, reason, message string) {
	if c == nil {
		return
	}
	meta.SetStatusCondition(&c.list, metav1.Condition{
		Type: condition, Status: status, Reason: wellFormed(reason), Message: message, ObservedGeneration: c.generation,
	})
	c.touch(condition)
}

func (c *Conditions) touch(condition string) {
	if c.touched == nil {
		c.touched = map[string]bool{}
	}
	c.touched[condition] = true
}

func message(format string, args []any) string {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return object.Clip(format)
}

// maxReasonLength is what the API allows.
const maxReasonLength = 1024

// wellFormed makes a reason that the API server takes: a letter, then letters, digits and _,: inside.
func wellFormed(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if isLetter(r) || (r >= '0' && r <= '9') || strings.ContainsRune("_,:", r) {
			return r
		}
		return -1
	}, reason)
	reason = strings.TrimLeftFunc(reason, func(r rune) bool { return !isLetter(r) })
	reason = strings.TrimRight(reason[:min(len(reason), maxReasonLength)], ",:")
	if reason == "" {
		return "Unknown"
	}
	return reason
}

func isLetter(r rune) bool { return (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') }

// copyConditions copies a list whose elements hold no pointers.
func copyConditions(list []metav1.Condition) []metav1.Condition { return slices.Clone(list) }
