package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// A OnceResult is how one reconcile outside the queue ended; see [Controller.ReconcileOnce].
type OnceResult struct {
	// Result is what the reconciler answered, in the words of [Result.String]; that of an error is Done.
	Result string
	// Outcome is what the ledger would say.
	Outcome Outcome
	// Err is the error of an outcome that has one.
	Err error
	// Events are those that were recorded, as "Type Reason: message", in their order; nothing is sent.
	Events []string
}

var errTried = errors.New("it was reconciled once, and is over")

// ReconcileOnce reconciles one key once, as a worker would, with everything that the framework does around the reconciler, and
// without queue, informers or back-off. It is for tests, which bring a cluster of their own; package reconciletest does.
// The controller must not be running in the member. Members to look at for dependencies are those that were engaged.
func (c *Controller) ReconcileOnce(ctx context.Context, member string, cl cluster.Cluster, key types.NamespacedName) OnceResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.rt.instances.Seen(ctx, member, cl)
	c.mu.Lock()
	e := c.engage(ctx, member, cl)
	c.mu.Unlock()
	defer c.ended(e)
	defer e.cancel(errTried)
	e.scope.InTurn = true
	var t OnceResult
	e.events.Divert(func(kind, reason, message string) {
		t.Events = append(t.Events, fmt.Sprintf("%s %s: %s", kind, reason, message))
	})
	end := c.run(ctx, e, key)
	v := judge(end, 0, c.queue.pace, 0.5)
	t.Result, t.Outcome, t.Err = end.result.String(), outcomes[v.outcome], end.err
	return t
}

// String says what is asked for, for example "Done", `Requeue "not yet"` or `RequeueAfter 5s "waits for …"`.
func (r Result) String() string {
	switch r.verb {
	case verbRequeue:
		return fmt.Sprintf("Requeue %q", r.reason)
	case verbRequeueAfter:
		return fmt.Sprintf("RequeueAfter %s %q", r.after.Round(time.Millisecond), r.reason)
	}
	return "Done"
}

// Join makes a cluster known as a member, for dependencies and streams, in which no controller works; until ctx ends. It is
// for tests: members of a hub are known from [Controller.Engage].
func (rt *Runtime) Join(ctx context.Context, member string, cl cluster.Cluster) {
	rt.instances.Seen(ctx, member, cl)
}
