package reconcile

import "testing"

func TestAKeyNeverRunsTwiceWhenItsMemberIsReplaced(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	old := b.join(q, "m")
	wakeChanged(q, old, "a")
	b.finish(q, b.mustTake(t, q, "m", "a"), again)
	wakeChanged(q, old, "a")
	req := b.mustTake(t, q, "m", "a")
	wakeChanged(q, old, "b")
	l := b.join(q, "m")
	wakeChanged(q, old, "late") // of the old instance
	b.mustBeEmpty(t, q)
	wakeChanged(q, l, "a")
	b.mustBeEmpty(t, q) // still running
	b.finish(q, req, again)
	if r := b.record(t, "c", "m", "a"); r.Attempts != 0 || r.LastError != "" || r.State != StateQueued {
		t.Errorf("record %+v, want nothing of the old instance in it", r)
	}
	b.finish(q, b.mustTake(t, q, "m", "a"), done)
	b.mustBeEmpty(t, q)
}

func TestAKeyInFlightLeavesNoRecordWhenItsMemberLeaves(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	wakeChanged(q, l, "a")
	req := b.mustTake(t, q, "m", "a")
	wakeChanged(q, l, "a")
	q.leave(l)
	if q.report(req, done) {
		t.Error("the outcome counted although the member had left")
	}
	q.done(req)
	b.mustBeEmpty(t, q)
	for r := range b.rt.Records("") {
		t.Errorf("%+v is left", r)
	}
	if len(b.rt.members) != 0 || len(q.running) != 0 || q.orphans != 0 {
		t.Error("something is left of a member that left")
	}
}

func TestAKeyTakenFromAnEngagementThatIsEndingIsNotReconciledAndNotCounted(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	wakeChanged(q, l, "a")
	req := b.mustTake(t, q, "m", "a")
	operation, err := b.rt.Requeue(Key{Controller: "c", Member: "m", NamespacedName: nsName("a")})
	if err != nil {
		t.Fatal(err)
	}
	l.engagement.cancel(errReplaced)
	if _, ok := q.begin(req); ok {
		t.Error("the key was to be reconciled although its engagement is over")
	}
	q.done(req)
	r := b.record(t, "c", "m", "a")
	if now, _ := b.rt.Operation(operation.ID); now.Done || r.Runs != 0 || r.Attempts != 0 || r.State == StateIdle {
		t.Errorf("record %+v, operation %+v: want neither done nor counted", r, now)
	}
}
