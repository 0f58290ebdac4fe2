package replay

// Next is when something happens next, at the latest at a given time.
func (w *World) Next(latest int64) int64 {
	next := latest
	at := func(t int64) {
		if t > w.Now && t < next {
			next = t
		}
	}
	for _, i := range w.Instances {
		switch i.State {
		case Waiting:
			at(i.Asked + w.Refusal)
		case Starting:
			at(i.Asked + w.Start)
		case Leaving:
			at(i.ends)
		case Ready:
		}
	}
	samples := w.Trace.Samples()
	for s := int(w.Now/w.Trace.Gap) + 1; s < samples && int64(s)*w.Trace.Gap < next; s++ {
		if w.changes(s) {
			at(int64(s) * w.Trace.Gap)
			break
		}
	}
	return next
}

func (w *World) changes(sample int) bool {
	for z := range w.capacity {
		zone := &w.Trace.Zones[z]
		if zone.Capacity[sample] != w.capacity[z] || (zone.Prices != nil && zone.Prices[sample] != zone.Prices[sample-1]) {
			return true
		}
	}
	return false
}

// Advance moves the time on, and lets happen what happens then.
func (w *World) Advance(to int64) {
	w.Now = to
	if sample := int(to / w.Trace.Gap); sample < w.Trace.Samples() {
		for z := range w.capacity {
			w.setCapacity(z, w.Trace.Zones[z].Capacity[sample])
		}
	}
	w.Settle()
}

// setCapacity changes what a zone can run. What is too much gets its notice, the youngest first.
func (w *World) setCapacity(zone, capacity int) {
	w.capacity[zone] = capacity
	var running []*Instance
	for _, i := range w.Instances {
		if i.Zone == zone && i.Spot && !i.refused && i.State != Leaving {
			running = append(running, i)
		}
	}
	for len(running) > capacity {
		last := running[len(running)-1]
		running = running[:len(running)-1]
		if last.State == Ready {
			w.counted.Evictions++
		}
		last.State, last.ends = Leaving, w.Now+w.Notice
		w.announce(Noticed, last)
	}
}

// Settle brings every instance to where it is now.
func (w *World) Settle() {
	for n := 0; n < len(w.Instances); n++ {
		i := w.Instances[n]
		gone := false
		if i.State == Waiting && w.Now >= i.Asked+w.Refusal {
			if i.refused {
				w.counted.Refusals++
				w.announce(Refused, i)
				gone = true
			} else {
				w.counted.Starts++
				i.State = Starting
				w.announce(Granted, i)
			}
		}
		if i.State == Starting && w.Now >= i.Asked+w.Start {
			i.State, i.serves = Ready, true
			w.announce(Served, i)
		}
		if gone || (i.State == Leaving && w.Now >= i.ends) {
			w.remove(i)
			n--
		}
	}
}
