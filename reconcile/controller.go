package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/apply"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/events"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// A Controller runs one reconciler in every member that has its kinds. Add it to a multicluster manager: Start runs the
// workers, Engage and the member's context say where. It does not wait for leadership, as holds decide who acts.
type Controller struct {
	rt      *Runtime
	name    string
	queue   *queue
	watches []watch // the reconciled kind is first
	marks   marks
	keeps   bool // the reconciler is a Forgetter
	run     func(ctx context.Context, e *engagement, key types.NamespacedName) ending

	mu          sync.Mutex // guards what is below; never held over a call to a member
	engagements map[string]*engagement
	stopped     bool
}

var (
	_ mcmanager.Runnable             = (*Controller)(nil)
	_ manager.LeaderElectionRunnable = (*Controller)(nil)
)

// Name is the controller's name in the ledger, the metrics and the API.
func (c *Controller) Name() string { return c.name }

// Kinds are the kinds to be cached in every member for this controller, the reconciled one first.
func (c *Controller) Kinds() []clusters.Kind {
	kinds := make([]clusters.Kind, len(c.watches))
	for i := range c.watches {
		kinds[i] = c.watches[i].kind
	}
	return kinds
}

// NeedLeaderElection is false: a standby fills its queues as well, behind a hold.
func (c *Controller) NeedLeaderElection() bool { return false }

// Start runs the workers until ctx ends and the last of them has finished; then all engagements end. A second call is an error.
func (c *Controller) Start(ctx context.Context) error {
	if !c.queue.open(func(req mcreconcile.Request) { c.reconcile(ctx, req) }) {
		return errors.New("controller " + c.name + " was started before")
	}
	<-ctx.Done()
	c.queue.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for _, e := range c.engagements {
		e.cancel(errStopped)
	}
	return nil
}

// Wake has a key looked at for news that no watch shows. A key or a member that the controller does not know is left alone: it is looked
// at when it is seen.
func (c *Controller) Wake(member string, key types.NamespacedName) {
	c.rt.mu.Lock()
	defer c.rt.mu.Unlock()
	if l := c.queue.flows[member]; l != nil {
		if r := l.records[key]; r != nil {
			c.queue.want(r, PriorityChanged)
		}
	}
}

// reconcile runs the key that a worker has taken, and reports to the queue what its result means.
func (c *Controller) reconcile(ctx context.Context, req mcreconcile.Request) {
	w, ok := c.queue.begin(req)
	if !ok {
		return
	}
	began := time.Now()
	v := c.decide(ctx, w, req.NamespacedName)
	c.rt.metrics.ran(c.name, w, v, time.Since(began))
	if !c.queue.report(req, v) {
		c.leave(w.flow)
		return
	}
	if v.failed() && ctx.Err() == nil && w.engagement.live() {
		logFailure(ctx, w.engagement.log, req.NamespacedName, v)
	}
}

// decide calls the reconciler and returns what its result means. An error is its author's, too: it may panic when it is asked for its text.
func (c *Controller) decide(ctx context.Context, w work, key types.NamespacedName) (v decision) {
	random := rand.Float64() //nolint:gosec // spreads load
	defer func() {
		if p := recover(); p != nil {
			v = judge(c.panicked(w.engagement, key, p), w.attempts, c.queue.pace, random)
		}
	}()
	return judge(c.run(ctx, w.engagement, key), w.attempts, c.queue.pace, random)
}

// Engage lets the controller work in a member until ctx ends. It waits for nothing, and is a no-op for the instance that
// is engaged, so it may be called whenever something about the member changed: when a needed kind is missing it does
// nothing, when an optional kind has come it is watched from then on. When a needed kind goes, the engagement ends by
// itself, and a later call starts again.
//
// Another instance under the same name replaces the first: its keys are dropped and listed again, without back-off; what
// still runs for the old one is cancelled, and runs again only after it has ended; accepted orders are kept.
func (c *Controller) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	if cl == nil {
		return errors.New("controller " + c.name + ": engage member " + name.String() + ": the cluster is nil")
	}
	c.rt.instances.Seen(ctx, name.String(), cl)
	complete := c.complete(cl)
	c.mu.Lock()
	e := c.engagements[name.String()]
	same := e != nil && e.cluster == cl && e.whole()
	if !same {
		if e != nil {
			e.cancel(errReplaced)
		}
		if e = nil; complete && !c.stopped && ctx.Err() == nil {
			e = c.engage(ctx, name.String(), cl)
		}
	}
	c.mu.Unlock()
	switch {
	case e == nil:
		return nil
	case same:
		e.follow()
	default:
		e.start()
	}
	return nil
}

// complete reports whether a member has every kind that is not optional.
func (c *Controller) complete(cl cluster.Cluster) bool {
	for i := range c.watches {
		if _, ok := members.Presence(cl, c.watches[i].kind.Object); !ok && !c.watches[i].kind.Optional {
			return false
		}
	}
	return true
}

// engage makes an engagement and its flow, which takes the place of an older one at once.
func (c *Controller) engage(ctx context.Context, name string, cl cluster.Cluster) *engagement {
	e := &engagement{
		controller: c, name: name, cluster: cl,
		log:             c.rt.log.With(slog.String("controller", c.name), slog.String("member", name)),
		attachedPrimary: make(chan struct{}), followed: map[int]<-chan struct{}{}, handlers: map[int]attached{},
	}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	e.events = events.NewSink(events.Options{
		Context: e.ctx, Client: cl.GetClient(), Controller: c.name, Kind: c.watches[0].gvk, Log: e.log,
		Held:    func() (string, bool) { return c.rt.Held(name) },
		Dropped: func(n int) { c.rt.metrics.events.WithLabelValues(name).Add(float64(n)) },
	})
	e.scope = apply.Scope{Manager: c.marks.manager, Applied: c.marks.applied, Kind: c.watches[0].gvk, Memory: &apply.Memory{}}
	e.flow = c.queue.join(name, e)
	c.engagements[name] = e
	return e
}

// ended takes an engagement that is over off the books.
func (c *Controller) ended(e *engagement) {
	c.mu.Lock()
	if c.engagements[e.name] == e {
		delete(c.engagements, e.name)
	}
	c.mu.Unlock()
	c.leave(e.flow)
	e.log.Debug("disengaged", "why", context.Cause(e.ctx))
}

// leave drops the keys of a flow, and the member's metrics if no other flow has taken its place.
func (c *Controller) leave(l *flow) {
	if noneHere, noneAnywhere := c.queue.leave(l); noneHere {
		c.rt.metrics.left(c.name, l.member.name, noneAnywhere)
	}
}

// Members returns the names of the members in which the controller is engaged, in order.
func (c *Controller) Members() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, e := range c.engagements {
		if e.live() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
