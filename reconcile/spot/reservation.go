package spot

import "time"

// reservation is a promise to a pod that was admitted and not seen yet. It is waiting and holds its slot, or it is lost:
// its slot was given out again because its pod was refused, most likely.
type reservation struct {
	Reservation
	ordinal    int
	lost       bool
	prev, next *reservation
}

// queue is a list of reservations, the oldest first.
type queue struct{ first, last *reservation }

func (q *queue) push(r *reservation) {
	r.prev, r.next = q.last, nil
	if q.last != nil {
		q.last.next = r
	} else {
		q.first = r
	}
	q.last = r
}

func (q *queue) remove(r *reservation) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.last = r.prev
	}
	r.prev, r.next = nil, nil
}

// hold makes a new reservation.
func (a *Accounting) hold(r *reservation) {
	a.byID[r.ID] = r
	a.waiting.push(r)
	a.reserved.add(r.Capacity, 1)
	a.slots.take(r.Slot)
}

// lose takes the slot of a reservation away from it. Its pod may exist all the same, so it is remembered for a while.
func (a *Accounting) lose(r *reservation) {
	a.waiting.remove(r)
	a.reserved.add(r.Capacity, -1)
	a.slots.give(r.Slot)
	r.lost = true
	a.replaced.push(r)
	a.lost.add(r.Capacity, 1)
}

// drop forgets a reservation.
func (a *Accounting) drop(r *reservation) {
	delete(a.byID, r.ID)
	if r.lost {
		a.replaced.remove(r)
		a.lost.add(r.Capacity, -1)
		return
	}
	a.waiting.remove(r)
	a.reserved.add(r.Capacity, -1)
	a.slots.give(r.Slot)
	if a.ordinals != nil {
		a.forgetOrdinalOf(r)
	}
}

// dropBefore forgets all reservations that were made before a time.
func (a *Accounting) dropBefore(at time.Time) {
	for _, q := range []*queue{&a.waiting, &a.replaced} {
		for r := q.first; r != nil && r.At.Before(at); r = q.first {
			a.drop(r)
		}
	}
}

// expire forgets reservations that have waited, or have been lost, for too long. Both queues are ordered by time, nearly:
// one that is out of order goes a moment later.
func (a *Accounting) expire(now time.Time) {
	for r := a.waiting.first; r != nil && now.Sub(r.At) > ReservationTTL; r = a.waiting.first {
		a.drop(r)
	}
	for r := a.replaced.first; r != nil && now.Sub(r.At) > SettleTime; r = a.replaced.first {
		a.drop(r)
	}
}
