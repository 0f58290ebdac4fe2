package slots

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// spareOrdinals is how far from the ordinals that are wanted others are remembered, and how many of any are, beside as many
// as are wanted, before those that nobody needs are forgotten.
const spareOrdinals = 1024

// ordinals is what an [Accounting] remembers of the ordinals of a StatefulSet. Its size follows the pods, the reservations
// and the replicas that are wanted, and every answer takes logarithmic time.
type ordinals struct {
	known         map[int]*ordinal
	counts        ordinalCounts // of the known ones, by type
	start, wanted int           // the first ordinal and the replicas, as the last question named them
	pruneAt       int           // number of known ordinals at which those that nobody needs are looked for
}

// ordinal is what is remembered of one ordinal of a StatefulSet, also while no pod has it.
type ordinal struct {
	capacity capacity.Type
	pod      types.UID // seen last
	waiting  ref       // made for it and not seen yet; 0: none
}

func newOrdinals() *ordinals {
	return &ordinals{known: map[int]*ordinal{}, counts: ordinalCounts{}}
}

// near reports whether an ordinal is close enough to those that are wanted to be remembered without a pod.
func (o *ordinals) near(number int) bool {
	return number >= o.start-spareOrdinals && number < o.start+o.span()+spareOrdinals
}

// span is how many ordinals from the first one on are remembered: twice the wanted ones, for a StatefulSet that shrinks may
// grow again.
func (o *ordinals) span() int { return 2 * min(max(o.wanted, 0), policy.MaxSlot) }

// at returns what is known about an ordinal, which is nothing at first.
func (o *ordinals) at(number int) *ordinal {
	known := o.known[number]
	if known == nil {
		known = &ordinal{}
		o.known[number] = known
	}
	return known
}

// place notes the type of an ordinal.
func (o *ordinals) place(number int, known *ordinal, capacityType capacity.Type) {
	o.counts.add(number, known.capacity, -1)
	o.counts.add(number, capacityType, 1)
	known.capacity = capacityType
}

// others counts the types of the ordinals from start to before end, without the given one.
func (o *ordinals) others(number, start, end int) capacity.Tally {
	below, n := o.counts.before(start), o.counts.before(end)
	n.All, n.Spot, n.OnDemand = n.All-below.All, n.Spot-below.Spot, n.OnDemand-below.OnDemand
	if known := o.known[number]; known != nil && known.capacity != capacity.Unknown && number >= start && number < end {
		n.Add(known.capacity, -1)
	}
	return n
}

// prune forgets ordinals that have neither a pod nor a reservation and are not near, once there are many. Its cost is
// spread over the ordinals that came since it was last done.
func (o *ordinals) prune(lives func(types.UID) bool) {
	if len(o.known) <= max(o.pruneAt, o.span()+spareOrdinals) {
		return
	}
	for number, known := range o.known {
		if !o.near(number) && known.waiting == 0 && !lives(known.pod) {
			o.counts.add(number, known.capacity, -1)
			delete(o.known, number)
		}
	}
	o.pruneAt = 2 * len(o.known)
}

// ordinalCounts counts ordinals by type such that those below any number are known after few steps: a binary indexed tree
// that only has the nodes that count something. Ordinals are less than 1<<ordinalBits.
type ordinalCounts map[int]capacity.Tally

const ordinalBits = 30

// add counts an ordinal of a type in (n = 1) or out (n = -1).
func (c ordinalCounts) add(number int, capacityType capacity.Type, n int) {
	if capacityType == capacity.Unknown || number < 0 || number >= 1<<ordinalBits {
		return
	}
	for node := number + 1; node <= 1<<ordinalBits; node += node & -node {
		t := c[node]
		t.Add(capacityType, n)
		if t == (capacity.Tally{}) {
			delete(c, node)
		} else {
			c[node] = t
		}
	}
}

// before counts the ordinals below a number.
func (c ordinalCounts) before(number int) (t capacity.Tally) {
	for node := min(max(number, 0), 1<<ordinalBits); node > 0; node &= node - 1 {
		below := c[node]
		t.All, t.Spot, t.OnDemand = t.All+below.All, t.Spot+below.Spot, t.OnDemand+below.OnDemand
	}
	return t
}

