package spot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// Options configure an [Engine].
type Options struct {
	Keys     policy.Keys
	Capacity capacity.Labels
	// Interruptions say which nodes are about to go.
	Interruptions nodes.Interruptions
	Defaults      policy.Defaults
	Settings      plan.Settings
	// Kinds of workloads that are placed beside Deployments, StatefulSets and ReplicaSets.
	Kinds []WorkloadKind
	// Namespaces restricts placement to namespaces that match, beside their enabled label. Nil: all.
	Namespaces labels.Selector
	// ReadOnlyBy returns what puts a member into read-only mode, "the hub" or "the member"; empty: nothing does. It is called by every
	// admission and reconcile. Nil: no member is.
	ReadOnlyBy func(member string) string
	// CordonedMember reports whether nothing is to be moved in a member; new pods are placed. It is asked by every reconcile. Nil: none is.
	CordonedMember func(member string) bool
	// SteerBy returns what a member's registration names to steer its pods by, empty for nothing; see
	// [capacity.Labels.CheckSteerBy]. It is asked by every admission. Nil: none names anything.
	SteerBy func(member string) string
	// Acts reports whether this replica may act on a member now; see also [Engine.OwnershipChanged]. It is asked by every
	// admission. Nil: it always may, and no other replica ever did.
	Acts func(member string) bool
	// Ceilings bound the moves of members and of the hub.
	Ceilings plan.CeilingLimits
	// Moves shares out the moves. Nil: a [plan.Ceiling] of this process with Ceilings.
	Moves plan.MoveBudget
	// Probes say how it is found out whether spot has room again.
	Probes ProbeOptions
	// SpotTolerations are added to pods that are sent to spot capacity.
	SpotTolerations []corev1.Toleration
	// OnEvent is notified of what happens in members where this replica acts: moves, droughts, and nodes that are about to go. It must
	// be quick, and call nothing of the engine. Nil: nobody is notified.
	OnEvent func(Event)
	// Log defaults to discarding.
	Log *slog.Logger
	// WorkloadSeries is how many workloads of a member have metrics of their own; 0: [report.DefaultWorkloadSeries].
	WorkloadSeries int
	// Registerer for metrics; nil: none are registered.
	Registerer prometheus.Registerer
}

// Engine is the shell of spot placement: it keeps a directory and the slot accounting of every engaged member from
// informer events, answers admissions, and reconciles workloads. All methods are safe for concurrent
// use.
type Engine struct {
	options Options // a copy: what the caller writes to its own does not reach members at work

	kinds   kindTable
	patcher *admission.Patcher
	moves   plan.MoveBudget
	metrics *report.Metrics
	splits  splits

	// held reports whether this replica may not act on a member now; nil until [Engine.Controllers].
	held atomic.Pointer[func(member string) (reason string, held bool)]

	mu       sync.RWMutex
	members  map[string]*member
	notified []func(member, kind, namespace, name string) // by [Engine.Notify]; only appended to
}

// Cluster is what the engine needs of a member; *clusters.Member is one.
type Cluster interface {
	cluster.Cluster
	// Live reads from the API server.
	Live() client.Reader
	// ByIndex returns the cached objects that an index of their kind has for a value, in a namespace. They are shared: nobody changes them.
	ByIndex(ctx context.Context, obj client.Object, field, namespace, value string) ([]any, error)
	// Watch reports whether the kind of obj is cached, and until when.
	Watch(obj client.Object) (done <-chan struct{}, ok bool)
}

var _ Cluster = (*clusters.Member)(nil)

