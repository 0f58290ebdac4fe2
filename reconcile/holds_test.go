package reconcile

import (
	"context"
	"testing"
)

func TestAClosedGateHoldsKeysAndCostsNoWorker(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	b.rt.holdAll(HoldOwnership, "owned by hub-1")
	l, free := b.join(q, "m"), b.join(q, "free")
	b.rt.Release("free", HoldOwnership)
	wakeChanged(q, l, "a")
	h := b.sit(q)
	if _, ok := h.got(); ok {
		t.Fatal("a held key was handed out")
	}
	if r := b.record(t, "c", "m", "a"); r.State != StateHeld || r.Reason != "owned by hub-1" {
		t.Errorf("record %+v, want it held with the reason", r)
	}
	wakeChanged(q, free, "b")
	if out, ok := h.got(); !ok || out.req != request("free", nsName("b")) {
		t.Fatalf("the waiting worker got %v, want the member that itself was released", out)
	}
	wakeChanged(q, l, "late") // fills behind the hold

	b.rt.Hold("m", HoldBreaker, "does not answer")
	h = b.sit(q)
	b.rt.releaseAll(HoldOwnership)
	if _, ok := h.got(); ok {
		t.Fatal("a key ran although one hold still applies")
	}
	if r := b.record(t, "c", "m", "late"); r.Reason != "does not answer" {
		t.Errorf("reason %q, want that of the hold that applies", r.Reason)
	}
	b.rt.Release("m", HoldBreaker)
	if out, ok := h.got(); !ok || out.req != request("m", nsName("a")) {
		t.Fatalf("the worker got %v %v, want the held key as soon as the hold is released", out, ok)
	}
	b.mustTake(t, q, "m", "late")
}

func TestAGateSettingOfAMemberOverridesThatOfAll(t *testing.T) {
	b := newBench(t, Options{})
	held := func(member string) bool {
		_, held := b.rt.Held(member)
		return held
	}
	b.rt.Hold("a", HoldOwnership, "")
	b.rt.releaseAll(HoldOwnership)
	if !held("a") || held("b") {
		t.Error("releasing all released a hold of one member")
	}
	b.rt.holdAll(HoldOwnership, "stopping")
	b.rt.Release("a", HoldOwnership)
	if held("a") || !held("b") {
		t.Error("holding all held what was released for one member, or left another released")
	}
	b.rt.Follow("a", HoldOwnership)
	if !held("a") {
		t.Error("a member that follows all again is not held with them")
	}
	if n := len(b.rt.members); n != 0 {
		t.Errorf("%d members are kept that nobody knows", n)
	}
}

func TestDrainWaitsForWhatRuns(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	if err := b.rt.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wakeChanged(q, l, "a")
	wakeChanged(q, l, "b")
	req := b.mustTake(t, q, "m", "a")
	b.rt.holdAll(HoldOwnership, "handing over")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.rt.Drain(ctx); err == nil {
		t.Error("Drain returned while a reconcile was running")
	}
	drained := make(chan error)
	go func() { drained <- b.rt.Drain(t.Context()) }()
	b.finish(q, req, done)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	b.mustBeEmpty(t, q)
}
