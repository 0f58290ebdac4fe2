package reconcile

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// bench is a queue without controllers: the test is its workers.
type bench struct {
	rt     *Runtime
	queues []*queue
	lanes  map[string]*lane // by queue and member
}

// hand is an idle worker: it holds nothing until the queue gives it a key.
type hand struct {
	queue *queue
	c     chan handout
}

func newBench(tb testing.TB, opts Options, queues ...*queue) *bench {
	tb.Helper()
	rt, err := NewRuntime(opts)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{rt: rt, lanes: map[string]*lane{}}
	for _, q := range queues {
		b.add(q)
	}
	return b
}

func (b *bench) add(q *queue) *queue {
	q = newQueue(b.rt, q.name, q.perMember, q.resync)
	b.queues = append(b.queues, q)
	b.rt.queues[q.name] = q
	return q
}

// join engages a queue in a member.
func (b *bench) join(q *queue, member string) *lane {
	e := &engagement{name: member}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	l := q.join(member, e)
	b.lanes[q.name+"/"+member] = l
	return l
}

// take is a worker that asks for a key and goes away if there is none.
func (b *bench) take(q *queue) (mcreconcile.Request, Band, bool) {
	b.rt.mu.Lock()
	defer b.rt.mu.Unlock()
	r := q.pick()
	if r == nil {
		return mcreconcile.Request{}, 0, false
	}
	h := handOf(r)
	return h.req, h.band, true
}

// sit makes a worker wait for a key.
func (b *bench) sit(q *queue) *hand {
	b.rt.mu.Lock()
	defer b.rt.mu.Unlock()
	h := &hand{queue: q, c: make(chan handout, 1)}
	if r := q.pick(); r != nil {
		h.c <- handOf(r)
		return h
	}
	q.idle = append(q.idle, h.c)
	return h
}

// got is the key that a waiting worker was given.
func (h *hand) got() (handout, bool) {
	select {
	case out := <-h.c:
		return out, true
	default:
		return handout{}, false
	}
}

// finish ends a run with a verdict.
func (b *bench) finish(q *queue, req mcreconcile.Request, v verdict) {
	q.report(req, v)
	q.done(req)
}

func wakeChanged(q *queue, l *lane, name string) { q.wake(l, nsName(name), BandChanged, nil) }

func nsName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func (b *bench) record(t *testing.T, controller, member, name string) Record {
	t.Helper()
	r, ok := b.rt.Lookup(Key{Controller: controller, Member: member, NamespacedName: nsName(name)})
	if !ok {
		t.Fatalf("%s/%s/%s is not in the ledger", controller, member, name)
	}
	return r
}

// mustTake takes a key and checks its name.
func (b *bench) mustTake(t *testing.T, q *queue, member, name string) mcreconcile.Request {
	t.Helper()
	req, _, ok := b.take(q)
	if want := request(member, nsName(name)); !ok || req != want {
		t.Fatalf("took %v (%v), want %v", req, ok, want)
	}
	return req
}

func (b *bench) mustBeEmpty(t *testing.T, q *queue) {
	t.Helper()
	if req, _, ok := b.take(q); ok {
		t.Fatalf("took %v, want nothing", req)
	}
}

var (
	done  = verdict{outcome: codeDone}
	gone  = verdict{outcome: codeGone, next: nextGone}
	retry = verdict{outcome: codeError, attempts: 1, err: "broken", next: nextRetry, after: time.Hour}
)

