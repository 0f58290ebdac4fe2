package placing

import "time"

// orderHolds is for how long a member may still have what was set for it before: pods get their slots first, and then the number is
// written and seen. One that is set anew meanwhile waits for its slots again.
const orderHolds = 5 * (slotPatience + taskTime)

// orders remember what was set for a member of late.
type orders struct {
	looked time.Time
	kept   []order // the highest first: none is there that a later one exceeds
}

type order struct {
	replicas int
	last     time.Time // when it was set still
}

// most is the highest number that was set until lately, with the one that is set now. While a member is not seen it gets no orders: that
// time does not count.
func (o *orders) most(set int, seen bool, now time.Time) int {
	unseen := time.Duration(0)
	if !seen {
		unseen = now.Sub(o.looked)
	}
	older := o.kept
	o.looked, o.kept = now, o.kept[:0]
	for _, one := range older {
		if one.last = one.last.Add(unseen); one.replicas > set && now.Sub(one.last) < orderHolds {
			o.kept = append(o.kept, one)
		}
	}
	o.kept = append(o.kept, order{replicas: set, last: now})
	return o.kept[0].replicas
}
