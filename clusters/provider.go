package clusters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// Provider turns registration Secrets into members and keeps them. It is multicluster-runtime's
// Provider and ProviderRunnable: a multicluster manager starts it and gets every member engaged.
//
// All methods may be called concurrently. Nothing that one member does or fails to do delays another, or a call.
type Provider struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	paths   *quantities.Paths // of all kinds that a member may answer with
	record  *recorder
	claims  *claims
	subs    *notify.Subscribers[Event]
	secrets *secretWatch
	aware   multicluster.Aware // set by Start, before any actor runs
	joins   joins
	caches  *intake.FleetBudget // of all members
	running sync.WaitGroup      // actors and members
	synced  atomic.Bool         // see Synced

	mu      sync.RWMutex // never held while anything outside this package is called
	started bool
	ctx     context.Context // of Start; actors and members live in it, not in anybody's request
	kinds   [][]Kind
	access  []Access
	indexes []fieldIndex
	// declared are the merged kinds, once started.
	declared []declaredKind
	actors   map[string]*actor
	members  map[string]*Member // those that controllers work on
	alive    map[*Member]struct{}
	statuses map[string]Status
}

var (
	_ multicluster.Provider         = (*Provider)(nil)
	_ multicluster.ProviderRunnable = (*Provider)(nil)
)

// New creates a provider; it does nothing before Start. An error names the option that is wrong.
func New(opts Options) (*Provider, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Secrets == nil {
		if opts.Secrets, err = corev1client.NewForConfig(opts.HubConfig); err != nil {
			return nil, fmt.Errorf("members: make a client for the hub cluster: %w", err)
		}
	}
	measures, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, err
	}
	p := &Provider{
		opts: opts, log: opts.Log, metrics: measures, claims: newClaims(), joins: newJoins(), caches: intake.NewFleetBudget(opts.FleetCacheBytes), subs: notify.NewSubscribers(Event.about),
		paths:  quantities.NewPaths(opts.Scheme),
		record: &recorder{events: opts.Events, log: opts.Log, metrics: measures},
		actors: map[string]*actor{}, members: map[string]*Member{}, alive: map[*Member]struct{}{}, statuses: map[string]Status{},
	}
	p.secrets, err = newSecretWatch(opts, p.notice, p.noticeAll)
	if err != nil {
		return nil, err
	}
	if opts.Registerer != nil {
		if err := opts.Registerer.Register(cacheSeries{p}); err != nil {
			return nil, fmt.Errorf("register the metrics of members: %w", err)
		}
	}
	if err := p.AddKinds(opts.Kinds...); err != nil {
		return nil, err
	}
	return p, p.AddAccess(opts.Access...)
}

var errStarted = errors.New("members: the provider has been started")

// AddKinds declares kinds that every member is to cache. It is an error once the provider runs, or when a kind
// contradicts one that was declared before.
func (p *Provider) AddKinds(kinds ...Kind) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return errStarted
	}
	all := append(slices.Clone(p.kinds), kinds)
	if _, err := MergeKinds(all...); err != nil {
		return err
	}
	p.kinds = all
	return nil
}

// AddAccess declares what every member is asked to permit. It is an error once the provider runs.
func (p *Provider) AddAccess(access ...Access) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return errStarted
	}
	p.access = append(p.access, access...)
	return nil
}

// Start keeps the members until ctx ends, and returns when everything it started has stopped. Controllers are notified about
// members through aware. It may be called once.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.begin(ctx, aware); err != nil {
		return err
	}
	var informers sync.WaitGroup
	informers.Go(func() { p.secrets.common.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), p.secrets.common.HasSynced) // first: no member may be worked in before it is known whether it may be
	for _, informer := range p.secrets.informers {
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	<-ctx.Done()
	informers.Wait()
	p.mu.Lock()
	p.ctx = nil // no actor starts any more
	p.mu.Unlock()
	p.running.Wait()
	p.subs.Stop()
	return nil
}

// begin freezes the declarations.
func (p *Provider) begin(ctx context.Context, aware multicluster.Aware) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return errStarted
	}
	merged, err := MergeKinds(p.kinds...)
	if err != nil {
		return err
	}
	for _, kind := range merged {
		gvk, err := apiutil.GVKForObject(kind.Object, p.opts.Scheme)
		if err != nil {
			return fmt.Errorf("declare kind %T to cache: %w", kind.Object, err)
		}
		if slices.ContainsFunc(p.declared, func(other declaredKind) bool { return other.gvk == gvk }) {
			return fmt.Errorf("declare kind %s to cache: it is declared with a Go type and without one", caching.KindName(gvk))
		}
		kind.Fields = bothFields(kind.Fields, kind.Needed)
		p.declared = append(p.declared, declaredKind{Kind: kind, gvk: gvk, name: caching.KindName(gvk)})
	}
	if err := p.checkIndexes(p.indexes); err != nil {
		return err
	}
	p.started, p.ctx, p.aware = true, ctx, aware
	return nil
}

// Synced reports whether the registrations that existed at the start have been seen, and each of them has a status. It stays true.
func (p *Provider) Synced() bool {
	if p.synced.Load() {
		return true
	}
	for _, informer := range p.secrets.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	if !p.eachHasStatus() {
		return false
	}
	p.synced.Store(true)
	return true
}

// eachHasStatus reports whether every registration has a status, which its actor publishes soon after the Secret was seen.
func (p *Provider) eachHasStatus() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for name := range p.secrets.names() {
		if _, known := p.statuses[name]; !known && p.secrets.get(name) != nil {
			return false
		}
	}
	return true
}

// Get returns the member name, or multicluster.ErrClusterNotFound when there is none that can be worked on.
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if member, ok := p.Member(string(name)); ok {
		return member, nil
	}
	return nil, fmt.Errorf("member %s: %w", name, multicluster.ErrClusterNotFound)
}

// Member returns the member name if controllers work on it.
func (p *Provider) Member(name string) (*Member, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	member, ok := p.members[name]
	return member, ok
}

// engagedMembers returns those that controllers work on.
func (p *Provider) engagedMembers() []*Member {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.members))
}

// Statuses returns the status of every registration, sorted by name.
func (p *Provider) Statuses() []Status {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]Status, 0, len(p.statuses))
	for _, status := range p.statuses {
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Status returns the status of one registration.
func (p *Provider) Status(name string) (Status, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	status, ok := p.statuses[name]
	return status, ok
}

// Event says to a subscriber that something about a member changed.
type Event struct {
	Status Status
	// Removed: the registration is gone; Status is the last one.
	Removed bool
	// BreakerOpen: requests to the member are refused now because it does not answer.
	BreakerOpen bool
}

// about says which member an event is about, and whether it is gone.
func (e Event) about() (member string, removed bool) { return e.Status.Name, e.Removed }

// Subscribe calls f for every registration that is there, and then whenever the status of one changes (a new LastProbe
// alone is no change). Calls come one at a time from a goroutine of the subscription, in order for each member; while f
// is busy, only the newest event of a member is kept for it. After cancel no further call begins.
func (p *Provider) Subscribe(f func(Event)) (cancel func()) { return p.subs.Add(f) }
