package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// record is one key of the ledger. Everything in it is guarded by Runtime.mu.
//
// There is one per object, so it is kept small: times are nanoseconds of the runtime's monotonic clock (see
// Runtime.now), and the state Held is not stored, because it is a queued record of a member that is held.
type record struct {
	key  types.NamespacedName
	flow *flow

	// prev and next link the record into its flow while it is queued.
	prev, next *record

	reason  string // why it waits or is left alone, in words
	lastErr string

	due      int64 // when its timer fires: next try or resync; meaningless while heapIndex is negative
	nextTry  int64 // 0 unless waiting
	queuedAt int64
	started  int64
	ended    int64
	failing  int64 // when the first of attempts ended; 0 without any

	heapIndex int32 // place in the timers, negative when absent
	attempts  uint32
	runs      uint32

	state    keyState
	outcome  outcomeCode
	priority Priority // where it is queued, or was last
	again    Priority // while running: the priority in which it must run again, or priorities when nothing came in
	backoff  bool     // while waiting: for a retry, which only a real change may hurry
	ordered  bool     // operations follow it
	lost     bool     // its object is gone, and a worker is to see it
	overdue  bool     // it is being cleaned up, and has taken too long; counted in its flow
}

// keyState is a record's state as it is stored.
type keyState uint8

const (
	keyIdle keyState = iota
	keyQueued
	keyRunning
	keyWaiting
)

// outcomeCode is an Outcome in one byte.
type outcomeCode uint8

const (
	codeNone outcomeCode = iota
	codeDone
	codeRequeue
	codeError
	codeTerminal
	codePanic
	codeTimeout
	codeGone
	codePaused
	codePending
	codeCleanedUp
	codeNotOurs
)

var outcomes = [...]Outcome{
	codeNone: OutcomeNone, codeDone: OutcomeDone, codeRequeue: OutcomeRequeue, codeError: OutcomeError,
	codeTerminal: OutcomeTerminal, codePanic: OutcomePanic, codeTimeout: OutcomeTimeout, codeGone: OutcomeGone,
	codePaused: OutcomePaused, codePending: OutcomePending, codeCleanedUp: OutcomeCleanedUp, codeNotOurs: OutcomeNotOurs,
}

// outcomeLabels are the values of the label outcome.
var outcomeLabels = [...]string{
	codeNone: "none", codeDone: "done", codeRequeue: "requeue", codeError: "error",
	codeTerminal: "terminal", codePanic: "panic", codeTimeout: "timeout", codeGone: "gone",
	codePaused: "paused", codePending: "pending", codeCleanedUp: "cleaned_up", codeNotOurs: "not_ours",
}

func newRecord(key types.NamespacedName, l *flow) *record {
	return &record{key: key, flow: l, heapIndex: -1, again: priorities}
}

// tried notes how many tries in a row have failed by now.
func (r *record) tried(attempts uint32, now int64) {
	switch r.attempts = attempts; {
	case attempts == 0:
		r.failing = 0
	case r.failing == 0:
		r.failing = now
	}
}

// setOverdue keeps the flow's count right.
func (r *record) setOverdue(overdue bool) {
	if r.overdue == overdue {
		return
	}
	r.overdue = overdue
	if overdue {
		r.flow.overdue++
	} else {
		r.flow.overdue--
	}
}

// snapshot copies the record out of the lock.
func (r *record) snapshot() Record {
	rt := r.flow.queue.rt
	s := Record{
		Key:         Key{Controller: r.flow.queue.name, Member: r.flow.member.name, NamespacedName: r.key},
		Priority:    r.priority,
		Attempts:    int(r.attempts),
		Failing:     rt.wall(r.failing),
		LastOutcome: outcomes[r.outcome],
		LastError:   r.lastErr,
		LastStarted: rt.wall(r.started),
		LastEnded:   rt.wall(r.ended),
		Runs:        uint64(r.runs),
		Handled:     r.flow.handled[r.key],
	}
	switch r.state {
	case keyIdle:
		s.State, s.Reason = StateIdle, r.reason
	case keyRunning:
		s.State = StateRunning
	case keyWaiting:
		s.State, s.Reason, s.NextTry = StateWaiting, r.reason, rt.wall(r.nextTry)
	case keyQueued:
		s.State = StateQueued
		if reason, closed := r.flow.member.closed(); closed {
			s.State, s.Reason = StateHeld, reason
		}
	}
	return s
}

// now is the runtime's clock: nanoseconds since it was made, never zero, and untouched by changes of the wall clock.
func (rt *Runtime) now() int64 { return int64(time.Since(rt.epoch)) + 1 }

// wall turns a time of the runtime's clock into one that people read; zero stays zero.
func (rt *Runtime) wall(t int64) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return rt.epoch.Add(time.Duration(t - 1))
}
