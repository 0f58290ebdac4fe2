package reconcile

import (
	"context"
	"testing"
)

func TestAGateCanBeDecidedMemberByMember(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	mine := map[string]bool{"a": true}
	b.rt.Decide(HoldOwnership, func(member string) string {
		if mine[member] {
			return ""
		}
		return "it is another replica's"
	})
	expect := func(member, want string) {
		t.Helper()
		if reason, held := b.rt.Held(member); reason != want || held != (want != "") {
			t.Errorf("member %s is held: %t, because %q", member, held, reason)
		}
	}
	q := b.queues[0]
	la, lb := b.join(q, "a"), b.join(q, "b")
	wakeChanged(q, la, "one")
	wakeChanged(q, lb, "two")
	expect("a", "")
	expect("b", "it is another replica's")
	expect("unknown", "it is another replica's")
	req := b.mustTake(t, q, "a", "one")
	b.mustBeEmpty(t, q)

	mine["a"], mine["b"] = false, true
	expect("b", "it is another replica's") // until it is asked again
	b.rt.DecideAgain(HoldOwnership)
	expect("a", "it is another replica's")
	expect("b", "")
	b.finish(q, req, done)
	b.mustTake(t, q, "b", "two")

	b.rt.holdAll(HoldOwnership, "stopping")
	b.rt.DecideAgain(HoldOwnership)
	expect("b", "stopping")
}

func TestAMemberIsDrainedByItself(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	la, lb := b.join(q, "a"), b.join(q, "b")
	wakeChanged(q, la, "one")
	one := b.mustTake(t, q, "a", "one")
	wakeChanged(q, lb, "two")
	b.mustTake(t, q, "b", "two") // goes on
	ended, end := context.WithCancel(t.Context())
	end()
	if b.rt.DrainMember(ended, "a") == nil {
		t.Error("a is drained while a reconcile runs in it")
	}
	drained := make(chan error)
	go func() { drained <- b.rt.DrainMember(t.Context(), "a") }()
	b.finish(q, one, done)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if err := b.rt.DrainMember(t.Context(), "unknown"); err != nil {
		t.Error(err)
	}
}
