package fleet

// Stage is how far a replica is.
type Stage uint8

// The stages. Gone is a replica that is about to go, or is not there: it will be made again, and counts as starting or waiting.
const (
	Gone Stage = iota
	Waiting
	Starting
	Ready
)

// Ordinal is a replica of a StatefulSet.
type Ordinal struct {
	Capacity Capacity // of no meaning where it is gone
	Stage    Stage
}

// released is what a member may lose of what it has, by capacity type and stage.
type released [2][Ready + 1]int

func (s *stepper) released(p *place, stocks *[2]stock) (r released) {
	for c := range stocks {
		kept, beyond := &stocks[c].kept, &stocks[c].beyond
		r[c][Waiting] = p.have[c].Waiting - kept.Waiting - beyond.Waiting
		r[c][Starting] = p.have[c].Starting - kept.Starting - beyond.Starting
		r[c][Ready] = p.have[c].Ready - kept.Ready - beyond.Ready
	}
	return r
}

// takes reports whether an ordinal may go, and books it. One that is gone stands for one that is counted as on its way.
func (r *released) takes(o Ordinal) bool {
	if o.Stage != Gone {
		if r[o.Capacity][o.Stage] == 0 {
			return false
		}
		r[o.Capacity][o.Stage]--
		return true
	}
	for _, c := range []Capacity{OnDemand, Spot} {
		for _, stage := range []Stage{Waiting, Starting} {
			if r[c][stage] > 0 {
				r[c][stage]--
				return true
			}
		}
	}
	return false
}

// holdOrdinals lets a StatefulSet shrink only by the highest ordinals that may go: it gives those up, whatever they run on and however
// far they are. Where the highest is of the other capacity type, the ordinal that is to go moves to that type first, which makes the
// highest one too many there.
func (s *stepper) holdOrdinals(p *place, stocks *[2]stock) {
	may := s.released(p, stocks)
	if stocks[Spot].starts+stocks[OnDemand].starts == 0 {
		at := len(p.ordinals) - 1
		for at >= 0 && may.takes(p.ordinals[at]) {
			at--
		}
		s.exchange(p, at, &may)
	}
	for c := range may {
		for stage := Waiting; stage <= Ready; stage++ {
			p.now[c] += may[c][stage]
		}
	}
}

// exchange moves one replica that may go to the capacity type of the highest ordinal that stays, if there is room for it. Where spot had
// none, it finds out whether it has some again, as soon as a dry supply may be tried: the plan itself has no need to ask.
func (s *stepper) exchange(p *place, highest int, may *released) {
	if highest < 0 || p.ordinals[highest].Stage == Gone {
		return
	}
	to := p.ordinals[highest].Capacity
	tries := to == Spot && !p.Spot.DrySince.IsZero()
	if tries {
		s.recheck(p.Spot.TryAt)
		tries = p.have[Spot].Waiting == 0 && s.mayTry(p)
	}
	if p.of(to).dry() && !tries {
		return
	}
	from := Spot
	if to == Spot {
		from = OnDemand
	}
	// One that does not serve yet waits until it does: it may by the time that it is moved, and be needed.
	if may[from][Ready] > 0 {
		may[from][Ready]--
		p.now[to]++
		p.exchanges++
		s.tried[p.at] = s.tried[p.at] || tries
		p.because("its highest ordinal is on %s: one on %s moves there before it shrinks", to, from)
	}
}
