package reconcile

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// Result is what a reconcile asks for next. It is sealed: it is built with [Done], [Requeue] or [RequeueAfter], so that it
// cannot contradict itself. The zero value is Done.
type Result struct {
	verb   verb
	reason string
	after  time.Duration
	unmet  *Unmet // of [WaitFor]
}

type verb uint8

const (
	verbDone verb = iota
	verbRequeue
	verbRequeueAfter
)

// Done says that the object is as it should be; the next change or resync looks again.
func Done() Result { return Result{} }

// Requeue asks for another try with exponential back-off (about 1 s to 5 min); reason is shown in the API.
func Requeue(reason string) Result { return Result{verb: verbRequeue, reason: reason} }

// RequeueAfter asks for another look after d, or earlier when something changes; it forgets earlier failures. A d of zero
// or less looks again at once, behind the keys that are already queued. reason is shown in the API.
func RequeueAfter(d time.Duration, reason string) Result {
	return Result{verb: verbRequeueAfter, reason: reason, after: max(d, 0)}
}

// TerminalError marks an error that no retry can fix: the key waits for a change of the object.
func TerminalError(err error) error { return retry.Terminal(err) }

// IsTerminal reports whether err, or an error it wraps, was marked with [TerminalError].
func IsTerminal(err error) bool { return retry.IsTerminal(err) }
