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

// gates opens and closes the gates of the queues: that of ownership as the Lease comes and goes, and that of each member's
// breaker. The fence in the transport does not depend on them; they keep workers from running into it.
type gates struct {
	runtime   *reconcile.Runtime
	ownership ownership
	peers     *peers
	log       *slog.Logger
	events    events.EventRecorder // nil: nothing is recorded

	mu       sync.Mutex
	open     bool
	stopping bool
}

// follow closes the gate of ownership until it is known who owns the members, and keeps it right from then on.
func (g *gates) follow() {
	g.runtime.HoldAll(reconcile.GateOwnership, "it is not known yet which replica acts")
	g.ownership.Subscribe(g.update)
	if _, mine := g.ownership.Mine(""); mine {
		g.update()
	}
}

// update is called when the ownership changed.
func (g *gates) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	owner, _ := g.ownership.Owner("")
	g.peers.keep(owner)
	if g.stopping {
		return
	}
	refused := g.ownership.MayWrite("")
	if refused == nil {
		g.runtime.ReleaseAll(reconcile.GateOwnership)
	} else {
		g.runtime.HoldAll(reconcile.GateOwnership, refused.Error())
	}
	if g.open != (refused == nil) {
		g.open = refused == nil
		if g.open {
			g.log.Info("this replica acts on the members")
		} else {
			g.log.Info("this replica does not act on the members any more", "reason", refused)
		}
	}
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
	g.detach(event)
	switch {
	case event.Removed:
		g.runtime.Follow(name, reconcile.GateBreaker)
	case event.BreakerOpen:
		g.runtime.Hold(name, reconcile.GateBreaker, fmt.Sprintf("the member does not answer: %s", event.Status.Reason))
	default:
		g.runtime.Release(name, reconcile.GateBreaker)
	}
}
