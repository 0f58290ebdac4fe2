package journal

// size is how many events there are, and how many bytes their texts have.
type size struct{ events, bytes int }

func inEvents(s size) int { return s.events }
func inBytes(s size) int  { return s.bytes }

// add counts an event in, or out.
func (s *size) add(e *Event, n int) {
	s.events += n
	s.bytes += n * (len(e.ID) + len(e.Type) + len(e.Member) + len(e.Namespace) + len(e.Kind) + len(e.Name) +
		len(e.Subject) + len(e.Reason) + len(e.Message) + len(e.User))
}

// group is whose events they are: a namespace's or, of requeues and events in no namespace, their type's.
type group struct {
	namespace string
	of        Type
}

func groupOf(e *Event) group {
	if e.Namespace == "" || e.Type == Requeue {
		return group{of: e.Type}
	}
	return group{namespace: e.Namespace}
}

// memberEvents are the events of one member.
type memberEvents struct {
	events []Event // the oldest first
	size   size
	groups map[group]size
}

// count counts an event in, or out.
func (m *memberEvents) count(e *Event, n int) {
	m.size.add(e, n)
	g := groupOf(e)
	s := m.groups[g]
	s.add(e, n)
	if m.groups[g] = s; s.events == 0 {
		delete(m.groups, g)
	}
}

// oldest is where the oldest event is of the group with the most, of several the one whose event is the oldest.
func (m *memberEvents) oldest(measure func(size) int) int {
	most := 0
	for _, s := range m.groups {
		most = max(most, measure(s))
	}
	for i := range m.events {
		if measure(m.groups[groupOf(&m.events[i])]) == most {
			return i
		}
	}
	return 0
}

// bound forgets what is too much after a member got an event. The lock is held.
func (j *Journal) bound(member string) {
	j.boundBy(inEvents, member, j.limits.OfMember, j.limits.Most)
	j.boundBy(inBytes, member, j.limits.BytesOfMember, j.limits.Bytes)
}

func (j *Journal) boundBy(measure func(size) int, member string, ofMember, all int) {
	for m := j.members[member]; m != nil && measure(m.size) > ofMember; m = j.members[member] {
		j.drop(member, m.oldest(measure))
	}
	for measure(j.total) > all {
		largest := j.largest(measure)
		j.drop(largest, j.members[largest].oldest(measure))
	}
}

// largest is the member with the most events or bytes, of several the first by name. The lock is held, and there are events.
func (j *Journal) largest(measure func(size) int) (member string) {
	most := -1
	for name, m := range j.members {
		if n := measure(m.size); n > most || n == most && name < member {
			member, most = name, n
		}
	}
	return member
}

// drop forgets one event of a member. Those before it move up, for they are few. The lock is held.
func (j *Journal) drop(member string, i int) {
	m := j.members[member]
	j.count(m, &m.events[i], -1)
	copy(m.events[1:i+1], m.events[:i])
	m.events[0] = Event{} // its texts can be collected before the array is
	m.events = m.events[1:]
	j.versions[member]++
	if len(m.events) == 0 {
		delete(j.members, member)
	}
}
