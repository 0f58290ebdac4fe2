package reconcile

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// State is where a key is; it is always in exactly one.
type State string

const (
	// StateIdle: the last reconcile said Done, and a change, a resync or an order wakes it; or it failed terminally, and
	// only a change or an order does.
	StateIdle State = "Idle"
	// StateQueued: it waits for a worker.
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
	Reason      string    // why it waits, is held or is left alone, or what it asked to be requeued for
	Attempts    int       // consecutive tries that did not end in Done
	Failing     time.Time // when the first of these ended; zero: there are none
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

// Operation follows one manual requeue: the reconcile that started after it was accepted, to its end.
type Operation struct {
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

// Filter says which keys of a member to list.
type Filter struct {
	// Member is needed.
	Member string
	// Controller and Namespace leave out what is of others; empty: nothing is left out.
	Controller, Namespace string
	// After leaves out what is not behind it in the order of controller, namespace and name. The zero value: nothing.
	After Key
	// Limit is how many records are wanted at most; 0: all.
	Limit int
}

// RecordsIn returns records of a member in the order of controller, namespace and name, and whether there are more. It walks over all keys of
// the member, or of the controller in it, and keeps and sorts about as many as are wanted. Each record is consistent in itself; see
// [Runtime.Records] for keys that come and go meanwhile: there may be fewer than Limit and more behind them, though never none. It may be called
// concurrently.
func (rt *Runtime) RecordsIn(f Filter) (records []Record, more bool) {
	for {
		first := firstKeys{filter: f}
		rt.eachBatch(f.Controller, f.Member, first.add)
		first.settle()
		for some := range slices.Chunk(first.keys, snapshotBatch) {
			records = append(records, rt.snapshots(some)...)
		}
		if len(records) > 0 || !first.more {
			return records, first.more
		}
		f.After = first.keys[len(first.keys)-1] // all of these have gone
	}
}

// firstKeys are the first keys that pass a filter, of those that are added in any order.
type firstKeys struct {
	filter Filter
	keys   []Key
	more   bool // passed as well
	last   Key  // of the first that there were, once there are more
}

func (s *firstKeys) add(some []Key) {
	for _, key := range some {
		if !s.filter.passes(key) || s.more && compareKeys(key, s.last) > 0 {
			continue
		}
		if s.keys = append(s.keys, key); s.filter.Limit > 0 && len(s.keys) >= 2*s.filter.Limit+snapshotBatch {
			s.settle()
		}
	}
}

// settle puts the keys in order, and leaves out those beyond the limit.
func (s *firstKeys) settle() {
	slices.SortFunc(s.keys, compareKeys)
	if limit := s.filter.Limit; limit > 0 && len(s.keys) > limit {
		s.keys, s.more, s.last = s.keys[:limit], true, s.keys[limit-1]
	}
}

func (f *Filter) passes(key Key) bool {
	if f.Controller != "" && f.Controller != key.Controller || f.Namespace != "" && f.Namespace != key.Namespace {
		return false
	}
	if f.After.NamespacedName == (types.NamespacedName{}) && f.After.Controller == "" {
		return true
	}
	return cmp.Or(cmp.Compare(key.Controller, f.After.Controller), cmp.Compare(key.Namespace, f.After.Namespace), cmp.Compare(key.Name, f.After.Name)) > 0
}

// ControllerState is one controller as it works in one member.
type ControllerState struct {
	Name, Member string
	Kind         string // that is reconciled, for example "apps/v1 Deployment"
	Objects      int    // that it knows
	Queued       int    // that wait for a worker, or are held
	Running      int
	Held         string // why all of them are held; empty: they are not
}

// ControllersIn returns the controllers that work in a member, by name. It may be called concurrently.
func (rt *Runtime) ControllersIn(member string) []ControllerState {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var all []ControllerState
	for name, c := range rt.controllers {
		l := c.queue.flows[member]
		if l == nil {
			continue
		}
		state := ControllerState{Name: name, Member: member, Kind: object.KindName(c.queue.kind), Objects: len(l.records), Running: l.running}
		for b := range l.seats {
			state.Queued += l.seats[b].line.n
		}
		if reason, closed := l.member.closed(); closed {
			state.Held = reason
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b ControllerState) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
