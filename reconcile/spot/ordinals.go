package spot

import "k8s.io/apimachinery/pkg/types"

// ordinal is what is remembered of one ordinal of a StatefulSet, also while no pod has it.
type ordinal struct {
	capacity Capacity
	pod      types.UID // seen last
	waiting  ref       // made for it and not seen yet; 0: none
}

// decideOrdinal places a pod of a StatefulSet. There is at most one pod of an ordinal, so nothing is uncertain: an ordinal
// keeps its type unless the others have enough of that type. No more than Spot(wanted) ordinals are ever put on spot, so a
// complete StatefulSet has its floor.
//
// After a restart the type of an ordinal without a pod is not known: then its slot decides, within the same bound.
func (a *Accounting) decideOrdinal(ask *Ask) decision {
	d := decision{slot: ask.Ordinal - ask.Start, reason: reasonSlot}
	if d.slot < 0 { // the StatefulSet's first ordinal was raised and we do not know yet
		d.slot = NoSlot
	}
	wanted := max(ask.Wanted, d.slot+1)
	if ask.Mix.Managed && ask.Mix.Dry {
		d.capacity, d.reason = OnDemand, reasonDry
		return d
	}
	var others tally
	for number, known := range a.ordinals {
		if number != ask.Ordinal && number >= ask.Start && number < ask.Start+wanted {
			others.add(known.capacity, 1)
		}
	}
	preferred := ask.Mix.Of(d.slot)
	if known := a.ordinals[ask.Ordinal]; known != nil && known.capacity != Unknown && ask.Mix.Managed {
		preferred, d.reason = known.capacity, reasonOrdinal
	}
	d.capacity, d.reason = balance(ask.Mix, wanted, others, preferred, d.reason)
	if d.capacity == OnDemand && ask.Mix.fallsBack(others.spot) && others.onDemand >= ask.Mix.Floor {
		d.capacity, d.reason = Spot, reasonNoRoom
	}
	return d
}

// holdOrdinal remembers the type that an ordinal was given, in place of an earlier reservation for it.
func (a *Accounting) holdOrdinal(r Reservation, number int) {
	known := a.ordinals[number]
	if known == nil {
		known = &ordinal{}
		a.ordinals[number] = known
	}
	if known.waiting != 0 {
		a.drop(known.waiting)
	}
	known.capacity, known.waiting = r.Capacity, a.hold(r, number)
}

func (a *Accounting) forgetOrdinalOf(r ref) {
	if known := a.ordinals[int(a.promised.at(r).ordinal)]; known != nil && known.waiting == r {
		known.waiting = 0
	}
}

// observeOrdinal remembers the type of a pod's ordinal. While a reservation for the ordinal waits, a pod that was seen
// before it, or came on another reservation, is one of the past; a new one without any was admitted without our answer.
func (a *Accounting) observeOrdinal(p *Pod) {
	number, ok := OrdinalOf(p.Name)
	if !ok || p.Capacity == Unknown {
		return
	}
	known := a.ordinals[number]
	if known == nil {
		known = &ordinal{}
		a.ordinals[number] = known
	}
	if known.waiting != 0 {
		if p.UID == known.pod || p.Reservation != "" {
			return
		}
		a.drop(known.waiting)
	}
	if p.Alive() || known.capacity == Unknown {
		known.capacity, known.pod = p.Capacity, p.UID
	}
}

// OrdinalOf returns the number at the end of the name of a StatefulSet's pod.
func OrdinalOf(name string) (int, bool) {
	start := len(name)
	for start > 0 && name[start-1] >= '0' && name[start-1] <= '9' {
		start--
	}
	if start == 0 || name[start-1] != '-' {
		return 0, false
	}
	return parseNumber(name[start:], 1<<30)
}
