package slots

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// How long an [Accounting] believes in what it has not seen.
const (
	// ReservationTTL is how long a slot is kept for a pod that is not seen. The pod was refused after us, most likely; until
	// then its slot is the first to be given out again.
	ReservationTTL = 2 * time.Minute
	// overtaken is how much later another pod must have been admitted that is seen, so that one that is not seen does not
	// exist: pods are seen in the order in which they were stored, and admitted pods are stored within moments.
	overtaken = 3 * time.Second
)

// Accounting knows, for one direct owner of pods, which slots are held and what was promised to pods that the cache does
// not show yet. It gives every new pod of the owner its slot and capacity type; see [Accounting.Reserve].
//
// A slot is held by a pod that is supply ([plan.Pod.Supply]), or by a reservation whose pod was not seen yet: a pod whose node
// goes holds none, so that its replacement finds its slot free. Methods take the time from the
// caller, who must not let it run backwards by more than clocks do. It is not safe for concurrent use: the caller locks.
type Accounting struct {
	ordinals *ordinals // of a StatefulSet; nil for a ReplicaSet

	pods  map[types.UID]*seen
	slots slotTable

	visible  capacity.Tally // pods that are alive
	reserved capacity.Tally // reservations that hold a slot
	lost     capacity.Tally // reservations whose slot was given out again, and whose pods may exist all the same

	promised          reservations
	waiting, replaced queue                      // of reserved and of lost, the oldest first
	waitingFor        [len(capacity.Types)]queue // of reserved, by type

	gone   map[types.UID]tombstone
	buryAt int // number of tombstones at which old ones are looked for

	moves   int       // pods that we evicted and that were not replaced yet
	movedAt time.Time // when the last of them was evicted

	unansweredUntil time.Time // when the last doubt about an unanswered write ends

	taken  time.Time // until when another process may have decided; see TakeOver
	proven bool      // a live list has shown since what it did
}

// seen is what is kept of a pod that was observed.
type seen struct {
	slot        int
	capacity    capacity.Type
	version     uint64
	at          time.Time
	alive       bool           // as observed
	interrupted bool           // as observed: its node goes for certain
	released    *plan.Released // as observed, or as we are about to write it: it is no business of its owner any more
	freed       bool           // evicted by us, or missing in a live list: holds nothing, whatever the cache shows
	missing     bool           // freed for the list's sake: the pod is gone, or its owner has let it go because it was released
	letGo       bool           // released was not observed yet
	doubted     bool           // the write by which it is freed or let go was not answered
	before      time.Time      // the last move before this pod was freed or let go
	freedAt     time.Time      // when it was, or when we gave up waiting for the answer
}

func (s *seen) holds() bool { return s.alive && !s.freed && !s.interrupted && s.released == nil }

// tombstone keeps late answers about a pod from bringing it back.
type tombstone struct {
	version uint64
	at      time.Time
}

// NewAccounting returns an empty accounting: of a StatefulSet if ordinals is true, else of a ReplicaSet.
func NewAccounting(ordinals bool) *Accounting {
	a := &Accounting{pods: map[types.UID]*seen{}, gone: map[types.UID]tombstone{}}
	if ordinals {
		a.ordinals = newOrdinals()
	}
	return a
}

// ForgetOrdinals says that the owner is no StatefulSet after all: what is remembered of ordinals goes, pods and slots stay.
func (a *Accounting) ForgetOrdinals() { a.ordinals = nil }

// Observe takes in what the cache, a live read or the answer to a write shows of one pod of the owner, in any order: an
// older version than one already known is ignored for [plan.SettleTime], after which it is news: the member's store was restored from a
// backup, for instance. The reservation that the pod was admitted on is consumed by the first
// pod that names it.
func (a *Accounting) Observe(p *plan.Pod, now time.Time) {
	known := a.pods[p.UID]
	if known != nil && p.Version < known.version && now.Sub(known.at) < plan.SettleTime {
		return
	}
	if grave, dead := a.gone[p.UID]; dead {
		if p.Version <= grave.version && now.Sub(grave.at) < plan.SettleTime {
			return
		}
		delete(a.gone, p.UID)
	}
	if p.Reservation != "" {
		if r := a.promised.find(p.Reservation); r != 0 {
			made := a.promised.madeAt(r)
			a.drop(r)
			a.dropBefore(made.Add(-overtaken))
		}
	}
	if known == nil {
		known = &seen{}
		a.pods[p.UID] = known
	} else {
		a.count(known, -1)
	}
	known.slot, known.capacity, known.version, known.at = p.Slot, p.Capacity, p.Version, now
	known.alive, known.interrupted = p.GoneBy.IsZero() && !p.Finished, p.Leaving()
	if known.missing && p.Released != nil {
		known.freed, known.missing = false, false
	}
	known.freed = known.freed || p.Evicted
	if p.Released != nil || !known.letGo {
		known.released, known.letGo = p.Released, false
	}
	known.doubted = known.doubted && known.alive && (known.freed || known.letGo)
	a.count(known, 1)
	a.endDoubt(p.UID, now)
	if a.ordinals != nil {
		a.observeOrdinal(p)
	}
}

