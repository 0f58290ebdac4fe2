package inprocess

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	spotreport "github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

const (
	apiMembers   = 100
	apiKeys      = 2000 // of each member
	apiWorkloads = 100  // of each member
)

// apiBackend is a hub that owns apiMembers members and knows all of them by heart. Nothing in it changes.
type apiBackend struct {
	statuses  []clusters.Status
	records   map[string][]reconcile.Record // by member, in the order of lists
	workloads map[string][]spotreport.Workload
}

func newAPIBackend() *apiBackend {
	b := &apiBackend{records: map[string][]reconcile.Record{}, workloads: map[string][]spotreport.Workload{}}
	for m := range apiMembers {
		member := apiMember(m)
		b.statuses = append(b.statuses, clusters.Status{Name: member, State: clusters.StateReady,
			Kinds: []clusters.KindStatus{{Kind: "apps/v1 Deployment", Engaged: true}}})
		for k := range apiKeys {
			record := reconcile.Record{Key: apiKey(member, k), State: reconcile.StateIdle, LastOutcome: reconcile.OutcomeDone, LastEnded: time.Now()}
			b.records[member] = append(b.records[member], record)
		}
		for w := range apiWorkloads {
			view := spotreport.Workload{Member: member, State: plan.StateMoving, Replicas: 10, SpotWanted: 7, OnDemandWanted: 3, SpotActual: 6 + w%2, OnDemandActual: 4 - w%2,
				WorkloadKey: policy.WorkloadKey{Kind: spot.KindDeployment, NamespacedName: apiKey(member, w).NamespacedName}, Planned: time.Now()}
			b.workloads[member] = append(b.workloads[member], view)
		}
	}
	return b
}

// apiMember is the n-th member; they come round again.
func apiMember(n int) string { return fmt.Sprintf("member-%03d", n%apiMembers) }

// apiKey is the k-th key of a member.
func apiKey(member string, k int) reconcile.Key {
	return reconcile.Key{Member: member, Controller: "deployment-spot", NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("w%05d", k)}}
}

// find returns where a key is, or would be.
func (b *apiBackend) find(key reconcile.Key) (int, bool) {
	records := b.records[key.Member]
	i := sort.Search(len(records), func(i int) bool { return records[i].Key.Name >= key.Name })
	return i, i < len(records) && records[i].Key == key
}

func (*apiBackend) Synced() bool { return true }
func (b *apiBackend) Statuses() []clusters.Status {
	return append([]clusters.Status(nil), b.statuses...)
}

func (b *apiBackend) Status(name string) (clusters.Status, bool) {
	i := sort.Search(len(b.statuses), func(i int) bool { return b.statuses[i].Name >= name })
	if i == len(b.statuses) || b.statuses[i].Name != name {
		return clusters.Status{}, false
	}
	return b.statuses[i], true
}

func (b *apiBackend) List(member, _ string) []spotreport.Workload {
	return append([]spotreport.Workload(nil), b.workloads[member]...)
}

func (b *apiBackend) Get(member, _, _, name string) (spotreport.Workload, bool) {
	for _, view := range b.workloads[member] {
		if view.Name == name {
			return view, true
		}
	}
	return spotreport.Workload{}, false
}

func (*apiBackend) Suppose(string, string, string, string, spotreport.Hypothesis, time.Time) (spotreport.WhatIf, bool) {
	return spotreport.WhatIf{}, false
}

func (*apiBackend) WhyNotEnabled(context.Context, string, policy.WorkloadKey) (spot.NotEnabled, error) {
	return spot.NotEnabled{}, spot.ErrNotKnown
}

func (*apiBackend) Controller(string) (string, bool) { return "deployment-spot", true }

func (*apiBackend) Placed() []spot.PlacedKind {
	return []spot.PlacedKind{{Name: spot.KindDeployment, Controller: "deployment-spot", Cached: "apps/v1 Deployment"}}
}

func (b *apiBackend) RecordsIn(f reconcile.Filter) ([]reconcile.Record, bool) {
	records := b.records[f.Member]
	from := sort.Search(len(records), func(i int) bool { return records[i].Key.Name > f.After.Name })
	records = records[from:]
	n := len(records)
	if f.Limit > 0 {
		n = min(n, f.Limit)
	}
	return append([]reconcile.Record(nil), records[:n]...), n < len(records)
}

func (*apiBackend) ControllersIn(string) []reconcile.ControllerState { return nil }

func (b *apiBackend) Lookup(key reconcile.Key) (reconcile.Record, bool) {
	i, ok := b.find(key)
	if !ok {
		return reconcile.Record{}, false
	}
	return b.records[key.Member][i], true
}

func (*apiBackend) RequeueFor(reconcile.Key, string) (reconcile.Operation, error) {
	return reconcile.Operation{}, reconcile.ErrRetired
}

func (*apiBackend) Operation(string) (reconcile.Operation, bool)           { return reconcile.Operation{}, false }
func (*apiBackend) OperationsIn(string) []reconcile.Operation              { return nil }
func (*apiBackend) Version(string) uint64                                  { return 1 }
func (*apiBackend) Closed(string, reconcile.Hold) (reason string, is bool) { return "", false }

func (*apiBackend) CancelOperation(string) (reconcile.Operation, error) {
	return reconcile.Operation{}, reconcile.ErrUnknownOperation
}

func (*apiBackend) Wait(context.Context, string) (reconcile.Operation, error) {
	return reconcile.Operation{}, reconcile.ErrUnknownOperation
}

func (*apiBackend) Owner(string) string { return "127.0.0.1:9444" }
func (*apiBackend) Mine(string) bool    { return true }
func (*apiBackend) Acts(string) bool    { return true }

func (*apiBackend) Dial(string) (grpc.ClientConnInterface, error) {
	return nil, errors.New("there is one replica")
}

// Authenticate takes each token for the name of its user.
func (*apiBackend) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	return auth.Identity{User: token}, nil
}

func (*apiBackend) Allowed(context.Context, auth.Identity, auth.Access) (bool, error) {
	return true, nil
}
