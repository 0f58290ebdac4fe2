package replay

// spotHedge is the policy of SkyServe (Mao et al., SkyServe: Serving AI Models across Regions and Clouds with Spot Instances,
// EuroSys 2025): zones are active or were preempted, spot is launched in active zones that are not used first, and on-demand
// replicas stand in for spot replicas that are not ready.
type spotHedge struct {
	extra     int
	preempted []bool
}

// Act implements Policy.
func (h *spotHedge) Act(w *World) int64 {
	if h.preempted == nil {
		h.preempted = make([]bool, len(w.capacity))
	}
	for _, e := range w.Events {
		switch {
		case !e.Spot:
		case e.Kind == Refused || e.Kind == Noticed:
			h.preempted[e.Zone] = true
		case e.Kind == Served:
			h.preempted[e.Zone] = false
		}
	}
	wanted := w.Replicas + h.extra
	for w.Count(-1, true, Waiting, Starting, Ready) < wanted {
		w.Launch(h.next(w), true)
	}
	onDemand := min(w.Replicas, wanted-w.Count(-1, true, Ready))
	balance(w, w.cheapestOnDemand(), onDemand)
	return 0
}

// next selects a zone: an active one with the fewest replicas, and of these the cheapest. With fewer than two active zones all count as active again.
func (h *spotHedge) next(w *World) int {
	active := 0
	for _, gone := range h.preempted {
		if !gone {
			active++
		}
	}
	if active < 2 {
		clear(h.preempted)
	}
	best, fewest := -1, 0
	for z, gone := range h.preempted {
		n := w.Count(z, true, Waiting, Starting, Ready)
		if !gone && (best < 0 || n < fewest || (n == fewest && w.SpotPrice(z) < w.SpotPrice(best))) {
			best, fewest = z, n
		}
	}
	return best
}

// cheapestOnDemand is the first zone in which on-demand costs the least.
func (w *World) cheapestOnDemand() int {
	best := 0
	for z := range w.Trace.Zones {
		if w.OnDemandPrice(z) < w.OnDemandPrice(best) {
			best = z
		}
	}
	return best
}

// balance has so many on-demand instances in a zone.
func balance(w *World, zone, wanted int) {
	have := w.Count(zone, false, Starting, Ready)
	for ; have < wanted; have++ {
		w.Launch(zone, false)
	}
	w.Stop(zone, false, max(have-wanted, 0))
}