func TestAKeyThatChangesWhileItRunsRunsAgain(t *testing.T) {
	for name, v := range map[string]verdict{"done": done, "error": retry, "gone": gone, "terminal": {outcome: codeTerminal, next: nextChange},
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
	q.wake(l, nsName("a"), BandBackground, nil)
	b.finish(q, req, retry)
	b.mustBeEmpty(t, q)
	q.wake(l, nsName("a"), BandBackground, nil)
	b.mustBeEmpty(t, q)
	if r := b.record(t, "c", "m", "a"); r.State != StateWaiting || r.Attempts != 1 || r.LastError != "broken" {
		t.Errorf("record %+v, want it waiting after one failure", r)
	}
	wakeChanged(q, l, "a")
	b.mustTake(t, q, "m", "a")
}

func TestABetterBandOvertakesAndAWorseOneChangesNothing(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	q.wake(l, nsName("seen"), BandBackground, nil)
	q.wake(l, nsName("changed"), BandChanged, nil)
	q.wake(l, nsName("ordered"), BandOrdered, nil)
	q.wake(l, nsName("ordered"), BandBackground, nil)
	q.wake(l, nsName("last"), BandChanged, nil)
	q.wake(l, nsName("seen"), BandOrdered, nil)
	for _, want := range []string{"ordered", "seen", "changed", "last"} {
		b.mustTake(t, q, "m", want)
	}
	b.mustBeEmpty(t, q)
}

func TestMembersTakeTurns(t *testing.T) {
	b := newBench(t, Options{WorkersPerMember: 1000}, &queue{name: "c", perMember: 1000})
	q := b.queues[0]
	keys := map[string]int{"big": 100, "small": 3, "tiny": 1}
	for member, n := range keys {
		l := b.join(q, member)
		for i := range n {
			wakeChanged(q, l, string(rune('a'+i)))
		}
	}
	position := map[string]int{}
	for i := 0; ; i++ {
		req, _, ok := b.take(q)
		if !ok {
			break
		}
		if position[req.ClusterName.String()] = i; i > 200 {
			t.Fatal("more keys than were put in")
		}
	}
	if position["tiny"] > 2 || position["small"] > 8 {
		t.Errorf("last turns %v: want small members served in turn with the big one", position)
	}
}

func TestNoBandStarves(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
	q := b.queues[0]
	busy, quiet := b.join(q, "busy"), b.join(q, "quiet")
	q.wake(quiet, nsName("seen"), BandBackground, nil)
	q.wake(busy, nsName("seen"), BandBackground, nil)
	q.wake(busy, nsName("news"), BandChanged, nil)
	waiting := map[mcreconcile.Request]bool{
		request("quiet", nsName("seen")): true, request("busy", nsName("seen")): true, request("busy", nsName("news")): true,
	}
	for i := 0; len(waiting) > 0; i++ {
		if i > 3*shareEvery {
			t.Fatalf("%v still wait after %d picks", waiting, i)
		}
		q.wake(busy, nsName("order"), BandOrdered, nil)
		q.wake(busy, nsName("order2"), BandOrdered, nil)
		req, _, ok := b.take(q)
		if !ok {
			t.Fatal("nothing to take")
		}
		delete(waiting, req)
		b.finish(q, req, done)
	}
}

func TestABandStarvesInNoMemberHoweverTheTurnsFall(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
	q := b.queues[0]
	first, second := b.join(q, "first"), b.join(q, "second")
	q.wake(first, nsName("seen"), BandBackground, nil)
	for range 4 * shareEvery {
		// The favoured turns of the queue are even, and always come while the first member is at its cap.
		wakeChanged(q, first, "news")
		wakeChanged(q, second, "news")
		odd, band, _ := b.take(q)
		even := b.mustTake(t, q, "second", "news")
		b.finish(q, odd, done)
		b.finish(q, even, done)
		if band == BandBackground {
			return
		}
	}
	t.Error("the background band of a member was never served")
}

func TestALookInTheBackgroundFindsAKeyThatOnlyWaitsForATime(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	wakeChanged(q, l, "a")
	b.finish(q, b.mustTake(t, q, "m", "a"), verdict{outcome: codeRequeue, next: nextWait, after: time.Hour})
	b.mustBeEmpty(t, q)
	q.wake(l, nsName("a"), BandBackground, nil)
	b.mustTake(t, q, "m", "a")
}

func TestControllersShareTheBudgetOfAMember(t *testing.T) {
	b := newBench(t, Options{WorkersPerMember: 2}, &queue{name: "a", perMember: 5}, &queue{name: "b", perMember: 5})
	first, second := b.queues[0], b.queues[1]
	for _, q := range b.queues {
		l, other := b.join(q, "m"), b.join(q, "other")
		wakeChanged(q, l, "1")
		wakeChanged(q, l, "2")
		wakeChanged(q, l, "3")
		wakeChanged(q, other, "free")
	}
	b.mustTake(t, first, "m", "1")
	b.mustTake(t, first, "other", "free")
	b.mustTake(t, second, "m", "1")
	b.mustTake(t, second, "other", "free") // skipping the full member costs no worker
	b.mustBeEmpty(t, first)
	b.mustBeEmpty(t, second)
	b.finish(first, request("m", nsName("1")), done)
	b.mustTake(t, second, "m", "2")
	b.mustBeEmpty(t, first)
}

func TestAFreedWorkerOfAFullMemberGoesToTheControllersInTurn(t *testing.T) {
	b := newBench(t, Options{WorkersPerMember: 1}, &queue{name: "a", perMember: 5}, &queue{name: "b", perMember: 5},
		&queue{name: "c", perMember: 5})
	var hands []*hand
	for _, q := range b.queues {
		l := b.join(q, "m")
		for i := range 20 {
			wakeChanged(q, l, string(rune('a'+i)))
		}
	}
	for range 20 {
		for _, q := range b.queues {
			hands = append(hands, b.sit(q))
		}
	}
	served := map[string]int{}
	for range 30 {
		var holder *hand
		var held handout
		for i, h := range hands {
			if out, ok := h.got(); ok {
				if holder != nil {
					t.Fatal("two run in a member with one worker")
				}
				holder, held = h, out
				hands = append(hands[:i:i], hands[i+1:]...)
			}
		}
		if holder == nil {
			t.Fatal("nobody runs although workers and keys wait")
		}
		served[holder.queue.name]++
		b.finish(holder.queue, held.req, done)
	}
	for name, n := range served {
		if n != 10 {
			t.Errorf("%s was served %d times of 30: %v", name, n, served)
		}
	}
}

func TestAClosedGateHoldsKeysAndCostsNoWorker(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	b.rt.HoldAll(GateOwnership, "owned by hub-1")
	l, free := b.join(q, "m"), b.join(q, "free")
	b.rt.Release("free", GateOwnership)
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
		t.Fatalf("the waiting worker got %v, want the member whose own gate is open", out)
	}
	wakeChanged(q, l, "late") // fills behind the gate

	b.rt.Hold("m", GateBreaker, "does not answer")
	h = b.sit(q)
	b.rt.ReleaseAll(GateOwnership)
	if _, ok := h.got(); ok {
		t.Fatal("a key ran although one gate is still closed")
	}
	if r := b.record(t, "c", "m", "late"); r.Reason != "does not answer" {
		t.Errorf("reason %q, want that of the gate that is closed", r.Reason)
	}
	b.rt.Release("m", GateBreaker)
	if out, ok := h.got(); !ok || out.req != request("m", nsName("a")) {
		t.Fatalf("the worker got %v %v, want the held key as soon as the gate opens", out, ok)
	}
	b.mustTake(t, q, "m", "late")
}

