package plan

import "github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"

// floor is how many on-demand replicas of a workload serve, and how many of them must. Released pods are not among them: they end
// as soon as their replacements are ready.
type floor struct {
	least    int // must serve
	expected int // are there, serving or not, or are missing
	staying  int // serve, on nodes that stay
	leaving  int // serve, on nodes that go for certain
}

// countFloor counts the on-demand replicas that serve before the plan takes any away.
func (pl *planner) countFloor() {
	f := &pl.floor
	f.least = min(pl.mix.Floor, pl.Replicas)
	missing := pl.Replicas
	for i := range pl.owners {
		o := &pl.owners[i]
		missing -= len(o.alive) + len(o.interrupted)
		for _, pods := range [][]*Pod{o.alive, o.interrupted} {
			for _, pod := range pods {
				if pod.Capacity == capacity.OnDemand {
					f.expected++
					f.count(pl, pod, 1)
				}
			}
		}
	}
	f.expected += max(missing, 0)
}

// count adds or takes off a pod, if it is an on-demand replica that serves.
func (f *floor) count(pl *planner, pod *Pod, n int) {
	switch {
	case pod.Capacity != capacity.OnDemand || pod.Released != nil || !pl.available(pod):
	case pod.Leaving():
		f.leaving += n
	default:
		f.staying += n
	}
}

// floorStands reports whether enough on-demand replicas serve without a pod. Those on nodes that go count only where the pod goes
// with them.
func (pl *planner) floorStands(pod *Pod) bool {
	f := &pl.floor
	switch {
	case pod.Capacity != capacity.OnDemand || !pl.available(pod):
		return true
	case pod.Leaving():
		return f.staying+f.leaving > f.least
	}
	return f.staying > f.least
}

// lacking returns how many on-demand replicas more should serve for the floor, of those that are about to: replicas that do not come
// up whatever is done are not waited for.
func (f *floor) lacking(coming int) int { return max(min(f.least-f.staying-f.leaving, coming), 0) }

// floorYields reports whether a pod of the floor goes before its replacement serves, because it cannot be released: where its node
// goes soon, and else one at a time, for all of them are lost with their nodes.
func (pl *planner) floorYields(pod *Pod) bool {
	f := &pl.floor
	return pl.pressing(pod) || (pod.Leaving() && f.staying+f.leaving >= min(f.least, f.expected))
}

// available reports whether a pod serves, and has been ready for as long as its workload asks for; else it asks for another plan
// when it has.
func (pl *planner) available(pod *Pod) bool {
	if !pod.Serves() || pl.MinReady == 0 {
		return pod.Serves()
	}
	at := pod.UnreadySince.Add(pl.MinReady)
	pl.recheck(at)
	return !pl.now.Before(at)
}

// pressing reports whether a pod's node goes so soon that its pods are replaced all at once, or has gone; else it asks for another
// plan when it does.
func (pl *planner) pressing(pod *Pod) bool {
	if pod.Interruption == nil || pod.Interruption.EffectiveWeight() != WeightDeadline {
		return false
	}
	if pod.Interruption.Gone || pod.Interruption.By.IsZero() {
		return true
	}
	at := pod.Interruption.By.Add(-InterruptionUrgent)
	pl.recheck(at)
	return !pl.now.Before(at)
}
