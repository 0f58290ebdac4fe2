package slots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// reservations keeps the promises of one accounting. A burst makes hundreds of thousands of them within seconds, all alive
// until their pods are seen; so they hold no pointer, and the garbage collector does not look at a single one.
type reservations struct {
	epoch time.Time     // what their times count from
	items []reservation // items[0] is not used: ref 0 is none
	spare ref           // the first of those that are not used, linked by next
	byID  map[reservationID]ref
}

// ref is the index of a reservation; 0: none. It is good until the reservation is removed.
type ref int32

// reservation is a promise to a pod that was admitted and not seen yet. It is waiting and holds its slot, or it is lost:
// its slot was given out again because its pod was refused, most likely.
type reservation struct {
	id            reservationID
	made          time.Duration // since the epoch
	slot, ordinal int32
	links         [2]link // in the queues that it is in
	capacity      capacity.Code
	moved, lost   bool
}

// link is a reservation's place in a queue.
type link struct{ prev, next ref }

// reservationID is the UID of an AdmissionRequest: the UUID that API servers send, or the hash of any other text.
type reservationID [16]byte

func idOf(text string) (id reservationID) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		digits := make([]byte, 0, 32)
		for _, part := range [...]string{text[:8], text[9:13], text[14:18], text[19:23], text[24:]} {
			digits = append(digits, part...)
		}
		if _, err := hex.Decode(id[:], digits); err == nil && !bytes.ContainsAny(digits, "ABCDEF") {
			return id
		}
	}
	sum := sha256.Sum256([]byte(text))
	return reservationID(sum[:len(id)])
}

// at returns a reservation to read or change; the pointer is good until the next add.
func (t *reservations) at(r ref) *reservation { return &t.items[r] }

func (t *reservations) madeAt(r ref) time.Time { return t.epoch.Add(t.items[r].made) }

// find returns the reservation with that id; 0: there is none.
func (t *reservations) find(id string) ref {
	if len(t.byID) == 0 {
		return 0
	}
	return t.byID[idOf(id)]
}

// show returns a reservation without its id, which only whoever asks knows as text.
func (t *reservations) show(r ref) plan.Reservation {
	item := t.at(r)
	return plan.Reservation{Slot: int(item.slot), Capacity: item.capacity.Type(), Moved: item.moved, At: t.madeAt(r)}
}

func (t *reservations) add(r plan.Reservation, ordinal int) ref {
	if t.byID == nil {
		t.epoch, t.byID, t.items = r.At, map[reservationID]ref{}, make([]reservation, 1, 8)
	}
	item := reservation{id: idOf(r.ID), made: r.At.Sub(t.epoch), slot: int32(r.Slot), ordinal: int32(ordinal),
		capacity: capacity.CodeOf(r.Capacity), moved: r.Moved}
	at := t.spare
	if at != 0 {
		t.spare = t.items[at].links[inAll].next
		t.items[at] = item
	} else {
		at = ref(len(t.items))
		t.items = append(t.items, item)
	}
	t.byID[item.id] = at
	return at
}

// remove forgets a reservation; with the last one goes the memory.
func (t *reservations) remove(r ref) {
	delete(t.byID, t.items[r].id)
	if len(t.byID) == 0 {
		*t = reservations{}
		return
	}
	t.items[r].links[inAll].next, t.spare = t.spare, r
}