func TestAGateSettingOfAMemberOverridesThatOfAll(t *testing.T) {
	b := newBench(t, Options{})
	held := func(member string) bool {
		_, held := b.rt.Held(member)
		return held
	}
	b.rt.Hold("a", GateOwnership, "")
	b.rt.ReleaseAll(GateOwnership)
	if !held("a") || held("b") {
		t.Error("ReleaseAll opened a gate that was closed for one member")
	}
	b.rt.HoldAll(GateOwnership, "stopping")
	b.rt.Release("a", GateOwnership)
	if held("a") || !held("b") {
		t.Error("HoldAll closed a gate that was opened for one member, or left another open")
	}
	b.rt.Follow("a", GateOwnership)
	if !held("a") {
		t.Error("a member that follows all again is not held with them")
	}
	if n := len(b.rt.members); n != 0 {
		t.Errorf("%d members are kept that nobody knows", n)
	}
}

func TestAKeyNeverRunsTwiceWhenItsMemberIsReplaced(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	old := b.join(q, "m")
	wakeChanged(q, old, "a")
	b.finish(q, b.mustTake(t, q, "m", "a"), retry)
	wakeChanged(q, old, "a")
	wakeChanged(q, old, "b")
	req := b.mustTake(t, q, "m", "a")
	l := b.join(q, "m")
	wakeChanged(q, old, "late") // of the old instance
	b.mustBeEmpty(t, q)
	wakeChanged(q, l, "a")
	b.mustBeEmpty(t, q) // still running
	b.finish(q, req, retry)
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
	receipt, err := b.rt.Requeue(Key{Controller: "c", Member: "m", NamespacedName: nsName("a")})
	if err != nil {
		t.Fatal(err)
	}
	l.engagement.cancel(errReplaced)
	if _, ok := q.begin(req); ok {
		t.Error("the key was to be reconciled although its engagement is over")
	}
	q.done(req)
	r := b.record(t, "c", "m", "a")
	if now, _ := b.rt.Receipt(receipt.ID); now.Done || r.Runs != 0 || r.Attempts != 0 || r.State == StateIdle {
		t.Errorf("record %+v, receipt %+v: want neither done nor counted", r, now)
	}
}

func TestADeletedObjectLeavesTheLedger(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	b.rt.HoldAll(GateOwnership, "standby")
	l := b.join(q, "m")
	for _, keeps := range []bool{false, true} {
		wakeChanged(q, l, "never-ran")
		q.lost(l, nsName("never-ran"), keeps)
		q.lost(l, nsName("unknown"), keeps)
		if len(l.records) != 0 {
			t.Fatalf("keeps %v: the standby's ledger kept a deleted object", keeps)
		}
	}
	b.rt.ReleaseAll(GateOwnership)
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
	q.wake(l, nsName("gone"), BandChanged, known)
	q.wake(l, nsName("there"), BandChanged, known)
	b.mustTake(t, q, "m", "there")
	b.mustBeEmpty(t, q)
}

func TestShutDownHandsOutNothingAndWaitsForNobody(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	w := workQueue{q}
	got := make(chan bool)
	go func() {
		_, shutdown := w.Get()
		got <- shutdown
	}()
	for idle := 0; idle == 0; {
		b.rt.mu.Lock()
		idle = len(q.idle)
		b.rt.mu.Unlock()
	}
	l := b.join(q, "m")
	w.ShutDown()
	if !<-got || !w.ShuttingDown() {
		t.Error("a waiting worker was not told of the shut-down")
	}
	wakeChanged(q, l, "a")
	if _, shutdown := w.Get(); !shutdown {
		t.Error("a worker got a key after the shut-down")
	}
	if w.Len() != 1 {
		t.Errorf("%d keys, want 1", w.Len())
	}
	w.ShutDownWithDrain()
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
	b.rt.HoldAll(GateOwnership, "handing over")
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

func TestRequestsOfUnknownMembersAreDropped(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	w := workQueue{b.queues[0]}
	req := request("nobody", nsName("a"))
	w.Add(req)
	w.AddAfter(req, time.Hour)
	w.AddRateLimited(req)
	w.Done(req)
	if w.Len() != 0 || w.NumRequeues(req) != 0 {
		t.Error("a key of an unknown member was kept")
	}
}
