package reconcile

import (
	"fmt"
	"testing"

	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestABetterPriorityOvertakesAndAWorseOneChangesNothing(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 5})
	q := b.queues[0]
	l := b.join(q, "m")
	q.wake(l, nsName("seen"), PriorityBackground, nil)
	q.wake(l, nsName("changed"), PriorityChanged, nil)
	q.wake(l, nsName("ordered"), PriorityOrdered, nil)
	q.wake(l, nsName("ordered"), PriorityBackground, nil)
	q.wake(l, nsName("last"), PriorityChanged, nil)
	q.wake(l, nsName("seen"), PriorityOrdered, nil)
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

func TestNoPriorityStarves(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
	q := b.queues[0]
	busy, quiet := b.join(q, "busy"), b.join(q, "quiet")
	q.wake(quiet, nsName("seen"), PriorityBackground, nil)
	q.wake(busy, nsName("seen"), PriorityBackground, nil)
	q.wake(busy, nsName("news"), PriorityChanged, nil)
	waiting := map[mcreconcile.Request]bool{
		request("quiet", nsName("seen")): true, request("busy", nsName("seen")): true, request("busy", nsName("news")): true,
	}
	for i := 0; len(waiting) > 0; i++ {
		if i > 3*shareEvery {
			t.Fatalf("%v still wait after %d picks", waiting, i)
		}
		q.wake(busy, nsName("order"), PriorityOrdered, nil)
		q.wake(busy, nsName("order2"), PriorityOrdered, nil)
		req, _, ok := b.take(q)
		if !ok {
			t.Fatal("nothing to take")
		}
		delete(waiting, req)
		b.finish(q, req, done)
	}
}

func TestWhatWasNeverReconciledGoesFirstAndStarvesNobody(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
	q := b.queues[0]
	l := b.join(q, "m")
	for _, name := range []string{"old", "older"} {
		wakeChanged(q, l, name)
		b.finish(q, b.mustTake(t, q, "m", name), done)
	}
	wakeChanged(q, l, "old")
	wakeChanged(q, l, "older")
	wakeChanged(q, l, "new")
	wakeChanged(q, l, "newer")
	for _, want := range []string{"new", "newer", "old", "older"} {
		b.finish(q, b.mustTake(t, q, "m", want), done)
	}
	wakeChanged(q, l, "old")
	wakeChanged(q, l, "older")
	turns := map[string]int{}
	for i := range 3 * newShare {
		wakeChanged(q, l, fmt.Sprint("new", i))
		req, _, _ := b.take(q)
		turns[req.Name]++
		b.finish(q, req, done)
	}
	if turns["old"] != 1 || turns["older"] != 1 {
		t.Errorf("beside a stream of new objects: %v", turns)
	}
}

func TestAPriorityStarvesInNoMemberHoweverTheTurnsFall(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "c", perMember: 1})
	q := b.queues[0]
	first, second := b.join(q, "first"), b.join(q, "second")
	q.wake(first, nsName("seen"), PriorityBackground, nil)
	for range 4 * shareEvery {
		// The favoured turns of the queue are even, and always come while the first member is at its cap.
		wakeChanged(q, first, "news")
		wakeChanged(q, second, "news")
		odd, priority, _ := b.take(q)
		even := b.mustTake(t, q, "second", "news")
		b.finish(q, odd, done)
		b.finish(q, even, done)
		if priority == PriorityBackground {
			return
		}
	}
	t.Error("the background keys of a member was never served")
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