// NewEngine checks the options and makes an engine without members.
func NewEngine(o Options) (*Engine, error) {
	o = o.clone()
	if err := o.Defaults.Validate(); err != nil {
		return nil, fmt.Errorf("spot defaults: %w", err)
	}
	if o.Settings.MaxMoves == (policy.MoveLimit{}) {
		return nil, errors.New("spot settings: max moves is not set")
	}
	if o.Namespaces == nil {
		o.Namespaces = labels.Everything()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Probes = o.Probes.withDefaults()
	if o.Moves == nil {
		o.Moves = plan.NewCeiling(o.Ceilings)
	}
	e := &Engine{options: o, moves: o.Moves, members: map[string]*member{}}
	var err error
	if e.kinds, err = newKindTable(o.Kinds); err != nil {
		return nil, err
	}
	e.patcher = admission.NewPatcher(o.Keys, o.SpotTolerations)
	e.metrics, err = report.NewMetrics(o.Registerer, o.WorkloadSeries, e.reservations, e.dry)
	return e, err
}

// clone copies the options with what they hold by reference.
func (o Options) clone() Options {
	o.Capacity, o.Defaults, o.Kinds = o.Capacity.Clone(), o.Defaults.Clone(), slices.Clone(o.Kinds)
	tolerations := make([]corev1.Toleration, 0, len(o.SpotTolerations))
	for i := range o.SpotTolerations {
		tolerations = append(tolerations, *o.SpotTolerations[i].DeepCopy())
	}
	o.SpotTolerations = tolerations
	return o
}

// Keys are the names of the labels and annotations that the engine reads and writes.
func (e *Engine) Keys() policy.Keys { return e.options.Keys }

// CheckSteerBy says what is wrong with a registration's value for what steers its pods; see [capacity.Labels.CheckSteerBy].
func (e *Engine) CheckSteerBy(value string) error { return e.options.Capacity.CheckSteerBy(value) }

// ProbeImage is the image that probes name.
func (e *Engine) ProbeImage() string { return e.options.Probes.Image }

// Engage follows a member's pods and workloads until ctx ends. It is called again when further kinds of it are cached.
func (e *Engine) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	c, ok := cl.(Cluster)
	if !ok {
		return fmt.Errorf("member %s: %T does not implement spot.Cluster", name, cl)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.members[name.String()]
	if known != nil && known.cluster == c {
		known.kick()
		return nil
	}
	m := newMember(e, name.String(), c)
	m.follows = known != nil
	e.members[m.name] = m
	context.AfterFunc(ctx, func() { e.leave(m) })
	go m.run(ctx)
	return nil
}

// Start waits for the end: the engine works by the events of the members. It makes the Engine a Runnable of the manager.
func (e *Engine) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is false: standbys follow their members too.
func (e *Engine) NeedLeaderElection() bool { return false }

func (e *Engine) leave(m *member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.members[m.name] == m {
		delete(e.members, m.name)
		e.forgetMember(m.name)
	}
}

// forgetMember drops what is kept by member outside of its directory: its series, and its share of the hub's ceiling.
func (e *Engine) forgetMember(name string) {
	e.metrics.ForgetMember(name)
	e.moves.ForgetMember(name)
}

// forgetIfGone drops what a reconcile has noted of a member that has left meanwhile.
func (e *Engine) forgetIfGone(name string) {
	if e.member(name) == nil {
		e.forgetMember(name)
	}
}

// heldMember reports whether this replica may not act on a member now, and why.
func (e *Engine) heldMember(name string) (reason string, held bool) {
	if ask := e.held.Load(); ask != nil {
		return (*ask)(name)
	}
	return "the controllers have not started yet", true
}

func (e *Engine) member(name string) *member {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.members[name]
}

// directory returns what is known about a member; nil while its caches are not complete.
func (e *Engine) directory(name string) *directory {
	m := e.member(name)
	if m == nil {
		return nil
	}
	return m.directory.Load()
}

// awaitDirectory is directory, and waits a moment for a member that has just started.
func (e *Engine) awaitDirectory(ctx context.Context, name string) *directory {
	if m := e.member(name); m != nil {
		return m.awaitDirectory(ctx)
	}
	return nil
}

// List returns the workloads of a member whose placement was planned, in the order of [policy.WorkloadKey.Compare]; namespace
// empty: of all namespaces.
func (e *Engine) List(memberName, namespace string) []report.Workload {
	dir := e.directory(memberName)
	if dir == nil {
		return nil
	}
	views := dir.views(namespace)
	slices.SortFunc(views, func(a, b report.Workload) int { return a.Compare(b.WorkloadKey) })
	return views
}

// Summary returns what the last plan said of a workload, without its pods, explanation and moves; false when it is not known or
// not enabled. What it costs does not depend on the number of pods.
func (e *Engine) Summary(memberName, kind, namespace, name string) (report.Workload, bool) {
	view, _, ok := e.lastPlan(memberName, kind, namespace, name)
	return view, ok
}

func (e *Engine) lastPlan(memberName, kind, namespace, name string) (report.Workload, *directory, bool) {
	dir := e.directory(memberName)
	if dir == nil {
		return report.Workload{}, nil, false
	}
	view, ok := dir.view(policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	if !ok {
		return report.Workload{}, nil, false
	}
	return view, dir, true
}

// Get returns one workload with its pods; false when it is not known or not enabled.
func (e *Engine) Get(memberName, kind, namespace, name string) (report.Workload, bool) {
	view, dir, ok := e.lastPlan(memberName, kind, namespace, name)
	if !ok {
		return report.Workload{}, false
	}
	view.Pods = e.podViews(e.podsIn(memberName), dir, view.WorkloadKey, view.Policy.Mix())
	if last, ok := dir.journal.LastPlan(view.WorkloadKey); ok {
		view.Explanation = append(last.Explain(), dir.nodes.Census.Steering().String())
		report.AddPlans(view.Pods, last.Plan.Pods)
	}
	view.Moves = dir.journal.LastMoves(view.WorkloadKey)
	return view, true
}

// Controller returns the name of the controller that reconciles a kind of workload.
func (e *Engine) Controller(kind string) (string, bool) {
	for _, placed := range e.kinds.placed() {
		if placed.Name == kind {
			return placed.Controller, true
		}
	}
	return "", false
}

// Placed returns the kinds of workloads that are placed, Kubernetes' own first.
func (e *Engine) Placed() []PlacedKind { return e.kinds.placed() }

// reservations counts the live reservations by member, for the metric.
func (e *Engine) reservations() map[string]int {
	return e.count(func(d *directory) int { return d.reserved(time.Now()) })
}

// dry counts by member for how many shapes of pods capacity of a type has no room, for the metric.
func (e *Engine) dry(capacityType capacity.Type) map[string]int {
	return e.count(func(d *directory) int { return d.droughts.Decisions(capacityType) })
}

func (e *Engine) count(of func(*directory) int) map[string]int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	count := make(map[string]int, len(e.members))
	for name, m := range e.members {
		if dir := m.directory.Load(); dir != nil {
			count[name] = of(dir)
		}
	}
	return count
}

func (e *Engine) readOnlyBy(member string) string {
	if e.options.ReadOnlyBy == nil {
		return ""
	}
	return e.options.ReadOnlyBy(member)
}

// settingsFor returns the settings as they hold for one workload.
func (e *Engine) settingsFor(member string, p *policy.Policy) plan.Settings {
	s := e.options.Settings.For(p.Modes, e.readOnlyBy(member))
	if !s.Paused && e.options.CordonedMember != nil && e.options.CordonedMember(member) {
		s.Paused, s.PausedBy = true, "the member"
	}
	return s
}
