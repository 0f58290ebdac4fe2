package reconcile

import "context"

// Gate is one of the reasons that keep all keys of a member from running. Gates are independent: a key runs when all of
// its member's gates are open. A closed gate stops nothing that already runs ([Runtime.Drain] waits for that), and queues
// go on filling behind it.
type Gate uint8

const (
	// GateOwnership is closed while this replica does not own the member.
	GateOwnership Gate = iota
	// GateBreaker is closed while the member does not answer.
	GateBreaker
	gates // count
)

// String names the gate.
func (g Gate) String() string {
	switch g {
	case GateOwnership:
		return "ownership"
	case GateBreaker:
		return "breaker"
	}
	return "unknown"
}

// setting is what one gate was told; the zero value follows what was told to all members, which is open at first.
type setting struct {
	mode   gateMode
	reason string
}

type gateMode uint8

const (
	followAll gateMode = iota
	modeHeld
	modeReleased
	modeDecided // member by member, by what Decide was given
)

func holdFor(g Gate, reason string) setting {
	if reason == "" {
		reason = g.String()
	}
	return setting{mode: modeHeld, reason: reason}
}

// Hold closes a gate of a member, also of one that is to come: its keys are held with the reason and cost no worker. It
// overrides HoldAll and ReleaseAll for this member, whenever those are called, until [Runtime.Follow].
func (rt *Runtime) Hold(member string, g Gate, reason string) {
	rt.setGate(member, g, holdFor(g, reason))
}

// Release opens a gate of a member; held keys may run at once, nothing is listed again. It overrides HoldAll and
// ReleaseAll for this member, whenever those are called, until [Runtime.Follow].
func (rt *Runtime) Release(member string, g Gate) { rt.setGate(member, g, setting{mode: modeReleased}) }

// Follow forgets what Hold or Release said of a member's gate: it follows HoldAll and ReleaseAll again. Call it when a
// member is unregistered; the runtime keeps the settings of members that merely left.
func (rt *Runtime) Follow(member string, g Gate) { rt.setGate(member, g, setting{}) }

// HoldAll closes a gate of all members, those to come included.
func (rt *Runtime) HoldAll(g Gate, reason string) { rt.setAll(g, holdFor(g, reason)) }

// ReleaseAll opens a gate of all members, those to come included. All gates are open at first.
func (rt *Runtime) ReleaseAll(g Gate) { rt.setAll(g, setting{mode: modeReleased}) }

// Decide has a gate of all members, those to come included, be as decide says of each: the reason why it is closed, or empty.
// It takes the place of what HoldAll or ReleaseAll said, and is asked when a member comes and at each [Runtime.DecideAgain].
// decide answers from memory: it is called while the runtime is locked, and must not call the runtime.
func (rt *Runtime) Decide(g Gate, decide func(member string) (reason string)) {
	if g >= gates {
		return
	}
	rt.mu.Lock()
	rt.decide[g] = decide
	rt.mu.Unlock()
	rt.setAll(g, setting{mode: modeDecided})
}

// DecideAgain asks what [Runtime.Decide] was given about all members again. It does nothing when HoldAll or ReleaseAll was
// called since.
func (rt *Runtime) DecideAgain(g Gate) {
	if g >= gates {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.all[g].mode != modeDecided {
		return
	}
	for _, m := range rt.members {
		m.regate()
	}
}

// decided returns the setting of a gate of all for one member.
func (rt *Runtime) decided(g Gate, member string) setting {
	s := rt.all[g]
	if s.mode != modeDecided {
		return s
	}
	if reason := rt.decide[g](member); reason != "" {
		return holdFor(g, reason)
	}
	return setting{mode: modeReleased}
}

// Retire closes GateOwnership of all members for a replica that is about to stop, and has orders refused from now on: they
// would never run here. What runs goes on; see [Runtime.Drain].
func (rt *Runtime) Retire(reason string) {
	rt.HoldAll(GateOwnership, reason)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.retired = true
}

func (rt *Runtime) setGate(name string, g Gate, s setting) {
	if g >= gates {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := rt.member(name)
	m.gates[g] = s
	m.regate()
	m.tidy()
}

func (rt *Runtime) setAll(g Gate, s setting) {
	if g >= gates {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.all[g] = s
	for _, m := range rt.members {
		m.regate()
	}
}

// Held tells whether a gate of the member is closed, or it was detached by force, and why.
func (rt *Runtime) Held(member string) (reason string, held bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if m := rt.members[member]; m != nil {
		if m.detached != "" {
			return m.detached, true
		}
		return m.closed()
	}
	for g := range gates {
		if s := rt.decided(g, member); s.mode == modeHeld {
			return s.reason, true
		}
	}
	return "", false
}

// DrainMember is [Runtime.Drain] for one member.
func (rt *Runtime) DrainMember(ctx context.Context, member string) error {
	rt.mu.Lock()
	m := rt.members[member]
	rt.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.active.wait(ctx, &rt.mu)
}

// Drain waits until no reconcile is running in any member, or ctx ends. It closes nothing: call HoldAll first, or new
// ones may start while it waits.
func (rt *Runtime) Drain(ctx context.Context) error { return rt.active.wait(ctx, &rt.mu) }
