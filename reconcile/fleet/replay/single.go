package replay

// The policies for one cluster use one zone only.

// staticSplit runs a fixed share on-demand and the rest on spot, and asks for spot again and again.
type staticSplit struct{ zone, onDemand int }

// Act implements Policy.
func (p staticSplit) Act(w *World) int64 {
	balance(w, p.zone, p.onDemand)
	if refusedNow(w, p.zone) {
		return w.Now + 60
	}
	for w.Count(p.zone, true, Waiting, Starting, Ready) < w.Replicas-p.onDemand {
		w.Launch(p.zone, true)
	}
	return w.Now + 60
}

func refusedNow(w *World, zone int) bool {
	for _, e := range w.Events {
		if e.Kind == Refused && e.Zone == zone {
			return true
		}
	}
	return false
}

// pendingTimeout asks for spot; what finds no room within the timeout goes on-demand instead, and spot is tried again with one
// replica after 2 minutes, then 4, and so on up to 30.
type pendingTimeout struct {
	zone           int
	timeout        int64
	dry            bool
	failing, retry int64 // since when spot has no room; when it is tried next
	wait           int64
}

// Act implements Policy.
func (p *pendingTimeout) Act(w *World) int64 {
	for _, e := range w.Events {
		if !e.Spot {
			continue
		}
		switch e.Kind {
		case Refused:
			p.refused(w.Now)
		case Granted:
			p.dry, p.failing, p.wait = false, 0, 0
		case Served, Noticed:
		}
	}
	if p.failing > 0 && !p.dry && w.Now >= p.failing+p.timeout {
		p.dry, p.wait = true, 120
		p.retry = w.Now + p.wait
	}
	spot := w.Count(p.zone, true, Waiting, Starting, Ready)
	switch {
	case p.dry && w.Now >= p.retry && spot < w.Replicas && w.Count(p.zone, true, Waiting) == 0:
		w.Launch(p.zone, true)
	case !p.dry && (p.failing == 0 || w.Now >= p.retry):
		for ; spot < w.Replicas; spot++ {
			w.Launch(p.zone, true)
		}
	}
	serving := w.Count(p.zone, true, Ready)
	if !p.dry {
		serving = max(serving, w.Replicas-w.Count(p.zone, false, Ready, Starting))
	}
	balance(w, p.zone, max(w.Replicas-serving, 0))
	if p.failing == 0 || p.retry > w.Now {
		return p.retry
	}
	return w.Now + 10
}

func (p *pendingTimeout) refused(now int64) {
	switch {
	case p.dry:
		p.wait = min(2*p.wait, 1800)
		p.retry = now + p.wait
	case p.failing == 0:
		p.failing, p.retry = now, now+10
	default:
		p.retry = now + 10
	}
}
