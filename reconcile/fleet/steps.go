package fleet

// stock is what of a capacity type in a member stays, and what is beyond the plan.
type stock struct {
	kept, beyond Count
	floor        int // of what is beyond: ready on-demand replicas that the floor needs until others are ready
	starts       int // to be started now
}

// totals of a plan, over all members.
type totals struct {
	present int // replicas that are there or were asked for; beyond the plan only those that serve
	planned int
	ready   int // of those that stay
	sure    int // of those that stay: ready, or sure to be
	waiting int // of those that stay: waiting for a node, those that are started now included
	beyond  int // ready replicas beyond the plan
}

// stepper decides what of a plan can be done now. Nothing that serves goes before as many as are wanted serve without it, and
// nothing that is coming goes before as many are sure to come.
type stepper struct {
	*planner
	stocks  [][2]stock
	sum     totals
	onFloor int // ready on-demand replicas that stay
}

func (pl *planner) step() {
	s := &stepper{planner: pl, stocks: make([][2]stock, len(pl.places))}
	s.count()
	s.start()
	s.stop()
	s.bridge()
	s.conclude()
}

// count divides what runs into what stays and what is beyond the plan.
func (s *stepper) count() {
	for i := range s.places {
		p := &s.places[i]
		for c := range p.have {
			have, st := p.have[c], &s.stocks[i][c]
			target := p.target[c]
			st.kept.Ready = min(have.Ready, target)
			st.kept.Starting = min(have.Starting, target-st.kept.Ready)
			if p.frozen != moves || !p.of(Capacity(c)).dry() {
				st.kept.Waiting = min(have.Waiting, target-st.kept.Ready-st.kept.Starting)
			}
			st.beyond = Count{Ready: have.Ready - st.kept.Ready, Starting: have.Starting - st.kept.Starting, Waiting: have.Waiting - st.kept.Waiting}
			if p.frozen == lost || p.frozen == out {
				continue
			}
			s.sum.planned += target
			s.sum.present += st.kept.have() + st.beyond.Ready
			s.sum.ready += st.kept.Ready
			s.sum.sure += st.kept.Ready + st.kept.Starting
			s.sum.waiting += st.kept.Waiting
			s.sum.beyond += st.beyond.Ready
			if Capacity(c) == OnDemand {
				s.onFloor += st.kept.Ready
			}
		}
	}
}

// holdStops keeps what would be stopped in a member while others of its replicas that stay are less far: a workload that shrinks
// gives up first what has no node, then what is not ready, and only then asks which was meant. While replicas are started there,
// nothing is stopped at all: a member gets a number and how many are on-demand, and with both at once the number stays.
func (s *stepper) holdStops(p *place, stocks *[2]stock) {
	lowest := len(ranks)
	for c := range stocks {
		st := &stocks[c]
		if st.starts > 0 {
			lowest = -1
		}
		for r, of := range ranks {
			if of(&st.kept)+of(&st.beyond) > 0 {
				lowest = min(lowest, r)
			}
		}
	}
	for c := range stocks {
		st := &stocks[c]
		for r, of := range ranks {
			if r > lowest {
				p.now[c] += of(&p.have[c]) - of(&st.kept) - of(&st.beyond)
			}
		}
	}
}

// ranks are how far replicas can be, the first that go when a workload shrinks first.
var ranks = []func(*Count) int{
	func(c *Count) int { return c.Waiting }, func(c *Count) int { return c.Starting }, func(c *Count) int { return c.Ready },
}

// conclude writes down what to set now, and the moves.
func (s *stepper) conclude() {
	var stops []Move
	for i := range s.places {
		p := &s.places[i]
		w := Wanted{Member: p.Name, Spot: p.target[Spot], OnDemand: p.target[OnDemand]}
		for c := range p.have {
			st := &s.stocks[i][c]
			p.now[c] = st.kept.have() + st.beyond.have() + st.starts
		}
		if p.ordinals != nil {
			s.holdOrdinals(p, &s.stocks[i])
		} else {
			s.holdStops(p, &s.stocks[i])
		}
		for c := range p.have {
			m := Move{Member: p.Name, Capacity: Capacity(c)}
			switch m.By = p.now[c] - p.have[c].have(); {
			case m.By > 0:
				s.result.Moves = append(s.result.Moves, m)
			case m.By < 0:
				stops = append(stops, m)
			}
			m.By = p.target[c] - p.now[c]
			if c == int(Spot) && p.attempt > 0 {
				m.By = max(m.By, 0)
			}
			if m.By != 0 {
				s.result.Later = append(s.result.Later, m)
			}
		}
		w.SpotNow, w.OnDemandNow, w.Exchanges = p.now[Spot], p.now[OnDemand], p.exchanges
		s.result.Members = append(s.result.Members, w)
	}
	s.result.Moves = append(s.result.Moves, stops...)
}
