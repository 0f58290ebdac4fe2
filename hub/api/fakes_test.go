package api

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
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/inprocess"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// fleet is a fake of what several replicas share: who owns which member, and how they reach each other.
type fleet struct {
	mu       sync.Mutex
	owners   map[string]string // by member
	replicas map[string]*replica
	received []metadata.MD // by peers
}

// replica is a fake of what one replica knows.
type replica struct {
	fleet   *fleet
	address string
	peer    grpc.ClientConnInterface // nil: it cannot be reached
	stop    context.CancelFunc

	mu         sync.Mutex
	statuses   map[string]clusters.Status
	workloads  []report.Workload
	notEnabled map[policy.WorkloadKey]spot.NotEnabled // workloads that exist and are not placed
	unreadable error                                  // what reading one of them fails with
	placements []*fleetv1.FleetPlacement
	records    map[reconcile.Key]reconcile.Record
	operations map[string]reconcile.Operation
	changed    chan struct{} // closed and replaced when an operation changes
	calls      atomic.Int64  // that reached the backend
	orderedBy  []string
	journal    *journal.Journal
	batches    *Batches
	version    atomic.Uint64     // see Version
	shut       map[string]string // members that do not answer, and why
	scanned    func()            // called before a scan of the ledger; nil: nothing is
	panics     bool
	lapsed     bool // could not renew its Lease
	starting   bool // has not read the registrations yet
	questions  *limits.Questions
	forPeers   *core // what its peer side is served by
}

func newFleet() *fleet { return &fleet{owners: map[string]string{}, replicas: map[string]*replica{}} }

// testBudget is what the filters of a caller may cost on a replica that is asked by another: it is as good as never full again.
const testBudget = 1_000_000

// replica adds one, with its peer side served in this process.
func (f *fleet) replica(t testing.TB, address string) *replica {
	t.Helper()
	stopping, stop := context.WithCancel(context.Background())
	r := &replica{
		fleet: f, address: address, stop: stop,
		statuses: map[string]clusters.Status{}, records: map[reconcile.Key]reconcile.Record{},
		operations: map[string]reconcile.Operation{}, changed: make(chan struct{}), journal: journal.New(journal.Limits{}), batches: NewBatches(), shut: map[string]string{}, questions: limits.NewQuestions(),
	}
	log := slog.New(slog.DiscardHandler)
	core := &core{
		members: r, workloads: r.lists(), objects: r, ownership: r, events: r.journal, fleet: fleetLists{r}, batches: r.batches,
		rights: access{authorizer: everything{}, log: log}, filters: limits.NewBudgets(1, testBudget), questions: r.questions, stopping: stopping, log: log,
	}
	calls := inprocess.New(append([]grpc.UnaryServerInterceptor{f.record}, peerChain(log)...), nil)
	newServices(core).register(calls)
	r.peer, r.forPeers = calls, core
	f.replicas[address] = r
	t.Cleanup(stop)
	return r
}

// record keeps what arrives at peers.
func (f *fleet) record(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	f.mu.Lock()
	f.received = append(f.received, sent)
	f.mu.Unlock()
	return next(context.WithValue(ctx, identityKey{}, nil), request) // who calls does not come over a wire by itself
}

// give makes the replica at address own a member.
func (f *fleet) give(member, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owners[member] = address
}

func (f *fleet) owner(member string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owners[member]
}

// Dial implements Peers.
func (f *fleet) Dial(address string) (grpc.ClientConnInterface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.replicas[address]
	if r == nil {
		return nil, fmt.Errorf("no route to %s", address)
	}
	if r.peer == nil {
		return deadConn{}, nil
	}
	return r.peer, nil
}

// deadConn is a connection to a replica that is gone.
type deadConn struct{ grpc.ClientConnInterface }

func (deadConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unavailable, "connection refused")
}

// hungConn is a connection to a replica that never answers.
type hungConn struct{ grpc.ClientConnInterface }

func (hungConn) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (r *replica) backend() Backend {
	return Backend{Members: r, Workloads: r.lists(), Objects: r, Ownership: r, Events: r.journal, Batches: r.batches, Fleet: fleetLists{r}}
}

// enter counts a call of the backend.
func (r *replica) enter() func() {
	r.mu.Lock()
	r.calls.Add(1)
	if r.panics {
		defer r.mu.Unlock()
		panic("canary-panic")
	}
	return r.mu.Unlock
}

// Owner, Mine and Acts implement Ownership.
func (r *replica) Owner(member string) string { return r.fleet.owner(member) }
func (r *replica) Mine(member string) bool    { return r.fleet.owner(member) == r.address }
func (r *replica) Acts(member string) bool {
	r.mu.Lock()
	lapsed := r.lapsed
	r.mu.Unlock()
	return !lapsed && r.Mine(member)
}

