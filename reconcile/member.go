package reconcile

import "slices"

// A member is what all controllers share about one cluster: its budget of workers and its holds. Guarded by Runtime.mu.
type member struct {
	rt    *Runtime
	name  string
	flows []*flow // one per controller that is engaged

	running int // workers that hold one of its keys, over all controllers
	active  active
	turn    int // the flow that was last given a freed worker

	detached string // why it was given up by force; empty: it was not

	holds  [holds]setting
	shut   bool   // a hold applies
	reason string // the first hold's
	opened int64  // when shut last became false

	version uint64 // see Runtime.Version
}

// touch notes that what the ledger says of the member has changed.
func (m *member) touch() {
	m.rt.versions++
	m.version = m.rt.versions
}

// Version is another number whenever what [Runtime.RecordsIn] says of a member may have changed; 0: the member is not known.
func (rt *Runtime) Version(member string) uint64 {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if m := rt.members[member]; m != nil {
		return m.version
	}
	return 0
}

func (rt *Runtime) member(name string) *member {
	m := rt.members[name]
	if m == nil {
		m = &member{rt: rt, name: name}
		m.updateHold()
		rt.members[name] = m
	}
	return m
}

// tidy forgets the member when nothing is left to know about it.
func (m *member) tidy() {
	if len(m.flows) == 0 && m.running == 0 && m.holds == [holds]setting{} && m.detached == "" && m.rt.members[m.name] == m {
		delete(m.rt.members, m.name)
	}
}

// closed reports whether a hold of the member applies, and why.
func (m *member) closed() (string, bool) { return m.reason, m.shut }

// updateHold recomputes whether the member is shut, and lets its flows know.
func (m *member) updateHold() {
	reason, shut := "", false
	for g := range m.holds {
		s := m.holds[g]
		if s.mode == followAll {
			s = m.rt.decided(Hold(g), m.name)
		}
		if s.mode == modeHeld {
			reason, shut = s.reason, true
			break
		}
	}
	wasShut := m.shut
	if m.reason != reason || shut != wasShut || m.version == 0 {
		m.touch()
	}
	m.reason, m.shut = reason, shut
	if shut == wasShut {
		return
	}
	if !shut {
		m.opened = m.rt.now()
	}
	m.reseat()
	m.serve()
}

func (m *member) reseat() {
	for _, l := range m.flows {
		l.reseat()
	}
}

// full reports whether the member's budget is used up.
func (m *member) full() bool { return m.running >= m.rt.opts.WorkersPerMember }

// serve gives the member's free budget to idle workers, one key per controller in turn, so that no controller can keep
// the others from a member that is always at its cap.
func (m *member) serve() {
	for served := true; served; {
		served = false
		for range m.flows {
			if m.shut || m.full() {
				return
			}
			m.turn = (m.turn + 1) % len(m.flows)
			if m.flows[m.turn].queue.handOne() {
				served = true
			}
		}
	}
}

func (m *member) remove(l *flow) {
	m.flows = slices.DeleteFunc(m.flows, func(other *flow) bool { return other == l })
	if m.turn >= len(m.flows) {
		m.turn = 0
	}
}