// Gone takes in that a pod was deleted, or no longer matches the cache's selector. version is the resourceVersion of the
// event's object, 0 if unknown: what is observed later with an older version is ignored.
func (a *Accounting) Gone(uid types.UID, version uint64, now time.Time) {
	known := a.pods[uid]
	if known != nil {
		a.count(known, -1)
		version = max(version, known.version)
		delete(a.pods, uid)
	}
	a.gone[uid] = tombstone{version: version, at: now}
	if len(a.gone) > a.buryAt {
		a.ForgetOld(now)
		a.buryAt = 64 + 2*len(a.gone)
	}
}

// ForgetOld forgets pods that went too long ago for an event about them to come.
func (a *Accounting) ForgetOld(now time.Time) {
	for uid, grave := range a.gone {
		if now.Sub(grave.at) > ReservationTTL {
			delete(a.gone, uid)
		}
	}
}

// Free says that we are about to evict a pod: its slot is free from now on, so that the replacement, which may be admitted
// before the eviction is answered, finds it. It returns false when there is no such pod, or it is going already, or it is not
// known whether it was released: its owner may still count on it.
func (a *Accounting) Free(uid types.UID, now time.Time) bool {
	a.endDoubt(uid, now)
	known := a.pods[uid]
	if known == nil || !known.alive || known.freed || known.doubted {
		return false
	}
	a.free(known)
	known.before, known.freedAt = a.movedAt, now
	if known.released == nil { // else its replacement is there already
		a.moves, a.movedAt = a.movesAt(now)+1, now
	}
	return true
}

// LetGo says that we are about to release a pod: from now on it is no business of its owner, and its slot is free for the
// replacement. It returns false when there is no such pod, or it is going already. r is kept.
func (a *Accounting) LetGo(uid types.UID, r *plan.Released, now time.Time) bool {
	a.endDoubt(uid, now)
	known := a.pods[uid]
	if known == nil || !known.alive || known.freed || known.released != nil {
		return false
	}
	a.count(known, -1)
	known.released, known.letGo = r, true
	known.before, known.freedAt = a.movedAt, now
	a.moves, a.movedAt = a.movesAt(now)+1, now
	return true
}

// Restore takes back the last [Accounting.Free] or [Accounting.LetGo] of a pod, whose write failed.
func (a *Accounting) Restore(uid types.UID) {
	known := a.pods[uid]
	if known == nil {
		return
	}
	known.doubted = false
	switch {
	case known.freed:
		known.freed, known.missing = false, false
	case known.letGo:
		known.released, known.letGo = nil, false
	default:
		return
	}
	a.count(known, 1)
	if known.released == nil {
		a.moves = max(a.moves-1, 0)
		if a.movedAt.Equal(known.freedAt) { // else another was freed since
			a.movedAt = known.before
		}
	}
}

// Unanswered says that nobody answered the write after the last [Accounting.Free] or [Accounting.LetGo] of a pod: it may
// have been done. So it counts as done, and as a move, until what is observed shows it; a pod that is still as it was when
// [plan.SettleTime] has passed, the longest that a cache lags behind, gets back what it held. To count it as failed at once would
// let the next plan take another pod as well. Pods whose node goes are to go all of them, so there it is taken back at once,
// to be tried again; but of a StatefulSet one goes at a time.
func (a *Accounting) Unanswered(uid types.UID, purpose plan.Purpose, now time.Time) {
	known := a.pods[uid]
	if known == nil || !known.alive || (!known.freed && !known.letGo) {
		return
	}
	if purpose == plan.PurposeInterruption && a.ordinals == nil {
		a.Restore(uid)
		return
	}
	if !known.freed || known.released == nil { // a move; the end of a release is none
		if !a.movedAt.Equal(known.freedAt) { // another was freed since
			known.before = a.movedAt
		}
		a.movedAt = now
	}
	known.doubted, known.freedAt = true, now
	a.unansweredUntil = now.Add(plan.SettleTime)
}

// endDoubt takes back an unanswered write of a pod that is still as it was, when the cache would show it.
func (a *Accounting) endDoubt(uid types.UID, now time.Time) {
	if known := a.pods[uid]; known != nil && known.doubted && now.Sub(known.freedAt) >= plan.SettleTime {
		a.Restore(uid)
	}
}

// Show is [Accounting.Observe] and [Accounting.Mark] of a pod in one look-up, for whoever reads all pods of an owner time and again: of
// a pod that is as it was it does nothing but note when it was seen.
func (a *Accounting) Show(p *plan.Pod, now time.Time) {
	known := a.pods[p.UID]
	if known == nil || !known.same(p) || (p.Reservation != "" && len(a.promised.byID) > 0) || !a.sameOrdinal(p) {
		a.Observe(p, now)
		a.Mark(p)
		return
	}
	known.at = now
}