// Statuses implements Members; the order is any, as promised to nobody.
func (r *replica) Statuses() []clusters.Status {
	defer r.enter()()
	all := make([]clusters.Status, 0, len(r.statuses))
	for _, known := range r.statuses {
		all = append(all, known)
	}
	return all
}

// Status implements Members.
func (r *replica) Status(name string) (clusters.Status, bool) {
	defer r.enter()()
	known, ok := r.statuses[name]
	return known, ok
}

// Synced implements Members.
func (r *replica) Synced() bool { return !r.starting }

// RecordsIn implements Objects.
func (r *replica) RecordsIn(f reconcile.Filter) (found []reconcile.Record, more bool) {
	if r.scanned != nil {
		r.scanned()
	}
	defer r.enter()()
	for key, record := range r.records {
		if key.Member == f.Member && (f.Controller == "" || f.Controller == key.Controller) && (f.Namespace == "" || f.Namespace == key.Namespace) &&
			place(key) > place(f.After) {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b reconcile.Record) int { return strings.Compare(place(a.Key), place(b.Key)) })
	return found[:min(f.Limit, len(found))], len(found) > f.Limit
}

// orders returns who has ordered here, one for each order.
func (r *replica) orders() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.orderedBy)
}

// lapse makes the replica one that could not renew its Lease.
func (r *replica) lapse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lapsed = true
}

// place is where a key of a member is in lists.
func place(key reconcile.Key) string { return key.Controller + "/" + key.Namespace + "/" + key.Name }

// ControllersIn implements Objects.
func (r *replica) ControllersIn(member string) []reconcile.ControllerState {
	defer r.enter()()
	counts := map[string]int{}
	for key := range r.records {
		if key.Member == member {
			counts[key.Controller]++
		}
	}
	var found []reconcile.ControllerState
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		found = append(found, reconcile.ControllerState{Name: name, Member: member, Kind: "apps/v1 Deployment", Objects: counts[name], Queued: 1, Held: "a test"})
	}
	return found
}

// Lookup implements Objects.
func (r *replica) Lookup(key reconcile.Key) (reconcile.Record, bool) {
	defer r.enter()()
	record, ok := r.records[key]
	return record, ok
}

// RequeueFor implements Objects.
func (r *replica) RequeueFor(key reconcile.Key, caller string) (reconcile.Operation, error) {
	defer r.enter()()
	r.orderedBy = append(r.orderedBy, caller)
	switch record, ok := r.records[key]; {
	case key.Controller == "broken":
		return reconcile.Operation{}, errors.New("canary-internal")
	case !strings.HasSuffix(key.Controller, "-spot"):
		return reconcile.Operation{}, fmt.Errorf("requeue: %w", reconcile.ErrUnknownController)
	case r.statuses[key.Member].State == clusters.StateRefused:
		return reconcile.Operation{}, fmt.Errorf("requeue: %w", reconcile.ErrUnknownMember)
	case !ok:
		return reconcile.Operation{}, fmt.Errorf("requeue: %w", reconcile.ErrUnknownKey)
	default:
		operation := reconcile.Operation{ID: fmt.Sprintf("id-%d", len(r.operations)), Key: key, Accepted: time.Now(), Caller: caller, Record: record}
		r.operations[operation.ID] = operation
		return operation, nil
	}
}

// Operation implements Objects.
func (r *replica) Operation(id string) (reconcile.Operation, bool) {
	defer r.enter()()
	operation, ok := r.operations[id]
	return operation, ok
}

// Version implements Objects. Tests change records by hand, so it is another at each call.
func (r *replica) Version(string) uint64 { return r.version.Add(1) }

// Closed implements Objects.
func (r *replica) Closed(member string, hold reconcile.Hold) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, shut := r.shut[member]
	return reason, shut && hold == reconcile.HoldBreaker
}

// OperationsIn implements Objects.
func (r *replica) OperationsIn(member string) (found []reconcile.Operation) {
	defer r.enter()()
	for _, id := range slices.Sorted(maps.Keys(r.operations)) {
		if operation := r.operations[id]; operation.Key.Member == member {
			found = append(found, operation)
		}
	}
	return found
}

// CancelOperation implements Objects.
func (r *replica) CancelOperation(id string) (reconcile.Operation, error) {
	defer r.enter()()
	operation, ok := r.operations[id]
	switch {
	case !ok:
		return operation, reconcile.ErrUnknownOperation
	case operation.Done:
		return operation, reconcile.ErrOperationBegun
	}
	operation.Done, operation.CancelledAt = true, time.Now()
	r.operations[id] = operation
	return operation, nil
}

