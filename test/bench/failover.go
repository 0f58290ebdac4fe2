package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// failoverSettings are a lease of five seconds.
var failoverSettings = fleet.Settings{
	"leaderElection.leaseDuration": "5s", "leaderElection.renewDeadline": "3s", "leaderElection.retryPeriod": "1s",
}

const (
	failoverReplicas = 20
	failoverBefore   = 70
	failoverAfter    = 30
	// reconcileTotal counts reconciles that have ended. A standby's stays still.
	reconcileTotal = "plimsoll_reconcile_total"
)

// failover kills the replica that acts and waits until the other one does.
func (b *bench) failover(ctx context.Context) error {
	if err := b.registerDirectly(ctx); err != nil {
		return err
	}
	owner, standby, err := b.startPair(ctx, failoverSettings)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(owner.stop(ctx), standby.stop(ctx)) }()
	workloads, err := b.failoverWorkloads(ctx, owner.api)
	if err != nil {
		return err
	}
	before, err := reconciles(ctx, standby.hub)
	if err != nil {
		return err
	}
	killed := time.Now()
	if err := owner.hub.Kill(); err != nil {
		return err
	}
	for _, w := range workloads { // something to do, so that the other one does not only say that it acts
		if err := w.Annotate(ctx, fleet.Policy(failoverAfter, 1)); err != nil {
			return err
		}
	}
	taken, err := awaitReconcile(ctx, standby.hub, before)
	if err != nil {
		return err
	}
	for _, w := range workloads {
		spot, onDemand := fleet.Want(failoverReplicas, failoverAfter, 1)
		if err := w.AwaitMix(ctx, spot, onDemand); err != nil {
			return err
		}
	}
	return b.failoverFigures(workloads, killed, taken)
}

// A member of a pair of replicas.
type paired struct {
	hub *fleet.Process
	api *fleet.API
	b   *bench
}

func (p paired) stop(ctx context.Context) error { return p.b.stopReplica(ctx, p.hub, p.api) }

// startPair starts two replicas and returns which of them acts.
func (b *bench) startPair(ctx context.Context, settings fleet.Settings) (owner, standby paired, err error) {
	pair := make([]paired, 2)
	for i := range pair {
		pair[i].b = b
		if pair[i].hub, pair[i].api, err = b.startReplica(ctx, settings); err != nil {
			return owner, standby, err
		}
		if err := pair[i].api.AwaitMembers(ctx, b.fleet.Members...); err != nil {
			return owner, standby, err
		}
	}
	cluster, err := pair[0].api.Cluster(ctx, b.fleet.Members[0].Name)
	if err != nil {
		return owner, standby, err
	}
	switch cluster.GetOwner() {
	case pair[0].hub.Peer:
		return pair[0], pair[1], nil
	case pair[1].hub.Peer:
		return pair[1], pair[0], nil
	}
	return owner, standby, fmt.Errorf("member %s is owned by %q, which is neither replica", cluster.GetName(), cluster.GetOwner())
}

// failoverWorkloads makes a workload in each member and waits until all is quiet.
func (b *bench) failoverWorkloads(ctx context.Context, api *fleet.API) ([]*fleet.Workload, error) {
	var workloads []*fleet.Workload
	for _, m := range b.fleet.Members {
		namespace, err := m.NewNamespace(ctx, "failover", fleet.Enabled())
		if err != nil {
			return nil, err
		}
		w, err := m.Create(ctx, fleet.Deployment(namespace, "web", failoverReplicas, fleet.Policy(failoverBefore, 1)))
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, w)
	}
	for _, w := range workloads {
		if err := api.Settle(ctx, w, failoverReplicas); err != nil {
			return nil, err
		}
	}
	return workloads, nil
}

// reconciles is how many have ended on a replica.
func reconciles(ctx context.Context, hub *fleet.Process) (float64, error) {
	samples, err := hub.Samples(ctx)
	return fleet.Sum(samples[reconcileTotal]), err
}

// awaitReconcile waits until a replica has reconciled more than before.
func awaitReconcile(ctx context.Context, hub *fleet.Process, before float64) (time.Time, error) {
	err := fleet.Await(ctx, "the other replica to reconcile", func(ctx context.Context) (bool, error) {
		now, err := reconciles(ctx, hub)
		return now > before, err
	})
	return time.Now(), err
}

// failoverFigures counts what the remaining replica has asked the members for since the kill.
func (b *bench) failoverFigures(workloads []*fleet.Workload, killed, taken time.Time) error {
	since := func(e kube.AuditEvent) bool { return e.Received.After(killed) }
	lists := 0
	var written time.Time
	for _, w := range workloads {
		audit := w.Member.Cluster.Audit()
		listed, err := audit.Events(fleet.ByHub, kube.Lists, since)
		if err != nil {
			return err
		}
		for _, event := range listed {
			b.logf("listed after the kill: %s %s", event.Verb, event.URI)
		}
		lists += len(listed)
		writes, err := audit.Events(fleet.ByHub, kube.Writes, since)
		if err != nil {
			return err
		}
		if len(writes) > 0 && (written.IsZero() || writes[0].Received.Before(written)) {
			written = writes[0].Received
		}
	}
	if written.IsZero() {
		return errors.New("the other replica wrote nothing")
	}
	b.report.Record("failover-s", taken.Sub(killed).Seconds())
	b.report.Record("failover-lists", float64(lists))
	b.report.Note("failover: first reconcile seen after %.1f s, first write after %.1f s", taken.Sub(killed).Seconds(), written.Sub(killed).Seconds())
	return nil
}