// same reports whether a pod is as it was observed last, and nothing is known of it beyond that.
func (s *seen) same(p *plan.Pod) bool {
	return p.Version == s.version && p.Version != 0 && p.Slot == s.slot && p.Capacity == s.capacity && p.Leaving() == s.interrupted &&
		s.alive == (p.GoneBy.IsZero() && !p.Finished) && p.Released == nil && s.released == nil && !p.Evicted && !s.freed && !s.letGo && !s.doubted
}

// Mark sets what is known about a pod beyond the cache's word: that we evicted it, or are releasing it.
func (a *Accounting) Mark(p *plan.Pod) {
	known := a.pods[p.UID]
	if known == nil {
		return
	}
	p.Evicted = p.Evicted || known.freed
	if known.letGo && p.Released == nil {
		p.Released = known.released
	}
}

// Known returns how many pods of the owner the accounting knows.
func (a *Accounting) Known() int { return len(a.pods) }

// Held returns how many pods hold a slot, as the cache and what was done show them.
func (a *Accounting) Held() int { return a.visible.All }

// LastMove returns when we last evicted or released a pod of the owner; zero: never, as far as this process knows.
func (a *Accounting) LastMove() time.Time { return a.movedAt }

// Sync takes in a complete live list of the owner's pods. asked is when the list was requested: pods that are missing in
// it and were observed before are gone, whatever the cache still shows, and so are reservations that are older by more
// than a second, within which an admitted pod is stored. After a takeover it is what decisions can rely on; see
// [Accounting.TakeOver].
func (a *Accounting) Sync(pods []plan.Pod, asked, now time.Time) {
	listed := make(map[types.UID]struct{}, len(pods))
	for i := range pods {
		listed[pods[i].UID] = struct{}{}
		a.Observe(&pods[i], now)
	}
	for uid, known := range a.pods {
		if _, ok := listed[uid]; !ok && known.holds() && known.at.Before(asked) {
			a.free(known)
			known.missing = true
		}
	}
	for _, r := range a.promised.byID {
		if asked.Sub(a.promised.madeAt(r)) > time.Second {
			a.drop(r)
		}
	}
	a.proven = a.proven || !asked.Before(a.ProvenBy())
}

// Retain forgets pods that the cache does not have and that were not heard of lately. It fixes what a lost or reordered
// event has left behind.
func (a *Accounting) Retain(cached func(types.UID) bool, now time.Time) {
	for uid, known := range a.pods {
		if !cached(uid) && now.Sub(known.at) > ReservationTTL {
			a.count(known, -1)
			delete(a.pods, uid)
		}
	}
	a.ForgetOld(now)
	a.Expire(now)
}

// Release gives up a reservation whose pod will not come.
func (a *Accounting) Release(id string) {
	if r := a.promised.find(id); r != 0 {
		a.drop(r)
	}
}

// Live returns the reservation with the id, if its pod was not seen and its slot was not given out again.
func (a *Accounting) Live(id string) (plan.Reservation, bool) {
	r := a.promised.find(id)
	if r == 0 || a.promised.at(r).lost {
		return plan.Reservation{}, false
	}
	live := a.promised.show(r)
	live.ID = id
	return live, true
}

// Reservations returns how many reservations hold a slot.
func (a *Accounting) Reservations() int { return a.reserved.All }

// Summary returns what a plan has to know beyond the pods. wanted is how many replicas the owner wants.
func (a *Accounting) Summary(wanted int, now time.Time) plan.Summary {
	a.Expire(now)
	s := plan.Summary{UnprovenUntil: a.unprovenUntil(now)}
	if a.unansweredUntil.After(now) {
		s.UnansweredUntil = a.unansweredUntil
	}
	fresh := a.visible.All + a.lost.All
	for r := a.waiting.first; r != 0; r = a.promised.at(r).links[inAll].next {
		s.Reserved = append(s.Reserved, a.promised.show(r))
		if now.Sub(a.promised.madeAt(r)) >= plan.SettleTime {
			continue
		}
		fresh++
		// There is never more than one pod of an ordinal: the one before is gone, and what is seen of it must not be counted on.
		if slot := int(a.promised.at(r).slot); a.ordinals != nil && a.slots.count(slot) > 1 {
			s.Unexplained++
		}
	}
	if a.ordinals == nil {
		s.Unexplained = max(fresh-wanted, 0)
	}
	return s
}

// free makes a pod hold nothing.
func (a *Accounting) free(known *seen) {
	a.count(known, -1)
	known.freed = true
}

// count adds (n = 1) or removes (n = -1) a pod from what is held, if it holds.
func (a *Accounting) count(known *seen, n int) {
	if !known.holds() {
		return
	}
	a.visible.Add(known.capacity, n)
	if n > 0 {
		a.slots.take(known.slot)
	} else {
		a.slots.give(known.slot)
	}
}

// movesAt returns how many of our evictions still wait for their replacement.
func (a *Accounting) movesAt(now time.Time) int {
	if now.Sub(a.movedAt) > plan.SettleTime {
		return 0
	}
	return a.moves
}
