package reconcile

import (
	"strings"
	"time"
	"unicode/utf8"
)

// maxErrorLength bounds, in bytes, what a record keeps of an error.
const maxErrorLength = 1024

// verdict is what one reconcile means for its record.
type verdict struct {
	outcome  outcomeCode
	attempts uint32 // consecutive tries without success, this one included
	reason   string
	err      string
	next     nextStep
	after    time.Duration // with nextWait and nextRetry
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
	outcome outcomeCode // codePanic, codeTimeout or codeGone, when the result and error do not tell; else codeNone
}

// judge decides what an ending means after so many failed attempts before it. random is in [0, 1).
func judge(end ending, attempts uint32, random float64) verdict {
	switch {
	case end.outcome == codeGone:
		return verdict{outcome: codeGone, next: nextGone}
	case end.err != nil && end.outcome == codeNone && IsTerminal(end.err):
		return verdict{outcome: codeTerminal, attempts: attempts + 1, err: clip(end.err.Error()), next: nextChange}
	case end.err != nil:
		v := verdict{outcome: end.outcome, attempts: attempts + 1, err: clip(end.err.Error()), next: nextRetry}
		if v.outcome == codeNone {
			v.outcome = codeError
		}
		v.reason = retryReasons[v.outcome]
		v.after = backoff(v.attempts, random)
		return v
	}
	switch end.result.verb {
	case verbRequeue:
		return verdict{outcome: codeRequeue, attempts: attempts + 1, reason: clip(end.result.reason),
			next: nextRetry, after: backoff(attempts+1, random)}
	case verbRequeueAfter:
		return verdict{outcome: codeRequeue, reason: clip(end.result.reason), next: nextWait, after: end.result.after}
	}
	return verdict{outcome: codeDone}
}

var retryReasons = map[outcomeCode]string{
	codeError:   "backing off after an error",
	codePanic:   "backing off after a panic",
	codeTimeout: "backing off after a missed deadline",
}

// failed tells whether the verdict is an error, a panic or a missed deadline.
func (v verdict) failed() bool {
	switch v.outcome {
	case codeError, codeTerminal, codePanic, codeTimeout:
		return true
	}
	return false
}

// clip shortens a text to maxErrorLength bytes without breaking a character.
func clip(s string) string {
	if len(s) <= maxErrorLength {
		return s
	}
	end := maxErrorLength - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) + "…"
}
