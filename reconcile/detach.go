package reconcile

// detachedReason is how the ledger says why nothing is done about a key of a member that was given up.
const detachedReason = "the member was detached by force: "

// Detach gives a member up by force: it is gone for good, and nothing may wait for it any more. All its keys end with
// OutcomeNotOurs and reason, orders for them included; nothing runs in it until [Runtime.Attach]. What cleans up in several
// members asks [Runtime.Detached] and answers NotOurs for such a member. why is shown in the API. A member that is not
// there may be detached, and a second call replaces why.
//
// What runs in the member at that moment ends at its deadline at the latest. The call takes the time of a walk over the
// member's keys.
func (rt *Runtime) Detach(member, why string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := rt.member(member)
	m.detached = detachedReason + why
	for _, l := range m.flows {
		for _, r := range l.records {
			if r.state != keyRunning {
				l.queue.giveUp(r)
			}
		}
	}
}

// Attach undoes Detach: the member's keys are looked at again.
func (rt *Runtime) Attach(member string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := rt.members[member]
	if m == nil || m.detached == "" {
		return
	}
	m.detached = ""
	for _, l := range m.flows {
		for _, r := range l.records {
			l.queue.want(r, PriorityBackground)
		}
	}
	m.tidy()
}

// Detached reports whether a member was detached by force, and why.
func (rt *Runtime) Detached(member string) (why string, detached bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := rt.members[member]
	if m == nil || m.detached == "" {
		return "", false
	}
	return m.detached[len(detachedReason):], true
}

// allDetached names the members that were detached by force.
func (rt *Runtime) allDetached() (names []string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for name, m := range rt.members {
		if m.detached != "" {
			names = append(names, name)
		}
	}
	return names
}

// giveUp ends whatever a record that is not running wants, because its member is given up. The record of an object that is
// gone goes with it: nobody says good-bye in such a member.
func (q *queue) giveUp(r *record) {
	if r.lost {
		q.forget(r)
		return
	}
	if r.state == keyQueued {
		r.flow.dequeue(r)
	}
	q.rt.timers.clear(r)
	r.state, r.outcome, r.reason, r.nextTry, r.backoff = keyIdle, codeNotOurs, r.flow.member.detached, 0, false
	r.tried(0, 0)
	r.lastErr = ""
	r.setOverdue(false)
	r.flow.member.touch()
	if r.ordered {
		q.rt.operations.end(r, r.snapshot())
	}
}
