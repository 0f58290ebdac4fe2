package reconcile

import "time"

// State is where a key is; it is always in exactly one.
type State string

const (
	// StateIdle: the last reconcile said Done, and a change, a resync or an order wakes it; or it failed terminally, and
	// only a change or an order does.
	StateIdle State = "Idle"
	// StateQueued: a worker will take it.
	StateQueued State = "Queued"
	// StateRunning: a worker has it.
	StateRunning State = "Running"
	// StateWaiting: until NextTry, for Reason; a change or an order wakes it earlier.
	StateWaiting State = "Waiting"
	// StateHeld: it wants to run, and its member is held, for Reason.
	StateHeld State = "Held"
)

// Outcome is how the last reconcile of a key ended.
type Outcome string

// The outcomes.
const (
	OutcomeNone     Outcome = ""         // never ran here
	OutcomeDone     Outcome = "Done"     // the reconciler said Done
	OutcomeRequeue  Outcome = "Requeue"  // it asked for another try, with back-off or after a time
	OutcomeError    Outcome = "Error"    // it returned an error that is retried
	OutcomeTerminal Outcome = "Terminal" // it returned a TerminalError
	OutcomePanic    Outcome = "Panic"    // it panicked; retried like an error
	OutcomeTimeout  Outcome = "Timeout"  // its deadline passed; retried like an error
	OutcomeGone     Outcome = "Gone"     // the object no longer exists

	OutcomePaused    Outcome = "Paused"    // an annotation keeps the object from being reconciled
	OutcomePending   Outcome = "Pending"   // it is being deleted, and cleaning up is under way
	OutcomeCleanedUp Outcome = "CleanedUp" // it was cleaned up, and may go
	OutcomeNotOurs   Outcome = "NotOurs"   // there was nothing to clean up that this hub may; or the member was detached by force
)

// Record is a snapshot of one key of the ledger.
type Record struct {
	Key         Key
	State       State
	Priority    Priority
	Reason      string // why it waits, is held or is left alone, or what it asked to be requeued for
	Attempts    int    // consecutive tries that did not end in Done
	LastOutcome Outcome
	LastError   string
	LastStarted time.Time
	LastEnded   time.Time
	NextTry     time.Time // zero unless Waiting
	Runs        uint64    // reconciles finished since this replica started
	Handled     string    // what AnnotationRequestedAt said when the last reconcile that has ended began
}

// Priority is a key's priority; lower is served first.
type Priority uint8

const (
	// PriorityOrdered: a person asked for it.
	PriorityOrdered Priority = iota
	// PriorityChanged: its object, or something that maps to it, changed; or its time has come.
	PriorityChanged
	// PriorityBackground: first sight and resync.
	PriorityBackground
	priorities // count
)

// String gives the label value used in metrics.
func (b Priority) String() string { return [...]string{"ordered", "changed", "background"}[b] }

// Receipt follows one manual requeue: the reconcile that started after it was accepted, to its end.
type Receipt struct {
	ID       string
	Key      Key
	Accepted time.Time
	// Caller is who ordered it; empty: this program did.
	Caller string
	// CancelledAt is when the order was taken back; zero: it was not. Done is true then as well.
	CancelledAt time.Time
	// Done is true once a reconcile that began after Accepted has ended; Record is then its outcome, else the state now.
	Done   bool
	Record Record
}
