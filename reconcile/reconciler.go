package reconcile

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/apply"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/depend"
)

// A Reconciler drives one kind towards its spec, in every member that has the kind. It is called concurrently for
// different keys, never for the same key of the same member.
type Reconciler[T client.Object] interface {
	// Reconcile is called with a deadline on ctx. An error backs off exponentially; see [TerminalError].
	Reconcile(ctx context.Context, req Request[T]) (Result, error)
}

// A Forgetter is a Reconciler that keeps something per object and must hear when the object is gone from the cache.
type Forgetter interface {
	// Forget is called when a key's object no longer exists, by the worker that holds the key.
	Forget(ctx context.Context, member string, key types.NamespacedName)
}

// Request carries the object read from the member's cache and what may act on that member.
type Request[T client.Object] struct {
	Member string        // name of the member cluster
	Object T             // a copy: change it freely
	Client client.Client // reads from the member's cache, writes fenced by ownership
	Live   client.Reader // reads from the member's API server; not for hot paths
	Events Recorder      // records Events in the member, about Object
	Log    *slog.Logger  // names the controller, the member and the object; controller-runtime's log.FromContext returns it as well

	// Conditions of Object, which are written with its status when the reconcile has ended; see [StatusObject].
	Conditions *Conditions

	scope *apply.Scope // nil in a request that was not made by a controller

	needs *depend.Needs // what this reconcile requires; nil for a request that no controller made
}

// Recorder records Events about the object of one request. Events are sent in the background and deduplicated; a member
// that does not take them costs nothing but the events.
type Recorder interface {
	// Normal records something expected; reason is CamelCase, the message is a format.
	Normal(reason, format string, args ...any)
	// Warning records something that a person should look at.
	Warning(reason, format string, args ...any)
}

// Key names one record of the ledger.
type Key struct {
	Controller string
	Member     string
	types.NamespacedName
}
