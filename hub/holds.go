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

// holds keeps and releases the keys of each member: by its ownership as the member comes to this replica and goes, and by its
// breaker. The fence in the transport does not depend on them; they keep workers from running into it.
type holds struct {
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

// follow holds the keys of each member as the ownership says, and keeps this right.
func (h *holds) follow() {
	h.runtime.Decide(reconcile.HoldOwnership, h.refusal)
	h.ownership.Subscribe(h.update)
	if h.ownership.MineAny() {
		h.update()
	}
}

// refusal says why this replica does not act on a member; empty: it does.
func (h *holds) refusal(member string) string {
	if err := h.ownership.MayWrite(member); err != nil {
		return err.Error()
	}
	return ""
}

// update is called when the owner of a member changed.
func (h *holds) update() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepPeers()
	if h.stopping {
		return
	}
	h.runtime.DecideAgain(reconcile.HoldOwnership)
	if acts := h.ownership.MineAny(); h.acts != acts {
		h.acts = acts
		if acts {
			h.log.Info("this replica acts on members")
		} else {
			h.log.Info("this replica no longer acts on members")
		}
	}
}

// keepPeers keeps the connections to the owners of all members; the caller holds mu.
func (h *holds) keepPeers() {
	owners := map[string]bool{}
	for member := range h.members {
		if owner, _ := h.ownership.Owner(member); owner != "" {
			owners[owner] = true
		}
	}
	h.peers.keep(owners)
}

// register notes whether a member is registered.
func (h *holds) register(member string, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members == nil {
		h.members = map[string]bool{}
	}
	switch {
	case is && !h.members[member]:
		h.members[member] = true
	case !is && h.members[member]:
		delete(h.members, member)
	default:
		return
	}
	h.keepPeers()
}

// stop holds the keys of all members for good.
func (h *holds) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
	h.runtime.Retire("this replica stops")
}

// stopped returns an error once the replica stops.
func (h *holds) stopped() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return errors.New("this replica stops")
	}
	return nil
}

// member holds a member's keys while its breaker is open.
func (h *holds) member(event clusters.Event) {
	name := event.Status.Name
	h.register(name, !event.Removed)
	h.detach(event)
	switch {
	case event.Removed:
		h.runtime.Follow(name, reconcile.HoldBreaker)
	case event.BreakerOpen:
		h.runtime.Hold(name, reconcile.HoldBreaker, fmt.Sprintf("the member does not answer: %s", event.Status.Reason))
	default:
		h.runtime.Release(name, reconcile.HoldBreaker)
	}
}
