package clusters

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// accessInterval is how often a member is asked again for what it permits, when it permitted everything.
const accessInterval = 5 * time.Minute

// Member is one registered cluster: a cluster.Cluster whose cache holds the declared kinds that the cluster has, and
// whose clients go through the member transport. All methods may be called concurrently and none but Start waits for
// the cluster, except the clients it hands out.
//
// GetClient reads from the cache, with a [*NotWarmError] for kinds that are not cached now, and writes to the cluster
// through breaker, budget, fence and time-out. It refuses to Update kinds that are trimmed ([ErrTrimmed]).
type Member struct {
	cluster.Cluster

	name    string
	vetted  *kubeconfig.Vetted
	health  *health
	breaker *breaker
	warmer  *warmer
	live    client.Reader
	kinds   []*memberKind // in the order of declaration
	byKind  map[schema.GroupVersionKind]*memberKind
	access  []question
	prober  *prober
	joins   joins
	retry   time.Duration // between access reviews that found something missing
	changed func()
	close   func() // closes idle connections

	admitted chan struct{} // closed when the caches may be warmed
	came     notify.Wake   // kinds may have come or gone since the last access review
	started  atomic.Bool
	status   atomic.Pointer[Status] // as published by the provider

	mu      sync.RWMutex
	denied  []string // what access reviews denied
	checked bool     // whether the last access review got its answers
}

// memberOptions are what a provider gives to each of its members.
type memberOptions struct {
	Options

	kinds   []declaredKind
	pace    intake.Pace
	joins   joins // of all members
	fleet   *intake.FleetBudget
	paths   *quantities.Paths
	metrics *metrics
	changed func() // called after every change of the member's state; must not block
	onBreak func(open bool)
}

// newMember puts a member together. It does no I/O.
func newMember(name string, vetted *kubeconfig.Vetted, o memberOptions) (*Member, error) {
	m := &Member{
		name: name, vetted: vetted, access: questionsOf(o.Access, name, vetted.Namespaces), changed: o.changed, retry: o.RetryMax,
		joins:    o.joins,
		admitted: make(chan struct{}), came: notify.New(), byKind: map[schema.GroupVersionKind]*memberKind{},
	}
	m.breaker = &breaker{member: name, onChange: m.breakerChanged(o.onBreak)}
	ways, err := o.ways(name, vetted, transportOptions{
		qps: o.QPS, burst: o.Burst, fence: o.Fence, metrics: o.metrics, breaker: m.breaker,
		requestTimeout: o.RequestTimeout, writeTimeout: o.WriteTimeout, listTimeout: o.WarmTimeout, probeTimeout: o.ProbeTimeout,
		answerBytes: o.AnswerBytes, eventBytes: o.EventBytes, paths: o.paths, pace: o.pace,
	})
	if err != nil {
		return nil, err
	}
	m.close = ways.closeIdle
	if m.prober, err = newProber(restConfig(vetted, ways.probes), httpClient(ways.probes)); err != nil {
		return nil, err
	}
	m.health = &health{
		prober: m.prober, breaker: m.breaker, interval: o.ProbeInterval,
		threshold: o.FailureThreshold, retry: o.probeBackoff(), changed: o.changed, probeNow: notify.New(),
		observe: func(d time.Duration) { o.metrics.probe.WithLabelValues(name).Observe(d.Seconds()) },
	}
	for _, declared := range o.kinds {
		kind := newMemberKind(declared.ofTenant(name, vetted.Namespaces))
		m.kinds = append(m.kinds, kind)
		m.byKind[kind.gvk] = kind
	}
	return m, m.build(ways, o)
}

// breakerChanged makes the function that the breaker calls: an open breaker asks for a probe, for requests may have
// opened it, and only a good probe closes it.
func (m *Member) breakerChanged(changed func(open bool)) func(bool) {
	return func(open bool) {
		if open {
			m.health.kick()
		}
		changed(open)
	}
}

// build creates the warmer and the cluster.Cluster over the transports.
func (m *Member) build(ways *transports, o memberOptions) error {
	dynamic, err := apiutil.NewDynamicRESTMapper(restConfig(m.vetted, ways.probes), httpClient(ways.probes))
	if err != nil {
		return err
	}
	mapper := &mapper{
		RESTMapper: dynamic, prober: m.prober, timeout: o.RequestTimeout, retryMin: o.RetryMin, retryMax: o.RetryMax,
		known: map[schema.GroupVersionKind]*meta.RESTMapping{}, served: map[schema.GroupVersion]served{},
		missing: map[schema.GroupVersion]missing{},
	}
	m.warmer = &warmer{
		member: m.name, scheme: o.Scheme, config: restConfig(m.vetted, ways.informers), wire: ways.informers,
		prober: m.prober, mapper: mapper, timeout: o.WarmTimeout, retry: o.backoff(), namespaces: m.vetted.Namespaces,
		budget: intake.NewMemberBudget(o.fleet, o.CacheBytes, o.KindBytes, o.CacheObjects), log: o.Log, defined: m.defined,
		changed: func() {
			m.came.Signal()
			o.changed()
		},
	}
	m.Cluster, err = cluster.New(restConfig(m.vetted, ways.client), func(c *cluster.Options) {
		c.Scheme = o.Scheme
		c.HTTPClient = httpClient(ways.client)
		c.Logger = memberLog(o.Log, m.name)
		c.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }
		c.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &memberCache{m.name, o.Scheme, m.byKind}, nil
		}
		c.NewClient = m.newClient
	})
	if err != nil {
		return err
	}
	m.live = caching.NewLiveReader(m.Cluster.GetAPIReader())
	return nil
}

