package spot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// warmingTimeout is how long an admission or a reconcile waits for a member's first lists.
const warmingTimeout = time.Second

// member follows one member's cache. The directory is published when the kinds that are needed, and one of those whose
// workloads are placed, have delivered their first lists; kinds that come later are added to it. When a kind is lost, what
// was known is dropped and built again from what is left, for a directory that silently stands still is worse than none.
type member struct {
	engine      *Engine
	name        string
	cluster     Cluster
	directory   atomic.Pointer[directory] // nil while nothing is published
	more        notify.Wake               // a further kind may be cached
	reads       liveReads
	proofs      proofs
	acting      atomic.Pointer[time.Time] // since when this replica acts on the member; nil: it does not, or was not asked
	undecidedAt atomic.Int64              // when pods without a decision were last found, in Unix nanoseconds; 0: never
	follows     bool                      // another directory of the member was there before; only run looks at it

	mu            sync.Mutex
	published     chan struct{} // closed while a directory is published
	orphanProblem string        // why orphans could not be taken away last; empty: they could
	orphanTurns   orphanTurns
}

// needed are the kinds without which nothing can be placed; workloadKinds those of which one is enough.
func needed() []client.Object {
	return []client.Object{&corev1.Namespace{}, &corev1.Node{}, &corev1.Pod{}}
}

func (m *member) workloadKinds() []client.Object {
	kinds := []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}}
	for _, kind := range m.engine.kinds {
		kinds = append(kinds, kind.object())
	}
	return kinds
}

// namespaces are those that the member is registered for; nil: all.
func (m *member) namespaces() []string {
	if tenant, ok := m.cluster.(interface{ Namespaces() []string }); ok {
		return tenant.Namespaces()
	}
	return nil
}

// steerBy is what the registration names to steer pods by; empty: nothing.
func (m *member) steerBy() string {
	if m.engine.options.SteerBy == nil {
		return ""
	}
	return m.engine.options.SteerBy(m.name)
}

// steered reports that pods of the member are steered otherwise than before.
func (m *member) steered(s *capacity.Steering) {
	if err := m.engine.options.Capacity.CheckSteerBy(s.SteerBy); err != nil {
		m.engine.options.Log.Warn("the steer-by value of the registration is invalid and ignored", "member", m.name, "error", err)
	}
	m.engine.options.Log.Info("the node labels that steer the member's pods have changed", "member", m.name, "spot", s.Spot.String(), "onDemand", s.OnDemand.String())
}

func newMember(e *Engine, name string, c Cluster) *member {
	return &member{engine: e, name: name, cluster: c, more: notify.New(), published: make(chan struct{}), proofs: newProofs()}
}

// kick says that a further kind may be cached.
func (m *member) kick() { m.more.Signal() }

// run follows the member until ctx ends.
func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.follow(ctx)
	}
}

// follow publishes one directory and feeds it until a kind is lost or ctx ends.
func (m *member) follow(ctx context.Context) {
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	f := &follower{member: m, directory: newDirectory(m.engine.options.Keys, m.engine.options.Defaults, m.engine.options.Namespaces), lost: lost}
	f.directory.onMove = func(key policy.WorkloadKey, move report.Move) { m.engine.reportMove(m.name, key, move) }
	f.directory.nodes.Announced = func(before, now *plan.Interruption) { m.engine.reportInterruption(m.name, before, now) }
	if m.follows { // what was promised by the one before is not known to this one
		f.directory.replaces = time.Now()
	}
	m.follows = true
	f.directory.capacity, f.directory.droughts = m.engine.options.Capacity, shortage.NewTrackers(m.engine.options.Probes.Times)
	f.directory.nodes.Census.Begin(m.engine.options.Capacity, m.steerBy, m.steered)
	f.directory.signs = nodes.NewAutoscalers(m.cluster.Live)
	go m.tend(ctx, f.directory)
	go m.followPools(ctx, f.directory)
	defer f.detach()
	defer m.withdraw()
	f.directory.kinds, f.directory.only, f.directory.probes = m.engine.kinds, m.namespaces(), m.probeNamespace()
	f.directory.splitOf = func(key policy.WorkloadKey) *policy.FleetSplit { return m.engine.splits.of(m.name, key) }
	all := m.workloadKinds()
	required, workloads := needed(), all
	for {
		required, workloads = f.followAll(ctx, required), f.followAll(ctx, workloads)
		if len(required) == 0 && len(workloads) < len(all) && toolscache.WaitFor(ctx, "", f.synced...) {
			m.publish(f.directory)
		}
		select {
		case <-m.more:
		case <-ctx.Done():
			return
		}
	}
}

// publish shows a directory to everybody, and to those who wait for it at once. Series of workloads that went unseen, before a
// kind was lost or the member was registered again, go: nothing was planned with the directory yet.
func (m *member) publish(dir *directory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.directory.Load() == nil {
		m.engine.metrics.ForgetWorkloads(m.name)
	}
	if m.directory.Swap(dir) == nil {
		close(m.published)
	}
}

func (m *member) withdraw() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.directory.Swap(nil) != nil {
		m.published = make(chan struct{})
	}
}

// awaitDirectory returns what is known about the member, which right after its start comes a moment later than its caches; nil
// when it does not come in time.
func (m *member) awaitDirectory(ctx context.Context) *directory {
	if dir := m.directory.Load(); dir != nil {
		return dir
	}
	m.mu.Lock()
	published := m.published
	m.mu.Unlock()
	timeout := time.NewTimer(warmingTimeout)
	defer timeout.Stop()
	select {
	case <-published:
	case <-timeout.C:
	case <-ctx.Done():
	}
	return m.directory.Load()
}
