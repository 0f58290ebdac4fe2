package spot

import "time"

// queue is a list of reservations, the oldest first.
type queue struct{ first, last ref }

func (a *Accounting) push(q *queue, r ref) {
	a.promised.at(r).prev, a.promised.at(r).next = q.last, 0
	if q.last != 0 {
		a.promised.at(q.last).next = r
	} else {
		q.first = r
	}
	q.last = r
}

func (a *Accounting) pull(q *queue, r ref) {
	prev, next := a.promised.at(r).prev, a.promised.at(r).next
	if prev != 0 {
		a.promised.at(prev).next = next
	} else {
		q.first = next
	}
	if next != 0 {
		a.promised.at(next).prev = prev
	} else {
		q.last = prev
	}
}

// hold makes a new reservation.
func (a *Accounting) hold(r Reservation, ordinal int) ref {
	held := a.promised.add(r, ordinal)
	a.push(&a.waiting, held)
	a.reserved.add(r.Capacity, 1)
	a.slots.take(r.Slot)
	return held
}

// lose takes the slot of a reservation away from it. Its pod may exist all the same, so it is remembered for a while.
func (a *Accounting) lose(r ref) {
	lost := a.promised.at(r)
	a.pull(&a.waiting, r)
	a.reserved.add(lost.capacity.capacity(), -1)
	a.slots.give(int(lost.slot))
	lost.lost = true
	a.push(&a.replaced, r)
	a.lost.add(lost.capacity.capacity(), 1)
}

// drop forgets a reservation.
func (a *Accounting) drop(r ref) {
	dropped := *a.promised.at(r)
	if dropped.lost {
		a.pull(&a.replaced, r)
		a.lost.add(dropped.capacity.capacity(), -1)
	} else {
		a.pull(&a.waiting, r)
		a.reserved.add(dropped.capacity.capacity(), -1)
		a.slots.give(int(dropped.slot))
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

// expire forgets reservations that have waited, or have been lost, for too long. Both queues are ordered by time, nearly:
// one that is out of order goes a moment later.
func (a *Accounting) expire(now time.Time) {
	for r := a.waiting.first; r != 0 && now.Sub(a.promised.madeAt(r)) > ReservationTTL; r = a.waiting.first {
		a.drop(r)
	}
	for r := a.replaced.first; r != 0 && now.Sub(a.promised.madeAt(r)) > SettleTime; r = a.replaced.first {
		a.drop(r)
	}
}