func memberLog(log *slog.Logger, member string) logr.Logger {
	return logr.FromSlogHandler(log.With("member", member).Handler())
}

func (m *Member) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	inner, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	trimmed := map[schema.GroupVersionKind]bool{}
	for _, kind := range m.kinds {
		if kind.Keep != nil {
			trimmed[kind.gvk] = caching.IsUntyped(kind.Object)
		}
	}
	return caching.NewClient(inner, m.name, trimmed), nil
}

// Name returns the member's name: that of its registration Secret.
func (m *Member) Name() string { return m.name }

// RunsOn reports whether the member was made of exactly this kubeconfig. While a changed registration is tried, or refused, the member runs on
// the one before: what is in the Secret must not be given to it, nor what it answers be written there.
func (m *Member) RunsOn(kubeconfig []byte) bool { return m.vetted.MadeOf(kubeconfig) }

// Namespaces are those that the member is registered for, in order; nil: the whole cluster. The caller must not change them.
func (m *Member) Namespaces() []string { return m.vetted.Namespaces }

// Status returns the last published status; its name alone before there is one.
func (m *Member) Status() Status {
	if status := m.status.Load(); status != nil {
		return *status
	}
	return Status{Name: m.name, State: StateConnecting}
}

// Registration identifies the Secret behind the member.
func (m *Member) Registration() Registration { return m.Status().Registration }

// Ready reports whether the member can be worked in: its state is Ready or Degraded.
func (m *Member) Ready() bool {
	state := m.Status().State
	return state == StateReady || state == StateDegraded
}

// BreakerOpen reports whether requests are refused now because the member does not answer.
func (m *Member) BreakerOpen() bool { return m.breaker.isOpen() }

// Has reports whether the kind of obj is cached now.
func (m *Member) Has(obj client.Object) bool {
	_, ok := m.Watch(obj)
	return ok
}

// Watch reports whether the kind of obj is cached now; done is closed when it is disengaged again, because the member
// leaves or persistently says that the kind is gone or forbidden.
func (m *Member) Watch(obj client.Object) (done <-chan struct{}, ok bool) {
	gvk, err := caching.ItemKind(obj, m.GetScheme())
	if err != nil {
		return nil, false
	}
	kind := m.byKind[gvk]
	if kind == nil {
		return nil, false
	}
	warm, _ := kind.get()
	if warm == nil {
		return nil, false
	}
	return warm.done, true
}

// Live returns a reader that asks the member's API server, through breaker and budget.
func (m *Member) Live() client.Reader { return m.GetAPIReader() }

// GetAPIReader returns what Live does.
func (m *Member) GetAPIReader() client.Reader { return m.live }

// Start runs the member until ctx ends: when it is its turn it probes, and once the provider admits the member it warms the kinds and asks
// for permissions. It returns when everything it started has stopped. The provider calls it; a second call is an error.
func (m *Member) Start(ctx context.Context) error {
	if m.started.Swap(true) {
		return errors.New("member " + m.name + ": already started")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer m.close()
	if !m.joins.enter(ctx) {
		return nil
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		defer m.joins.leave()
		m.awaitJoined(ctx)
	})
	running.Go(func() { m.health.watch(ctx) })
	running.Go(func() { _ = m.Cluster.Start(ctx) }) // the member cache cannot fail
	select {
	case <-ctx.Done():
		return nil
	case <-m.admitted:
	}
	running.Go(func() { m.watchAccess(ctx) })
	for _, kind := range m.kinds {
		running.Go(func() { m.warmer.keep(ctx, kind) })
	}
	<-ctx.Done()
	return nil
}

// admit lets the member warm its caches; only its actor calls it.
func (m *Member) admit() {
	if !m.isAdmitted() {
		close(m.admitted)
	}
}

func (m *Member) isAdmitted() bool {
	select {
	case <-m.admitted:
		return true
	default:
		return false
	}
}

// watchAccess keeps asking for what the reconcilers need to be allowed.
func (m *Member) watchAccess(ctx context.Context) {
	for ctx.Err() == nil {
		questions := m.questions()
		denied, err := m.prober.review(ctx, questions)
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		m.checked = err == nil
		if err == nil {
			m.denied = denied
		}
		m.mu.Unlock()
		m.changed()
		pause := accessInterval
		if err != nil || len(denied) > 0 {
			pause = m.retry
		}
		m.awaitReview(ctx, pause, len(questions))
	}
}

// questions are those that matter in the member as it is now.
func (m *Member) questions() []question {
	return slices.DeleteFunc(slices.Clone(m.access), func(q question) bool { return q.Beside != nil && !m.Has(q.Beside) })
}

// awaitReview waits for a pause, or until there is more or less to ask than so many questions.
func (m *Member) awaitReview(ctx context.Context, pause time.Duration, asked int) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-m.came:
			if len(m.questions()) != asked {
				return
			}
		}
	}
}

var _ cluster.Cluster = (*Member)(nil)
