package slots

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Ask is a question to [Accounting.Reserve].
type Ask struct {
	// ID becomes the reservation's id: the UID of the AdmissionRequest. The same ID gets the same answer.
	ID string
	// Wanted is how many replicas the owner is known to want.
	Wanted int
	// Mix is the policy of the owner's workload.
	Mix policy.Mix
	// Ordinal of the pod's name and the StatefulSet's first ordinal; not looked at for ReplicaSets.
	Ordinal, Start int
	// Final asks for a decision where otherwise the answer would be a doubt.
	Final bool
	// DryRun reserves nothing.
	DryRun bool
}

// Doubt says why the accounting would rather know more before it decides. Nothing is reserved then.
type Doubt uint8

// Doubts.
const (
	// DoubtNone: there is an answer.
	DoubtNone Doubt = iota
	// DoubtWanted: visible pods and reservations reach the replicas that the owner is known to want. It wants more by now,
	// or a pod was refused after us. Reading the owner's replicas live shows which.
	DoubtWanted
	// DoubtGone: visible pods alone reach them. The owner wants more by now, or a pod is gone that the cache still shows.
	// The next event of the owner shows it, or a live list given to [Accounting.Sync].
	DoubtGone
	// DoubtUnproven: the pod would go to spot by what a process has seen that has only just begun to decide for the owner. A
	// live list given to [Accounting.Sync] shows it, if it is asked for at [Accounting.ProvenBy] or later.
	DoubtUnproven
)

// Answer is what [Accounting.Reserve] decided.
type Answer struct {
	// Reservation is the slot and capacity type of the pod; zero when there is a doubt.
	plan.Reservation
	// Doubt is only set when the question was not final. Then ask again.
	Doubt Doubt
	// Reused says that the slot was given out before, to a pod that was not seen.
	Reused bool
	// Reason is a constant sentence.
	Reason string
}

// Reasons of answers.
const (
	ReasonRepeated = "the same request was answered before"
	reasonSlot     = "the lowest free slot decides"
	reasonMix      = "the other capacity type has enough replicas already"
	reasonFloor    = "the floor may lack an on-demand replica"
	reasonRetry    = "a pod that was admitted to this slot did not appear"
	reasonGuess    = "the cache still shows a deleted replica, most likely of this capacity type"
	reasonOrdinal  = "the ordinal keeps its capacity type"
	ReasonUnproven = "the hub has just taken over the member and has not read its pods yet"
	reasonDry      = "spot has no room for such pods"
	reasonNoRoom   = "on-demand has no room for such pods, and the floor is met without this one"
)

// decision is an answer that nothing was done about yet.
type decision struct {
	slot     int
	capacity capacity.Type
	reuse    ref // 0: none
	doubt    Doubt
	reason   string
}

// Reserve decides which slot and capacity type a new pod of the owner gets, and reserves the slot until the pod is seen.
//
// While the owner is known to want more than is held, the lowest free slot is taken. At capacity somebody is gone whom the
// cache still shows, or a pod was refused after us: the oldest unseen reservation is used again first, and without one the
// type that is most likely missing.
//
// The floor. Let P be all pods that may exist: visible pods and all recent reservations, those given out again included.
// The pods that do exist, E, are some of P, and a controller never has more than it wants: |E| ≤ wanted. When the owner is
// complete again, |E| = wanted, and then |P| − wanted of P are gone, at worst all of them on-demand. So
//
//	on-demand(E) ≥ on-demand(P) − max(|P| − wanted, 0)
//
// A pod is placed on spot only if the right side, with this pod in P, is at least the floor; placed on-demand, it adds one
// to both terms. So an owner that is complete has its floor of on-demand replicas, whatever was refused, evicted by others
// or is not visible yet; see spotIsSafe. Three things weaken that: a cache that lags by more than [plan.SettleTime], for then P is
// not all of them, a wanted that is too high because the owner shrank unseen, and reservations that another process made. Hence
// doubts, before it comes to this.
func (a *Accounting) Reserve(ask Ask, now time.Time) Answer {
	a.Expire(now)
	if r := a.promised.find(ask.ID); r != 0 {
		answer := Answer{Reservation: a.promised.show(r), Reused: true, Reason: ReasonRepeated}
		answer.ID = ask.ID
		return answer
	}
	var d decision
	if a.ordinals != nil {
		d = a.decideOrdinal(&ask)
	} else {
		d = a.decide(&ask)
	}
	a.prove(&d, &ask, now)
	if d.doubt != DoubtNone && !ask.Final {
		return Answer{Doubt: d.doubt}
	}
	moves := a.movesAt(now)
	r := plan.Reservation{ID: ask.ID, Slot: d.slot, Capacity: d.capacity, Moved: moves > 0, At: now}
	if !ask.DryRun && ask.ID != "" {
		a.moves = max(moves-1, 0)
		a.commit(&ask, &d, r)
	}
	return Answer{Reservation: r, Reused: d.reuse != 0, Reason: d.reason}
}

// commit does what was decided.
func (a *Accounting) commit(ask *Ask, d *decision, r plan.Reservation) {
	if d.reuse != 0 {
		a.lose(d.reuse)
		// More of them than this change no decision, and requests without end must not fill the memory.
		for limit := max(64, ask.Wanted); a.lost.All > limit; {
			a.drop(a.replaced.first)
		}
	}
	if a.ordinals != nil {
		a.holdOrdinal(r, ask)
		return
	}
	a.hold(r, 0)
}

func (a *Accounting) decide(ask *Ask) decision {
	switch {
	case a.visible.All+a.reserved.All < ask.Wanted:
		d := decision{slot: a.slots.free()}
		d.capacity, d.reason = a.place(ask, d.slot, 0)
		return d
	case a.visible.All < ask.Wanted:
		return a.retry(ask)
	}
	return a.guess(ask)
}