// Wait implements Objects.
func (r *replica) Wait(ctx context.Context, id string) (reconcile.Operation, error) {
	for {
		r.mu.Lock()
		operation, ok := r.operations[id]
		changed := r.changed
		r.mu.Unlock()
		if !ok {
			return operation, reconcile.ErrUnknownOperation
		}
		if operation.Done {
			return operation, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return operation, ctx.Err()
		}
	}
}

// settle changes an operation.
func (r *replica) settle(id string, change func(*reconcile.Operation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	operation := r.operations[id]
	change(&operation)
	r.operations[id] = operation
	close(r.changed)
	r.changed = make(chan struct{})
}

// workloadLists implements Workloads; a type of its own, because of Members.Get and the like.
type workloadLists struct{ *replica }

func (r *replica) lists() Workloads { return workloadLists{r} }

func (l workloadLists) List(member, namespace string) []report.Workload {
	defer l.enter()()
	var found []report.Workload
	for _, view := range l.workloads {
		if view.Member == member && (namespace == "" || view.Namespace == namespace) {
			view.Pods = nil
			found = append(found, view)
		}
	}
	slices.SortFunc(found, func(a, b report.Workload) int { return a.Compare(b.WorkloadKey) })
	return found
}

func (l workloadLists) Get(member, kind, namespace, name string) (report.Workload, bool) {
	defer l.enter()()
	for _, view := range l.workloads {
		if view.Member == member && view.WorkloadKey == workloadKey(namespace, kind, name) {
			return view, true
		}
	}
	return report.Workload{}, false
}

func (l workloadLists) Suppose(member, kind, namespace, name string, h report.Hypothesis, now time.Time) (report.WhatIf, bool) {
	view, ok := l.Get(member, kind, namespace, name)
	view.Pods = nil
	answer := report.WhatIf{Now: view, Then: view, Moves: 2, First: []report.Move{{Pod: name + "-0", From: capacity.Spot, For: plan.PurposeMove, Strategy: policy.StrategyEvict}}}
	answer.Then.Planned = now
	if h.Percentage != nil {
		answer.Then.Policy.Percentage, answer.Then.Policy.PercentageSource = h.Percentage, policy.SourceRequest
	}
	return answer, ok
}

func (l workloadLists) WhyNotEnabled(_ context.Context, _ string, key policy.WorkloadKey) (spot.NotEnabled, error) {
	defer l.enter()()
	why, found := l.notEnabled[key]
	if !found {
		return why, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name)
	}
	return why, l.unreadable
}

func (workloadLists) Controller(kind string) (string, bool) {
	if kind != spot.KindDeployment && kind != spot.KindStatefulSet {
		return "", false
	}
	return strings.ToLower(kind) + "-spot", true
}

func (workloadLists) Placed() []spot.PlacedKind {
	return []spot.PlacedKind{
		{Name: spot.KindDeployment, Controller: "deployment-spot", Cached: "apps/v1 Deployment"},
		{Name: spot.KindStatefulSet, Controller: "statefulset-spot", Cached: "apps/v1 StatefulSet"},
		{Name: "Rollout.argoproj.io", Controller: "rollout-argoproj-io-spot", Cached: "argoproj.io/v1alpha1 Rollout", Optional: true},
	}
}

func workloadKey(namespace, kind, name string) policy.WorkloadKey {
	return policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// member registers a member that is ready.
func (r *replica) member(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.statuses[name] = clusters.Status{
			Name: name, State: clusters.StateReady, Reason: "Healthy", Server: "10.0.0.1:6443", Version: "v1.36.1",
			Kinds:        []clusters.KindStatus{{Kind: "apps/v1 Deployment", Engaged: true}, {Kind: "apps/v1 StatefulSet", Engaged: true}},
			RegisteredAt: time.Unix(1_700_000_000, 0),
		}
	}
}

// set changes the status of a member.
func (r *replica) set(name string, change func(*clusters.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.statuses[name]
	change(&known)
	r.statuses[name] = known
}

// workload adds a Deployment with a record in the ledger.
func (r *replica) workload(member, namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	percentage := 70
	r.workloads = append(r.workloads, report.Workload{
		Member: member, WorkloadKey: workloadKey(namespace, spot.KindDeployment, name), State: plan.StateConverged,
		Policy:   policy.Policy{Percentage: &percentage, PercentageSource: policy.SourceNamespace},
		Replicas: 10, SpotWanted: 7, OnDemandWanted: 3, SpotActual: 6, OnDemandActual: 3, Unassigned: 1,
		Pods: []report.Pod{{Name: name + "-0", Slot: 0, Wanted: capacity.OnDemand, Actual: capacity.Spot, Ready: true}, {Name: name + "-1", Slot: -1}},
	})
	key := reconcile.Key{Controller: "deployment-spot", Member: member, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	r.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle, LastOutcome: reconcile.OutcomeDone, Runs: 1}
}
