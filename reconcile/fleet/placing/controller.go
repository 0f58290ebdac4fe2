package placing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Workloads is what the controller needs of spot placement; *spot.Engine is one.
type Workloads interface {
	// FleetView returns what a member's cache shows of a workload; false: nothing.
	FleetView(member string, key policy.WorkloadKey) (spot.FleetView, bool)
	// SetFleetSplits says what is wanted of all workloads of a member that have a placement.
	SetFleetSplits(member string, splits map[policy.WorkloadKey]policy.FleetSplit)
	// Revisit has a workload of a member looked at again.
	Revisit(member string, key policy.WorkloadKey)
	// Placed returns the kinds that are placed.
	Placed() []spot.PlacedKind
}

var _ Workloads = (*spot.Engine)(nil)

// Connection is how a member is asked and written to. Both go through the member's transport, and writes through its fence.
type Connection struct {
	Client client.Client
	Live   client.Reader
}

// Options of a [Controller]. All are needed but those that say so.
type Options struct {
	// Hub is the hub cluster, read without a cache.
	Hub client.WithWatch
	// Members returns the registered members.
	Members func() []Member
	// Connect returns the way to a member; false: there is none now.
	Connect func(member string) (Connection, bool)
	// Workloads is spot placement.
	Workloads Workloads
	// Kinds are those of modules: one with a Workload may be a FleetPlacement's target.
	Kinds []module.Resource
	// Acts reports whether this replica may act on a member now.
	Acts func(member string) bool
	// ActsAny reports whether there may be a member on which it may.
	ActsAny func() bool
	// Enabled is the label that makes a workload and its namespace take part.
	Enabled string
	// NamespaceSelector selects the namespaces in which workloads are placed, by their labels. Nil: all.
	NamespaceSelector labels.Selector
	// History names the ConfigMap of the hub cluster in which the fleet's history is kept, and HistoryFolder a folder for it, which must
	// be there. Only one of them may be set. Both empty: none is kept.
	History       types.NamespacedName
	HistoryFolder string
	// Events about FleetPlacements go there. Nil: none are recorded.
	Events events.EventRecorder
	// Log takes what fails. Nil: it is discarded.
	Log *slog.Logger
	// Registerer takes the metrics. Nil: they are registered nowhere.
	Registerer prometheus.Registerer
}

const (
	// warmTime is how long after this replica began to act it may take until what ran before is seen again.
	warmTime = 30 * time.Second
	// absentRetry is how often it is looked whether the kind is there, where it was not.
	absentRetry = 30 * time.Second
)

// Controller keeps FleetPlacements. Make it with [New], and run it once.
type Controller struct {
	options Options

	store   toolscache.Indexer
	synced  atomic.Bool
	version atomic.Uint64 // see Version
	acts    time.Time     // since when this replica acts; only rounds look at it
	kick    notify.Wake
	clock   func() time.Time
	metrics *metrics
	agents  agents

	reach map[string]time.Time // members in which this replica acts and that are in reach, and since when; only rounds look at it

	latest  atomic.Pointer[lastRound] // nil: this replica does not act
	asking  sync.Mutex                // one question is answered at a time
	keeping sync.Mutex                // guards past, which rounds look at, and Flush
	past    past
	archive archive // nil: no history is kept

	mu     sync.Mutex // guards memory, which agents write to as well
	memory map[string]*memory
}

// New creates a controller, and reads which FleetPlacements there are, so that spot placement knows of them before it places
// anything. A hub cluster that does not know the kind has none.
func New(ctx context.Context, o Options) (*Controller, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Controller{
		options: o, kick: notify.New(), memory: map[string]*memory{}, clock: time.Now,
		store: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers()),
	}
	c.agents.controller = c
	var err error
	if c.archive, err = archiveOf(&o); err != nil {
		return nil, err
	}
	if c.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	var list v1alpha1.FleetPlacementList
	switch err := o.Hub.List(ctx, &list); {
	case absent(err):
		c.options.Log.Info("the hub cluster has no definition of FleetPlacement yet")
	case err != nil:
		return nil, fmt.Errorf("list the FleetPlacements of the hub cluster: %w", err)
	}
	for i := range list.Items {
		if err := c.store.Add(&list.Items[i]); err != nil {
			return nil, err
		}
	}
	c.share(c.items(nil, time.Now()))
	return c, nil
}

// absent reports whether a kind is not known.
func absent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// Run keeps FleetPlacements until ctx ends, a round at a time; [loop] says when.
func (c *Controller) Run(ctx context.Context) error {
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	defer following.Wait()
	defer c.agents.wait()
	loop(ctx, c.kick, func() time.Duration {
		if !c.synced.Load() {
			return 0
		}
		return c.round(ctx, c.clock())
	})
	return nil
}