// place returns the capacity type for a pod in a slot: the slot's own, unless the replicas that are held without the given
// reservation already have enough of that type, the floor forbids, or spot has no room.
func (a *Accounting) place(ask *Ask, slot int, without ref) (capacity.Type, string) {
	if ask.Mix.Managed && ask.Mix.Dry {
		return capacity.OnDemand, reasonDry
	}
	others := capacity.Tally{Spot: a.visible.Spot + a.reserved.Spot, OnDemand: a.visible.OnDemand + a.reserved.OnDemand}
	if without != 0 {
		others.Add(a.promised.at(without).capacity.Type(), -1)
	}
	capacityType, reason := balance(ask.Mix, ask.Wanted, others, ask.Mix.Of(slot), reasonSlot)
	if capacityType == capacity.OnDemand && ask.Mix.FallsBack(others.Spot) && a.spotIsSafe(ask) {
		return capacity.Spot, reasonNoRoom
	}
	if capacityType == capacity.Spot && !a.spotIsSafe(ask) {
		return capacity.OnDemand, reasonFloor
	}
	return capacityType, reason
}

// balance keeps to the preferred type unless the others have enough of it for the wanted replicas. That is how pods that
// come and go anyway repair a mix, instead of evictions. When both types have enough, on-demand is the safer one.
func balance(mix policy.Mix, wanted int, others capacity.Tally, preferred capacity.Type, reason string) (capacity.Type, string) {
	spotFull := others.Spot >= mix.Spot(wanted)
	switch {
	case preferred == capacity.Spot && spotFull:
		return capacity.OnDemand, reasonMix
	case preferred == capacity.OnDemand && others.OnDemand >= mix.OnDemand(wanted) && !spotFull:
		return capacity.Spot, reasonMix
	}
	return preferred, reason
}

// spotIsSafe reports whether the floor stands if one more pod goes on spot; see [Accounting.Reserve] for why.
func (a *Accounting) spotIsSafe(ask *Ask) bool {
	possible := a.visible.All + a.reserved.All + a.lost.All + 1
	onDemand := a.visible.OnDemand + a.reserved.OnDemand + a.lost.OnDemand
	return max(onDemand-max(possible-ask.Wanted, 0), 0) >= ask.Mix.Floor
}

// retry gives the oldest unseen reservation's slot to another pod. Where spot is not safe, an on-demand slot serves better.
func (a *Accounting) retry(ask *Ask) decision {
	d := decision{reuse: a.waiting.first, doubt: DoubtWanted}
	if ask.Mix.Managed && !a.spotIsSafe(ask) {
		if r := a.waitingFor[capacity.CodeOf(capacity.OnDemand)].first; r != 0 {
			d.reuse = r
		}
	}
	d.slot = int(a.promised.at(d.reuse).slot)
	if free := a.slots.free(); d.slot >= ask.Wanted && free < ask.Wanted {
		d.slot = free
	}
	d.capacity, d.reason = a.place(ask, d.slot, d.reuse)
	if d.reason == reasonSlot {
		d.reason = reasonRetry
	}
	return d
}

// guess decides where nothing free is known. Taking the pods that are gone as drawn evenly from all that may exist, the
// type that is further below its share is the one to replace.
func (a *Accounting) guess(ask *Ask) decision {
	d := decision{doubt: DoubtGone, reason: reasonGuess}
	all := a.visible.All + a.reserved.All + a.lost.All
	if ask.Wanted == 0 || all == 0 {
		d.slot = a.slots.free()
		d.capacity = ask.Mix.Of(d.slot)
	} else {
		onDemand := a.visible.OnDemand + a.reserved.OnDemand + a.lost.OnDemand
		d.capacity = guessType(ask.Mix, ask.Wanted, all, onDemand)
	}
	if d.capacity == capacity.Spot && ask.Mix.Dry {
		d.capacity, d.reason = capacity.OnDemand, reasonDry
	} else if d.capacity == capacity.OnDemand && ask.Mix.FallsBack(a.visible.Spot+a.reserved.Spot) && a.spotIsSafe(ask) {
		d.capacity, d.reason = capacity.Spot, reasonNoRoom
	} else if d.capacity == capacity.Spot && !a.spotIsSafe(ask) {
		d.capacity, d.reason = capacity.OnDemand, reasonFloor
	}
	d.reuse = a.waitingFor[capacity.CodeOf(d.capacity)].first
	if d.reuse != 0 && int(a.promised.at(d.reuse).slot) < max(ask.Wanted, 1) {
		d.slot = int(a.promised.at(d.reuse).slot)
	} else {
		d.slot = a.shared(ask, d.capacity)
	}
	return d
}

// guessType is on-demand when the wanted − 1 replicas that are left of all, a fraction onDemand/all of them on-demand, are
// short of on-demand replicas by half a replica or more.
func guessType(mix policy.Mix, wanted, all, onDemand int) capacity.Type {
	if !mix.Managed {
		return capacity.Unknown
	}
	if 2*(mix.OnDemand(wanted)*all-onDemand*(wanted-1)) >= all {
		return capacity.OnDemand
	}
	return capacity.Spot
}

// shared returns a slot of the given type for a pod that replaces one of unknown slot: the first that the wanted replicas
// have, so that slots above them are never used, or without any the lowest that is free. It is held by another as well, most
// likely; assignments repair that when more is known.
func (a *Accounting) shared(ask *Ask, capacityType capacity.Type) int {
	if slot := ask.Mix.First(capacityType); slot < ask.Wanted {
		return slot
	}
	return a.slots.free()
}
