package hub

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// registrations is the provider as the webhook's tokens see it.
func registrations(provider *clusters.Provider) func(member string) (clusters.Registration, bool) {
	return func(member string) (clusters.Registration, bool) {
		status, ok := provider.Status(member)
		return status.Registration, ok
	}
}

// ownEvents records Events in the hub cluster while no other replica is known to own the members, so that what all
// replicas see is not told as often as there are replicas.
type ownEvents struct {
	events.EventRecorder
	routes routes
}

// Eventf implements events.EventRecorder.
func (e ownEvents) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if owner := e.routes.Owner(""); owner == "" || owner == e.routes.self {
		e.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	}
}
