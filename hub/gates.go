package hub

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// gates opens and closes the gates of each member's queues: that of ownership as the member comes to this replica and goes, and
// that of its breaker. The fence in the transport does not depend on them; they keep workers from running into it.
type gates struct {
	runtime   *reconcile.Runtime
	ownership ownership
	peers     *peers
	log       *slog.Logger
	events    events.EventRecorder // nil: nothing is recorded

	mu       sync.Mutex
	members  map[string]bool // that are registered
	acts     bool            // as logged last
	stopping bool
}

// follow has the gate of ownership say of each member what the ownership says, and keeps it right.
func (g *gates) follow() {
	g.runtime.Decide(reconcile.HoldOwnership, g.refusal)
	g.ownership.Subscribe(g.update)
	if g.ownership.MineAny() {
		g.update()
	}
}

// refusal says why this replica does not act on a member; empty: it does.
func (g *gates) refusal(member string) string {
	if err := g.ownership.MayWrite(member); err != nil {
		return err.Error()
	}
	return ""
}

// update is called when the owner of a member changed.
func (g *gates) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keepPeers()
	if g.stopping {
		return
	}
	g.runtime.DecideAgain(reconcile.HoldOwnership)
	if acts := g.ownership.MineAny(); g.acts != acts {
		g.acts = acts
		if acts {
			g.log.Info("this replica acts on members")
		} else {
			g.log.Info("this replica no longer acts on members")
		}
	}
}

// keepPeers keeps the connections to the owners of all members; the caller holds mu.
func (g *gates) keepPeers() {
	owners := map[string]bool{}
	for member := range g.members {
		if owner, _ := g.ownership.Owner(member); owner != "" {
			owners[owner] = true
		}
	}
	g.peers.keep(owners)
}

// register notes whether a member is registered.
func (g *gates) register(member string, is bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == nil {
		g.members = map[string]bool{}
	}
	switch {
	case is && !g.members[member]:
		g.members[member] = true
	case !is && g.members[member]:
		delete(g.members, member)
	default:
		return
	}
	g.keepPeers()
}

// stop closes the gate of ownership for good.
func (g *gates) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	g.runtime.Retire("this replica stops")
}

// stopped returns an error once the replica stops.
func (g *gates) stopped() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return errors.New("this replica stops")
	}
	return nil
}

// member keeps the gate of a member's breaker right.
func (g *gates) member(event clusters.Event) {
	name := event.Status.Name
	g.register(name, !event.Removed)
	g.detach(event)
	switch {
	case event.Removed:
		g.runtime.Follow(name, reconcile.HoldBreaker)
	case event.BreakerOpen:
		g.runtime.Hold(name, reconcile.HoldBreaker, fmt.Sprintf("the member does not answer: %s", event.Status.Reason))
	default:
		g.runtime.Release(name, reconcile.HoldBreaker)
	}
}
