package fleet

// start decides which replicas are started now: those that are missing at once, those that replace what serves elsewhere by
// the pace.
func (s *stepper) start() {
	missing := max(s.sum.planned-s.sum.present, 0)
	budget := s.budget()
	onDemand := 0
	for i := range s.places {
		if f := s.places[i].frozen; f == moves || f == grace {
			onDemand += s.stocks[i][OnDemand].kept.have() + s.stocks[i][OnDemand].beyond.Ready
		}
	}
	floor := max(min(s.policy.MinOnDemand, s.policy.Replicas)-onDemand, 0)
	for _, c := range []Capacity{OnDemand, Spot} {
		for i := range s.places {
			p, st := &s.places[i], &s.stocks[i][c]
			lacks := p.target[c] - st.kept.have()
			if p.frozen != moves || lacks <= 0 {
				continue
			}
			if c == OnDemand {
				urgent := min(lacks, floor)
				floor, lacks, st.starts = floor-urgent, lacks-urgent, urgent
				missing = max(missing-urgent, 0)
			}
			urgent := min(lacks, missing)
			moved := min(lacks-urgent, budget)
			missing, budget = missing-urgent, budget-moved
			st.starts += urgent + moved
			s.started(p, c, st.starts)
		}
	}
	for i := range s.places {
		p := &s.places[i]
		if p.attempt > 0 {
			st := &s.stocks[i][Spot]
			st.kept.Waiting += min(st.beyond.Waiting, 1)
			st.starts += 1 - min(st.beyond.Waiting, 1)
			st.beyond.Waiting -= min(st.beyond.Waiting, 1)
		}
	}
}

// started counts what is started: on-demand is sure to come, spot is where it is assured.
func (s *stepper) started(p *place, c Capacity, n int) {
	if c == OnDemand || p.Spot.Assured {
		s.sum.sure += n
	} else {
		s.sum.waiting += n
	}
}

// budget is how many replicas that serve may be replaced now.
func (s *stepper) budget() int {
	pace := s.policy.Pace
	if s.sum.beyond == 0 {
		return 0
	}
	if pace.Shut {
		s.recheck(pace.Changes)
		return 0
	}
	if next := s.placement.LastMove.Add(pace.Cooldown); !s.placement.LastMove.IsZero() && s.now.Before(next) {
		s.recheck(next)
		return 0
	}
	coming := 0
	for i := range s.places {
		for c := range s.stocks[i] {
			coming += s.stocks[i][c].kept.Starting + s.stocks[i][c].kept.Waiting
		}
	}
	return max(max(pace.Moves, 1)-coming, 0)
}

// bridge starts on-demand replicas for as long as nobody knows whether the spot replicas that were asked for get a node. It is
// cheap, for it goes as soon as they have one, and nothing else is as sure.
func (s *stepper) bridge() {
	missing := s.policy.Replicas - s.sum.sure
	for i := range s.places {
		for c := range s.stocks[i] {
			missing -= s.stocks[i][c].beyond.Ready + s.stocks[i][c].beyond.Starting
		}
	}
	missing = min(missing, s.sum.waiting)
	if missing <= 0 {
		return
	}
	var went []*place
	s.deal(OnDemand, missing, &went)
	for _, p := range went {
		s.takeBack(p, OnDemand)
		p.bridges++
	}
	for i := range s.places {
		s.stocks[i][OnDemand].starts += s.places[i].bridges
	}
}
