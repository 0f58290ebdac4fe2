package reconcile

import (
	"context"
	"sync"
)

// Hold is one of the reasons that keep all keys of a member from running. Holds are independent: a key runs when
// none applies to its member. A hold stops nothing that already runs ([Runtime.Drain] waits for that), and queues go on filling
// behind it.
type Hold uint8

const (
	// HoldOwnership applies while this replica does not own the member.
	HoldOwnership Hold = iota
	// HoldBreaker applies while the member does not answer.
	HoldBreaker
	holds // count
)

// String names the hold.
func (g Hold) String() string {
	switch g {
	case HoldOwnership:
		return "ownership"
	case HoldBreaker:
		return "breaker"
	}
	return "unknown"
}

// setting is the value of one hold; the zero value follows that of all members, which is released at first.
type setting struct {
	mode   holdMode
	reason string
}

type holdMode uint8

const (
	followAll holdMode = iota
	modeHeld
	modeReleased
	modeDecided // member by member, by what Decide was given
)

func holdFor(g Hold, reason string) setting {
	if reason == "" {
		reason = g.String()
	}
	return setting{mode: modeHeld, reason: reason}
}

// Hold applies a hold to a member, also to one that is to come: its keys are held with the reason and cost no worker. It
// overrides [Runtime.Decide] for this member, until [Runtime.Follow].
func (rt *Runtime) Hold(member string, g Hold, reason string) {
	rt.setHold(member, g, holdFor(g, reason))
}

// Release releases a hold of a member; held keys may run at once, nothing is listed again. It overrides
// [Runtime.Decide] and [Runtime.Retire] for this member, until [Runtime.Follow].
func (rt *Runtime) Release(member string, g Hold) {
	rt.setHold(member, g, setting{mode: modeReleased})
}

// Follow forgets what Hold or Release said of a member's hold: it follows [Runtime.Decide] again. Call it when a
// member is unregistered; the runtime keeps the settings of members that merely left.
func (rt *Runtime) Follow(member string, g Hold) { rt.setHold(member, g, setting{}) }

// holdAll applies a hold to all members, those to come included.
func (rt *Runtime) holdAll(g Hold, reason string) {
	rt.setAll(g, holdFor(g, reason))
}

// Decide has a hold of all members, those to come included, be as decide says of each: the reason why it applies, or empty.
// All are released before. decide is asked when a member comes and at each [Runtime.DecideAgain].
// decide answers from memory: it is called while the runtime is locked, and must not call the runtime.
func (rt *Runtime) Decide(g Hold, decide func(member string) (reason string)) {
	if g >= holds {
		return
	}
	rt.mu.Lock()
	rt.decide[g] = decide
	rt.mu.Unlock()
	rt.setAll(g, setting{mode: modeDecided})
}

// DecideAgain asks what [Runtime.Decide] was given about all members again. It does nothing after
// [Runtime.Retire].
func (rt *Runtime) DecideAgain(g Hold) {
	if g >= holds {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.all[g].mode != modeDecided {
		return
	}
	for _, m := range rt.members {
		m.updateHold()
	}
}

// decided returns the setting of a hold of all for one member.
func (rt *Runtime) decided(g Hold, member string) setting {
	s := rt.all[g]
	if s.mode != modeDecided {
		return s
	}
	if reason := rt.decide[g](member); reason != "" {
		return holdFor(g, reason)
	}
	return setting{mode: modeReleased}
}

// Retire closes HoldOwnership of all members for a replica that is about to stop, and has orders refused from now on: they
// would never run here. What runs goes on; see [Runtime.Drain].
func (rt *Runtime) Retire(reason string) {
	rt.holdAll(HoldOwnership, reason)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.retired = true
}

func (rt *Runtime) setHold(name string, g Hold, s setting) {
	if g >= holds {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := rt.member(name)
	m.holds[g] = s
	m.updateHold()
	m.tidy()
}

func (rt *Runtime) setAll(g Hold, s setting) {
	if g >= holds {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.all[g] = s
	for _, m := range rt.members {
		m.updateHold()
	}
}

// Held reports whether a hold of the member applies, or it was detached by force, and why.
func (rt *Runtime) Held(member string) (reason string, held bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if m := rt.members[member]; m != nil {
		if m.detached != "" {
			return m.detached, true
		}
		return m.closed()
	}
	for g := range holds {
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

// Drain waits until no reconcile is running in any member, or ctx ends. It closes nothing: call [Runtime.Retire] or [Runtime.Decide] first, or new
// ones may start while it waits.
func (rt *Runtime) Drain(ctx context.Context) error { return rt.active.wait(ctx, &rt.mu) }

// active counts running reconciles and returns when there are none. Guarded by Runtime.mu.
type active struct {
	n       int
	waiting []chan struct{}
}

func (a *active) add() { a.n++ }

func (a *active) done() {
	if a.n--; a.n > 0 {
		return
	}
	for _, c := range a.waiting {
		close(c)
	}
	a.waiting = nil
}

// wait returns when none is active, or with ctx's error. mu guards a and is not held by the caller.
func (a *active) wait(ctx context.Context, mu *sync.Mutex) error {
	mu.Lock()
	if a.n == 0 {
		mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	a.waiting = append(a.waiting, c)
	mu.Unlock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
