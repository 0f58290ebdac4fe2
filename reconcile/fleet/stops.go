package fleet

import "slices"

// stop takes away what is beyond the plan, as far as it is not needed until its replacement serves. What remains in beyond
// stays for now.
func (s *stepper) stop() {
	keepFloor := max(min(s.policy.MinOnDemand, s.policy.Replicas)-s.onFloor, 0)
	keep := max(max(s.sum.planned, s.policy.Replicas)-s.sum.ready, 0)
	ready := s.sum.ready
	// The floor's replacements first, then spot, which costs less; an earlier tier before a later one.
	for i := range s.places {
		st := &s.stocks[i][OnDemand]
		st.floor = min(st.beyond.Ready, keepFloor)
		keepFloor -= st.floor
		if s.places[i].frozen == moves {
			keep = max(keep-st.floor, 0)
			ready += st.floor
		}
	}
	for _, c := range []Capacity{Spot, OnDemand} {
		for i := range s.places {
			st := &s.stocks[i][c]
			if s.places[i].frozen != moves {
				continue
			}
			stays := min(st.beyond.Ready-st.floor, keep)
			keep -= stays
			ready += stays
			st.beyond.Ready = st.floor + stays
			st.beyond.Waiting = 0
		}
	}
	s.stopStarting(ready)
}

// stopStarting takes away what is not ready yet and is beyond the plan, once as many as are wanted are ready without it: what
// was started for them later, or is lost before it is ready, would be late.
func (s *stepper) stopStarting(ready int) {
	keep := max(s.policy.Replicas-ready, 0)
	for _, c := range slices.Backward([]Capacity{Spot, OnDemand}) {
		for i := range s.places {
			if st := &s.stocks[i][c]; s.places[i].frozen == moves {
				st.beyond.Starting = min(st.beyond.Starting, keep)
				keep -= st.beyond.Starting
			}
		}
	}
}
