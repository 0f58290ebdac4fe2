package reconcile

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestAKeyThatChangesWhileItRunsRunsAgain(t *testing.T) {
	for name, v := range map[string]decision{"done": done, "error": again, "gone": gone, "terminal": {outcome: codeTerminal, next: nextChange},
		"later": {outcome: codeRequeue, next: nextWait, after: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
			q := b.queues[0]
			l := b.join(q, "m")
			wakeChanged(q, l, "a")
			req := b.mustTake(t, q, "m", "a")
			wakeChanged(q, l, "a")
			b.mustBeEmpty(t, q) // never twice at once
			b.finish(q, req, v)
			req = b.mustTake(t, q, "m", "a")
			b.finish(q, req, done)
			b.mustBeEmpty(t, q)
		})
	}
}

func TestAResyncDuringARunDoesNotHurryARetry(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	wakeChanged(q, l, "a")
	req := b.mustTake(t, q, "m", "a")
	q.wake(l, nsName("a"), PriorityBackground, nil)
	b.finish(q, req, again)
	b.mustBeEmpty(t, q)
	q.wake(l, nsName("a"), PriorityBackground, nil)
	b.mustBeEmpty(t, q)
	if r := b.record(t, "c", "m", "a"); r.State != StateWaiting || r.Attempts != 1 || r.LastError != "broken" {
		t.Errorf("record %+v, want it waiting after one failure", r)
	}
	wakeChanged(q, l, "a")
	b.mustTake(t, q, "m", "a")
}

func TestALookInTheBackgroundFindsAKeyThatOnlyWaitsForATime(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	wakeChanged(q, l, "a")
	b.finish(q, b.mustTake(t, q, "m", "a"), decision{outcome: codeRequeue, next: nextWait, after: time.Hour})
	b.mustBeEmpty(t, q)
	q.wake(l, nsName("a"), PriorityBackground, nil)
	b.mustTake(t, q, "m", "a")
}

func TestADeletedObjectLeavesTheLedger(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	b.rt.holdAll(HoldOwnership, "standby")
	l := b.join(q, "m")
	for _, keeps := range []bool{false, true} {
		wakeChanged(q, l, "never-ran")
		q.lost(l, nsName("never-ran"), keeps)
		q.lost(l, nsName("unknown"), keeps)
		if len(l.records) != 0 {
			t.Fatalf("keeps %v: the standby's ledger kept a deleted object", keeps)
		}
	}
	b.rt.releaseAll(HoldOwnership)
	wakeChanged(q, l, "ran")
	b.finish(q, b.mustTake(t, q, "m", "ran"), done)
	q.lost(l, nsName("ran"), true)
	b.finish(q, b.mustTake(t, q, "m", "ran"), gone) // the worker that says good-bye
	if len(l.records) != 0 {
		t.Error("the ledger kept a deleted object")
	}
}

func TestAMappedEventMakesNoRecordOfAnObjectThatDoesNotExist(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	known := func(key types.NamespacedName) bool { return key.Name == "there" }
	q.wake(l, nsName("gone"), PriorityChanged, known)
	q.wake(l, nsName("there"), PriorityChanged, known)
	b.mustTake(t, q, "m", "there")
	b.mustBeEmpty(t, q)
}
