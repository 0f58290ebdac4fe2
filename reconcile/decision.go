package reconcile

import (
	"cmp"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// decision is what one reconcile means for its record.
type decision struct {
	outcome  outcomeCode
	attempts uint32 // consecutive tries without success, this one included
	reason   string // shown while it waits, or is idle for a reason
	err      string
	overdue  bool // cleaning up has taken too long
	next     nextStep
	after    time.Duration // with nextWait and nextRetry
	asked    asking
}

// nextStep is where the record goes.
type nextStep uint8

const (
	nextIdle   nextStep = iota // until a change, an order or a resync
	nextChange                 // until a change or an order
	nextWait                   // for a time, or a change, order or resync
	nextRetry                  // for a time, or a change or order
	nextGone                   // out of the ledger
)

// ending is how a call of a reconciler ended.
type ending struct {
	result  Result
	err     error
	outcome outcomeCode // when the result and the error do not say how it ended; else codeNone
	overdue string      // that cleaning up has taken too long; empty: it has not
	ours    bool        // the error is that of a write of the framework's own, which no change of the object announces
	asked   asking
}

// asking is what [AnnotationRequestedAt] of an object said when its reconcile began.
type asking struct {
	value string
	seen  bool // the object was read, and not paused
}

// judge decides what an ending means after so many failed attempts before it. random is in [0, 1).
func judge(end ending, attempts uint32, p retry.Pace, random float64) decision {
	v := judgeEnding(end, attempts, p, random)
	v.asked = end.asked
	if v.overdue = end.overdue != ""; v.overdue {
		v.reason = object.Clip(end.overdue + ": " + v.reason)
	}
	return v
}

func judgeEnding(end ending, attempts uint32, p retry.Pace, random float64) decision {
	switch {
	case end.outcome == codeGone:
		return decision{outcome: codeGone, next: nextGone}
	case end.terminal():
		v := decision{outcome: codeTerminal, attempts: attempts + 1, err: object.Clip(end.err.Error()), next: nextChange}
		stalled := p.Stalled
		if end.ours {
			stalled = cmp.Or(stalled, defaultStalledRetry)
		}
		if stalled > 0 {
			v.reason, v.next, v.after = reasonStalled, nextRetry, retry.Jitter(stalled, random)
		}
		return v
	case end.err != nil:
		v := decision{outcome: end.outcome, attempts: attempts + 1, err: object.Clip(end.err.Error()), next: nextRetry}
		if v.outcome == codeNone {
			v.outcome = codeError
		}
		v.reason = retryReasons[v.outcome]
		v.after = p.Backoff(v.attempts, random)
		return v
	}
	return judgeResult(end, attempts, p, random)
}

// judgeResult decides what an ending without an error means.
func judgeResult(end ending, attempts uint32, p retry.Pace, random float64) decision {
	v := decision{outcome: end.outcome, reason: object.Clip(end.result.reason)}
	switch {
	case end.result.verb == verbRequeue:
		v.attempts, v.next, v.after = attempts+1, nextRetry, p.Backoff(attempts+1, random)
	case end.result.verb == verbRequeueAfter:
		v.next, v.after = nextWait, end.result.after
	case end.outcome != codeNone:
		v.next = nextChange
	}
	if v.outcome == codeNone {
		v.outcome = codeDone
		if end.result.verb != verbDone {
			v.outcome = codeRequeue
		}
	}
	return v
}

// terminal reports whether no retry can fix the error.
func (e ending) terminal() bool { return e.err != nil && e.outcome == codeNone && IsTerminal(e.err) }

// reasonStalled is shown of a key that ended with a terminal error and is tried again slowly.
const reasonStalled = "stalled: tried again slowly"

var retryReasons = map[outcomeCode]string{
	codeError:   "backing off after an error",
	codePanic:   "backing off after a panic",
	codeTimeout: "backing off after a missed deadline",
}

// failed reports whether the decision is an error, a panic or a missed deadline.
func (v decision) failed() bool {
	switch v.outcome {
	case codeError, codeTerminal, codePanic, codeTimeout:
		return true
	}
	return false
}