// decideOrdinal places a pod of a StatefulSet. There is at most one pod of an ordinal, so nothing is uncertain: an ordinal
// keeps its type unless the others have enough of that type. No more than Spot(wanted) ordinals are ever put on spot, so a
// complete StatefulSet has its floor.
//
// After a restart the type of an ordinal without a pod is not known: then its slot decides, within the same bound.
func (a *Accounting) decideOrdinal(ask *Ask) decision {
	d := decision{slot: ask.Ordinal - ask.Start, reason: reasonSlot}
	if d.slot < 0 { // the StatefulSet's first ordinal was raised and we do not know yet
		d.slot = plan.NoSlot
	}
	wanted := max(ask.Wanted, d.slot+1)
	if ask.Mix.Managed && ask.Mix.Dry {
		d.capacity, d.reason = capacity.OnDemand, reasonDry
		return d
	}
	others := a.ordinals.others(ask.Ordinal, ask.Start, ask.Start+wanted)
	preferred := ask.Mix.Of(d.slot)
	if known := a.ordinals.known[ask.Ordinal]; known != nil && known.capacity != capacity.Unknown && ask.Mix.Managed {
		preferred, d.reason = known.capacity, reasonOrdinal
	}
	d.capacity, d.reason = balance(ask.Mix, wanted, others, preferred, d.reason)
	if d.capacity == capacity.OnDemand && ask.Mix.FallsBack(others.Spot) && others.OnDemand >= ask.Mix.Floor {
		d.capacity, d.reason = capacity.Spot, reasonNoRoom
	}
	return d
}

// holdOrdinal remembers the type that an ordinal was given, in place of an earlier reservation for it. One that is far
// from those that are wanted is answered and not remembered: there can be any number of requests for such pods.
func (a *Accounting) holdOrdinal(r plan.Reservation, ask *Ask) {
	a.ordinals.start, a.ordinals.wanted = ask.Start, ask.Wanted
	if !a.ordinals.near(ask.Ordinal) {
		return
	}
	known := a.ordinals.at(ask.Ordinal)
	if known.waiting != 0 {
		a.drop(known.waiting)
	}
	a.ordinals.place(ask.Ordinal, known, r.Capacity)
	known.waiting = a.hold(r, ask.Ordinal)
	a.ordinals.prune(a.knows)
}

// sameOrdinal reports whether what is remembered of a pod's ordinal is what the pod shows: a reservation for it, which came to nothing, may
// have had another type.
func (a *Accounting) sameOrdinal(p *plan.Pod) bool {
	if a.ordinals == nil || p.Capacity == capacity.Unknown {
		return true
	}
	number, ok := phrase.Ordinal(p.Name)
	if !ok {
		return true
	}
	known := a.ordinals.known[number]
	return known != nil && known.waiting == 0 && known.pod == p.UID && known.capacity == p.Capacity
}

// knows reports whether a pod was seen and not forgotten.
func (a *Accounting) knows(uid types.UID) bool { return a.pods[uid] != nil }

func (a *Accounting) forgetOrdinalOf(r ref) {
	if known := a.ordinals.known[int(a.promised.at(r).ordinal)]; known != nil && known.waiting == r {
		known.waiting = 0
	}
}

// observeOrdinal remembers the type of a pod's ordinal. While a reservation for the ordinal waits, a pod that was seen
// before it, or came on another reservation, is one of the past; a new one without any was admitted without our answer.
func (a *Accounting) observeOrdinal(p *plan.Pod) {
	number, ok := phrase.Ordinal(p.Name)
	if !ok || p.Capacity == capacity.Unknown {
		return
	}
	known := a.ordinals.at(number)
	if known.waiting != 0 {
		if p.UID == known.pod || p.Reservation != "" {
			return
		}
		a.drop(known.waiting)
	}
	if p.Alive() || known.capacity == capacity.Unknown {
		a.ordinals.place(number, known, p.Capacity)
		known.pod = p.UID
	}
	a.ordinals.prune(a.knows)
}