// wake asks for a round.
func (c *Controller) wake() { c.kick.Signal() }

// objects returns copies of the FleetPlacements that are known, in the order of their names.
func (c *Controller) objects() []*v1alpha1.FleetPlacement {
	c.mu.Lock()
	var all []*v1alpha1.FleetPlacement
	for _, known := range c.store.List() {
		if p, ok := known.(*v1alpha1.FleetPlacement); ok {
			all = append(all, c.newest(p).DeepCopy())
		}
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b *v1alpha1.FleetPlacement) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// items reads what every FleetPlacement is about, and what is known about it in each of the members.
func (c *Controller) items(members []Member, now time.Time) []*item {
	placed := c.options.Workloads.Placed()
	var all []*item
	for _, p := range c.objects() {
		it := &item{object: p}
		var err error
		if it.target, err = targetOf(p, placed, c.options.Kinds); err != nil {
			it.stop = &stop{reason: v1alpha1.ReasonUnknownKind, message: err.Error()}
		} else if it.asked = policyOf(p, members, now); it.asked.invalid != "" {
			it.stop = &stop{reason: v1alpha1.ReasonInvalid, message: it.asked.invalid, keeps: true}
		} else if _, paused := p.Annotations[reconcile.AnnotationPaused]; paused && p.Annotations[reconcile.AnnotationPaused] != "false" {
			it.stop = &stop{reason: reconcile.ReasonPaused, message: "the annotation " + reconcile.AnnotationPaused + " pauses it: its members keep their replicas", keeps: true, waits: true}
		}
		all = append(all, it)
	}
	oppose(all)
	return all
}

// round looks at all FleetPlacements once, and does what is to be done. It returns how long it took to think: what the hub
// cluster takes to answer is no reason to rest.
func (c *Controller) round(ctx context.Context, now time.Time) (thought time.Duration) {
	began, wrote := time.Now(), time.Duration(0)
	defer func() { thought = time.Since(began) - wrote }()
	members := c.options.Members()
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	c.metrics.forget(members)
	items := c.items(members, now)
	c.forget(items)
	if !c.options.ActsAny() {
		c.latest.Store(nil)
		c.restPast()
		c.metrics.kept(0, 0, 0)
		c.rest()
		c.share(items)
		c.metrics.seen(nil)
		return
	}
	if c.acts.IsZero() {
		c.acts = now
	}
	c.survey(items, members, now)
	planning := time.Now()
	decide(items, members, now)
	c.metrics.planned(time.Since(planning))
	writing := time.Now()
	if !c.recordAll(ctx, items, now) {
		return
	}
	wrote = time.Since(writing)
	c.share(items)
	for _, it := range items {
		c.carryOut(ctx, it, now)
	}
	c.metrics.seen(items)
	c.finish(items, members, now)
	c.remember(ctx, items, members, now)
	return
}

// rest forgets what only a replica that acts may know: until it acts again, others decide.
func (c *Controller) rest() {
	c.acts, c.reach = time.Time{}, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory = map[string]*memory{}
}

// survey looks at all members, and holds up what cannot be decided yet. Shortly after this replica began to act, that is all of
// it: plans of placements depend on each other.
func (c *Controller) survey(items []*item, members []Member, now time.Time) {
	reach := map[string]time.Time{}
	for i := range members {
		if name := members[i].Name; members[i].Reachable && c.options.Acts(name) {
			reach[name] = now
			if before, stays := c.reach[name]; stays {
				reach[name] = before
			}
		}
	}
	c.reach = reach
	cold := false
	for _, it := range items {
		if it.stop == nil {
			c.look(it, members, now)
			it.waits = c.waits(it, now)
			cold = cold || it.waits
		}
	}
	for _, it := range items {
		if cold && now.Sub(c.acts) < warmTime && it.stop == nil {
			it.waits = true
		}
	}
}

// recordAll writes down what was decided; false: this replica acts no more, and nothing is to be done. Where the hub cluster
// does not answer it is not asked for the others as well.
func (c *Controller) recordAll(ctx context.Context, items []*item, now time.Time) bool {
	silent := false
	for _, it := range items {
		if !c.options.ActsAny() { // the writes of a round may take longer than the Lease
			return false
		}
		if it.waits {
			continue
		}
		if silent {
			it.sets = nil
			continue
		}
		if err := c.record(ctx, it, now); err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) && !errors.Is(err, errGone) {
				c.options.Log.Warn("cannot write a FleetPlacement", "placement", it.name(), "error", err)
			}
			silent = errors.Is(err, context.DeadlineExceeded)
			it.sets = nil // nothing is done that is not written down
		}
	}
	return true
}

// errGone says that a FleetPlacement is gone.
var errGone = errors.New("it was deleted")
