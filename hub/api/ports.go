package api

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/rest"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// Members reports what this replica knows of the registered clusters. Safe for concurrent use.
type Members interface {
	// Statuses returns a snapshot of every registration, in any order.
	Statuses() []clusters.Status
	// Status returns that of one member; false: nobody registered it.
	Status(name string) (clusters.Status, bool)
	// Synced reports whether all members that were registered at the start have a status. Before that nobody can say that a
	// member is not registered.
	Synced() bool
}

// Workloads reports what this replica's last plans say of workloads. Safe for concurrent use.
type Workloads interface {
	// List returns the enabled workloads of a member in the order of [policy.WorkloadKey.Compare], without their pods;
	// namespace "" means all. The result is the caller's.
	List(member, namespace string) []report.Workload
	// Get returns one workload with its pods; false: there is none, or it is not enabled.
	Get(member, kind, namespace, name string) (report.Workload, bool)
	// Suppose answers what the plan of a workload would be under a hypothesis; false: there is no such workload, or none that
	// was planned.
	Suppose(member, kind, namespace, name string, h report.Hypothesis, now time.Time) (report.WhatIf, bool)
	// WhyNotEnabled reports why a workload that Get does not know is not placed, from a live read of its member. The error is one
	// that [spot.NoWorkload] knows when there is no such workload; any other one: it is not known now.
	WhyNotEnabled(ctx context.Context, member string, key policy.WorkloadKey) (spot.NotEnabled, error)
	// Controller names the controller whose keys are the workloads of a kind; false: the kind is not placed.
	Controller(kind string) (controller string, ok bool)
	// Placed returns all kinds of workloads that are placed. The caller does not change it.
	Placed() []spot.PlacedKind
}

// Objects is the ledger of this replica. Safe for concurrent use.
type Objects interface {
	// RecordsIn returns keys of a member in the order of controller, namespace and name, and whether there are more.
	RecordsIn(filter reconcile.Filter) (records []reconcile.Record, more bool)
	// ControllersIn returns the controllers that work in a member, by name.
	ControllersIn(member string) []reconcile.ControllerState
	// Lookup returns the record of a key; false: the controller or the object is not known here.
	Lookup(key reconcile.Key) (reconcile.Record, bool)
	// RequeueFor orders a reconcile for a caller, among whom operations are shared out; its error wraps one of those of
	// [reconcile.Runtime.RequeueFor] when the key cannot be known here.
	RequeueFor(key reconcile.Key, caller string) (reconcile.Operation, error)
	// Version is another number whenever what RecordsIn says of a member may have changed.
	Version(member string) uint64
	// Closed reports whether the keys of a member are held, and why.
	Closed(member string, hold reconcile.Hold) (reason string, closed bool)
	// OperationsIn returns the orders about a member that were accepted here, by ID.
	OperationsIn(member string) []reconcile.Operation
	// CancelOperation takes an order back; see [reconcile.Runtime.CancelOperation].
	CancelOperation(id string) (reconcile.Operation, error)
	// Operation returns an order that was accepted here; false: none has that id, or it is forgotten.
	Operation(id string) (reconcile.Operation, bool)
	// Wait returns the operation when it is done, or an error when it is not known or ctx has ended.
	Wait(ctx context.Context, id string) (reconcile.Operation, error)
}

// Events is what this replica remembers of what happened in members; *[journal.Journal] is one. Safe for concurrent use.
type Events interface {
	// Add takes in an event.
	Add(journal.Event)
	// List returns events of a member behind an ID, in the order in which they came, and whether there are more. An empty
	// namespace means all of them.
	List(member, namespace, behind string, limit int) (found []journal.Event, more bool)
	// Version is another number whenever the events of a member are others.
	Version(member string) uint64
}

// Ownership reports which replica acts on a member. Safe for concurrent use, and quick: it asks nobody.
type Ownership interface {
	// Owner returns the address at which the other replicas reach the owner of member, or the last one that is known;
	// "": none is known.
	Owner(member string) string
	// Mine reports whether this replica answers for member: it is the owner, or was the last one that is known.
	Mine(member string) bool
	// Acts reports whether this replica may act on member at this moment. Orders are for such a replica only: the last owner
	// that is known may have lost the member without having heard of it.
	Acts(member string) bool
}

// Peers connects to other replicas, with mutual authentication. Safe for concurrent use.
type Peers interface {
	// Dial returns the connection to the replica at address, which the callee keeps and closes. It does not wait for it.
	Dial(address string) (grpc.ClientConnInterface, error)
}

// Page is a web page beside the REST methods. Safe for concurrent use.
type Page = rest.Page
