package slots

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// queue is a list of reservations, the oldest first. A reservation is in one queue of all types, of those that wait or of
// those that are lost, and while it waits in one of its own type, so that the oldest of each is at hand.
type queue struct{ first, last ref }

// Which of a reservation's links a queue uses.
const (
	inAll = iota
	inType
)

func (a *Accounting) push(q *queue, in int, r ref) {
	a.promised.at(r).links[in] = link{prev: q.last}
	if q.last != 0 {
		a.promised.at(q.last).links[in].next = r
	} else {
		q.first = r
	}
	q.last = r
}

func (a *Accounting) pull(q *queue, in int, r ref) {
	l := a.promised.at(r).links[in]
	if l.prev != 0 {
		a.promised.at(l.prev).links[in].next = l.next
	} else {
		q.first = l.next
	}
	if l.next != 0 {
		a.promised.at(l.next).links[in].prev = l.prev
	} else {
		q.last = l.prev
	}
}

// hold makes a new reservation.
func (a *Accounting) hold(r plan.Reservation, ordinal int) ref {
	held := a.promised.add(r, ordinal)
	a.push(&a.waiting, inAll, held)
	a.push(&a.waitingFor[capacity.CodeOf(r.Capacity)], inType, held)
	a.reserved.Add(r.Capacity, 1)
	a.slots.take(r.Slot)
	return held
}

// unhold takes its slot and its place in the queues away from a reservation that waits.
func (a *Accounting) unhold(r ref) {
	held := a.promised.at(r)
	a.pull(&a.waiting, inAll, r)
	a.pull(&a.waitingFor[held.capacity], inType, r)
	a.reserved.Add(held.capacity.Type(), -1)
	a.slots.give(int(held.slot))
}

// lose takes the slot of a reservation away from it. Its pod may exist all the same, so it is remembered for a while.
func (a *Accounting) lose(r ref) {
	a.unhold(r)
	lost := a.promised.at(r)
	lost.lost = true
	a.push(&a.replaced, inAll, r)
	a.lost.Add(lost.capacity.Type(), 1)
}

// drop forgets a reservation.
func (a *Accounting) drop(r ref) {
	dropped := *a.promised.at(r)
	if dropped.lost {
		a.pull(&a.replaced, inAll, r)
		a.lost.Add(dropped.capacity.Type(), -1)
	} else {
		a.unhold(r)
		if a.ordinals != nil {
			a.forgetOrdinalOf(r)
		}
	}
	a.promised.remove(r)
}

// dropBefore forgets all reservations that were made before a time.
func (a *Accounting) dropBefore(at time.Time) {
	for _, q := range []*queue{&a.waiting, &a.replaced} {
		for q.first != 0 && a.promised.madeAt(q.first).Before(at) {
			a.drop(q.first)
		}
	}
}

// Expire forgets reservations that have waited, or have been lost, for too long. Both queues are ordered by time, nearly:
// one that is out of order goes a moment later.
func (a *Accounting) Expire(now time.Time) {
	for r := a.waiting.first; r != 0 && now.Sub(a.promised.madeAt(r)) > ReservationTTL; r = a.waiting.first {
		a.drop(r)
	}
	for r := a.replaced.first; r != 0 && now.Sub(a.promised.madeAt(r)) > plan.SettleTime; r = a.replaced.first {
		a.drop(r)
	}
}
