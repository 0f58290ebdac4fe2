package page

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// World is what one replica knows of a fleet, behind the API's ports. It may be used concurrently.
type World struct {
	// Journal is what has happened: what is changed here is in it, as the hub would put it there.
	Journal *journal.Journal

	// ExplainTakes is how long it takes to explain a FleetPlacement.
	ExplainTakes time.Duration
	// NoFleet is a hub without fleet placement.
	NoFleet bool

	mu         sync.Mutex
	changed    chan struct{} // closed and renewed when an operation changes
	statuses   map[string]clusters.Status
	workloads  map[string][]workload // by member, in the order of their keys
	records    map[string]map[reconcile.Key]reconcile.Record
	operations map[string]reconcile.Operation

	placements map[string]*fleetv1.FleetPlacement // by namespace and name
	placed     uint64                             // changes with them
}

// NewWorld returns an empty one.
func NewWorld() *World {
	return &World{
		Journal: journal.New(journal.Limits{}),
		changed: make(chan struct{}), statuses: map[string]clusters.Status{}, workloads: map[string][]workload{},
		records: map[string]map[reconcile.Key]reconcile.Record{}, operations: map[string]reconcile.Operation{},
		placements: map[string]*fleetv1.FleetPlacement{},
	}
}

// AddMember registers a member that is ready.
func (w *World) AddMember(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	conditions := make([]metav1.Condition, 0, 4)
	for _, aspect := range []string{"Accepted", "Reachable", "Warm", "Permitted"} {
		conditions = append(conditions, metav1.Condition{Type: aspect, Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: metav1.NewTime(now)})
	}
	w.statuses[name] = clusters.Status{
		Name: name, State: clusters.StateReady, Reason: "Healthy", Server: name + ".example:6443", Version: "v1.36.1", UID: "uid-of-" + name,
		Kinds:      []clusters.KindStatus{{Kind: "apps/v1 Deployment", Engaged: true}, {Kind: "apps/v1 StatefulSet", Engaged: true}},
		Conditions: conditions, RegisteredAt: now.Add(-40 * 24 * time.Hour), LastProbe: now, Since: now.Add(-3 * time.Hour),
	}
	w.records[name] = map[reconcile.Key]reconcile.Record{}
}

// SetState changes the state of a member.
func (w *World) SetState(member string, state clusters.State, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.statuses[member]
	before := status.State
	status.State, status.Reason, status.Message, status.Since = state, reason, message, time.Now()
	w.statuses[member] = status
	w.Journal.Add(journal.Event{Type: journal.ClusterState, Member: member, Subject: string(state), Reason: reason,
		Message: fmt.Sprintf("the member is %s, and was %s: %s", state, before, message)})
}

// FailKey makes the last reconcile of a workload's key one that failed.
func (w *World) FailKey(member, namespace, name, message string, attempts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(member, namespace, name)
	now := time.Now()
	w.records[member][key] = reconcile.Record{
		Key: key, State: reconcile.StateWaiting, Priority: reconcile.PriorityChanged, Reason: "back-off", Attempts: attempts, LastOutcome: reconcile.OutcomeError,
		LastError: message, Failing: now.Add(-14 * time.Minute), LastStarted: now.Add(-time.Second), LastEnded: now, NextTry: now.Add(time.Minute), Runs: uint64(attempts),
	}
}

// Finish ends all orders of a workload's key: its reconcile is done.
func (w *World) Finish(member, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(member, namespace, name)
	record := w.records[member][key]
	record.State, record.LastOutcome, record.LastError, record.Attempts, record.NextTry = reconcile.StateIdle, reconcile.OutcomeDone, "", 0, time.Time{}
	record.Runs++
	w.records[member][key] = record
	for id, operation := range w.operations {
		if operation.Key == key && !operation.Done {
			operation.Done, operation.Record = true, record
			w.operations[id] = operation
		}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Ordered returns how many orders were accepted.
func (w *World) Ordered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.operations)
}

func keyOf(member, namespace, name string) reconcile.Key {
	return reconcile.Key{Member: member, Controller: controllerOfDeployments, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Owner implements api.Ownership: there is one replica.
func (*World) Owner(string) string { return "10.0.0.1:9443" }

// Mine implements api.Ownership.
func (*World) Mine(string) bool { return true }

// Acts implements api.Ownership.
func (*World) Acts(string) bool { return true }

// Dial implements api.Peers.
func (*World) Dial(address string) (grpc.ClientConnInterface, error) {
	return nil, fmt.Errorf("there is no other replica at %s", address)
}

// Statuses implements api.Members.
func (w *World) Statuses() []clusters.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.statuses))
}

// Status implements api.Members.
func (w *World) Status(name string) (clusters.Status, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	status, ok := w.statuses[name]
	return status, ok
}

// Synced implements api.Members.
func (*World) Synced() bool { return true }

// RecordsIn implements api.Objects.
func (w *World) RecordsIn(f reconcile.Filter) (found []reconcile.Record, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, record := range w.records[f.Member] {
		if (f.Controller == "" || f.Controller == key.Controller) && (f.Namespace == "" || f.Namespace == key.Namespace) && place(key) > place(f.After) {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b reconcile.Record) int { return strings.Compare(place(a.Key), place(b.Key)) })
	if f.Limit > 0 && len(found) > f.Limit {
		return found[:f.Limit], true
	}
	return found, false
}

func place(key reconcile.Key) string { return key.Controller + "/" + key.Namespace + "/" + key.Name }

// ControllersIn implements api.Objects.
func (w *World) ControllersIn(member string) []reconcile.ControllerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := reconcile.ControllerState{Name: controllerOfDeployments, Member: member, Kind: "apps/v1 Deployment", Objects: len(w.records[member])}
	for _, record := range w.records[member] {
		if record.State == reconcile.StateQueued {
			state.Queued++
		}
	}
	return []reconcile.ControllerState{state}
}

// Lookup implements api.Objects.
func (w *World) Lookup(key reconcile.Key) (reconcile.Record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	record, ok := w.records[key.Member][key]
	return record, ok
}

// RequeueFor implements api.Objects. The order waits for [World.Finish].
func (w *World) RequeueFor(key reconcile.Key, _ string) (reconcile.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	record, ok := w.records[key.Member][key]
	if !ok {
		return reconcile.Operation{}, fmt.Errorf("requeue: %w", reconcile.ErrUnknownKey)
	}
	record.State, record.Priority, record.Reason, record.NextTry = reconcile.StateQueued, reconcile.PriorityOrdered, "", time.Time{}
	w.records[key.Member][key] = record
	operation := reconcile.Operation{ID: fmt.Sprintf("order-%d", len(w.operations)), Key: key, Accepted: time.Now(), Record: record}
	w.operations[operation.ID] = operation
	return operation, nil
}

// Operation implements api.Objects.
func (w *World) Operation(id string) (reconcile.Operation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	operation, ok := w.operations[id]
	return operation, ok
}

// Wait implements api.Objects.
func (w *World) Wait(ctx context.Context, id string) (reconcile.Operation, error) {
	for {
		w.mu.Lock()
		operation, ok := w.operations[id]
		changed := w.changed
		w.mu.Unlock()
		switch {
		case !ok:
			return operation, reconcile.ErrUnknownOperation
		case operation.Done:
			return operation, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return operation, ctx.Err()
		}
	}
}
