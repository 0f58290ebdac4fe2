package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What the fleet run has: one workload over three members, of which 70 % may be on spot, in a hub as it is by default. Pods are
// ready as soon as a node has them, so the testbed's start time is next to nothing, and what is counted is all ours.
const (
	fleetReplicas = 60
	fleetFloor    = 6
	fleetPercent  = 70
	fleetGrace    = 10 * time.Second
	fleetIdle     = 2 * time.Minute
	// fleetQuiet is how long nothing may have been written before that: what the hub says of new workloads comes within a minute.
	fleetQuiet = 75 * time.Second
)

// overFleet are the settings of a user who places workloads over the fleet, and sets nothing else.
var overFleet = fleet.Settings{"fleet.enabled": true}

// fleetRun scales a workload over three members, takes all spot nodes of one of them away, and loses one.
func (b *bench) fleetRun(ctx context.Context) (err error) {
	k, err := b.fleet.PreparePlacements(ctx, b.fleet.Members...)
	if err != nil {
		return err
	}
	hub, api, err := b.startReplica(ctx, overFleet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stopReplica(context.WithoutCancel(ctx), hub, api)) }()
	if err := api.AwaitMembers(ctx, b.fleet.Members...); err != nil {
		return err
	}
	w, err := b.deliver(ctx, k)
	if err != nil {
		return err
	}
	defer w.stop()
	for _, step := range []func(context.Context, *fleetWorkload) error{b.fleetScale, b.fleetRest, b.fleetDrought, b.fleetLoss, b.fleetFloors} {
		if err := step(ctx, w); err != nil {
			return fmt.Errorf("%w; %s", err, w.shown())
		}
	}
	return w.discard(ctx)
}

// fleetScale has the workload grow and shrink, and counts evictions.
func (b *bench) fleetScale(ctx context.Context, w *fleetWorkload) error {
	for _, replicas := range []int{fleetReplicas, 200, 30} {
		if err := w.scale(ctx, replicas); err != nil {
			return err
		}
		if err := w.awaitExact(ctx, replicas); err != nil {
			return err
		}
		if replicas == fleetReplicas {
			w.settled() // from here on the floor is there, and has to stay
		}
	}
	evicted, err := w.audited(kube.Evictions)
	if err != nil {
		return err
	}
	b.report.Record("fleet-scale-evictions", float64(len(evicted)))
	if err := w.scale(ctx, fleetReplicas); err != nil {
		return err
	}
	return w.awaitExact(ctx, fleetReplicas)
}

// fleetRest counts what the hub writes to members and to its own cluster while nothing happens. The hub warns of workloads without a
// disruption budget a minute after they came, so the workload has one.
func (b *bench) fleetRest(ctx context.Context, w *fleetWorkload) error {
	clusters := []*kube.Cluster{b.fleet.Hub}
	for _, m := range b.fleet.Members {
		clusters = append(clusters, m.Cluster)
	}
	marks := make([]kube.Mark, len(clusters))
	for i, c := range clusters {
		var err error
		if marks[i], err = c.Audit().Mark(); err != nil {
			return err
		}
	}
	if err := b.fleetSettle(ctx, clusters, marks); err != nil {
		return err
	}
	b.logf("nothing happens for %s", fleetIdle)
	if err := pause(ctx, fleetIdle); err != nil {
		return err
	}
	writes := 0
	for i, c := range clusters {
		found, err := b.fleetWrites(c, marks[i])
		if err != nil {
			return err
		}
		for _, write := range found {
			b.report.Note("fleet at rest: cluster %s: %s %s/%s of %s/%s", c.Name(), write.Verb, write.Resource, write.Subresource, write.Namespace, write.Name)
		}
		writes += len(found)
	}
	b.report.Record("fleet-idle-writes", float64(writes))
	return nil
}

// fleetWrites are what the hub has written to a cluster. Of the hub cluster what this run is about: FleetPlacements and Events.
func (b *bench) fleetWrites(c *kube.Cluster, since kube.Mark) ([]kube.AuditEvent, error) {
	by := fleet.ByHub
	if c == b.fleet.Hub {
		by = kube.Any(kube.OnResource("fleetplacements"), kube.OnResource("fleetplacements/status"), kube.OnResource("events"))
	}
	return c.Audit().Since(since, kube.Writes, by)
}

// fleetSettle waits until nothing has been written for some time: Events are written late. The marks are then of that moment.
func (b *bench) fleetSettle(ctx context.Context, clusters []*kube.Cluster, marks []kube.Mark) error {
	quiet := time.Now()
	for time.Since(quiet) < fleetQuiet {
		for i, c := range clusters {
			found, err := b.fleetWrites(c, marks[i])
			if err != nil {
				return err
			}
			if len(found) > 0 {
				quiet = time.Now()
			}
			if marks[i], err = c.Audit().Mark(); err != nil {
				return err
			}
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// fleetDrought takes all spot nodes of a member away with the replicas on them, and gives them back.
func (b *bench) fleetDrought(ctx context.Context, w *fleetWorkload) error {
	m := b.fleet.Members[0]
	marks, err := w.marks()
	if err != nil {
		return err
	}
	began := time.Now()
	b.logf("all spot nodes of %s go", m.Name)
	nodes, err := m.TakeAway(ctx, kube.Spot)
	if err != nil {
		return err
	}
	if err := w.awaitReady(ctx, w.histories); err != nil {
		return errors.Join(err, b.giveBack(m, nodes))
	}
	b.report.Record("fleet-drought-covered-s", time.Since(began).Seconds())
	spot, onDemand := mixOf(fleetReplicas)
	err = w.await(ctx, "on-demand to be back at the floor, and none on spot in "+m.Name, func() (bool, fleet.Mix) {
		all := w.total(w.histories)
		return w.histories[0].Now().Spot == 0 && all.OnDemand == onDemand && all.Spot >= spot && all.Ready >= fleetReplicas, all
	})
	if err != nil {
		return errors.Join(err, b.giveBack(m, nodes))
	}
	b.report.Record("fleet-drought-return-s", time.Since(began).Seconds())
	given := time.Now()
	if err := b.giveBack(m, nodes); err != nil {
		return err
	}
	err = w.await(ctx, "replicas on spot in "+m.Name, func() (bool, fleet.Mix) { return w.histories[0].Now().Spot > 0, w.total(w.histories) })
	if err := errors.Join(err, w.awaitExact(ctx, fleetReplicas)); err != nil {
		return err
	}
	b.report.Record("fleet-drought-home-s", time.Since(given).Seconds())
	ready, gone, err := w.readyEvicted(marks)
	for _, pod := range ready {
		b.report.Note("fleet drought: evicted while it was ready: %s", pod)
	}
	for _, pod := range gone {
		b.report.Note("fleet drought: evicted after its node had been deleted, which does not count: %s", pod)
	}
	b.report.Record("fleet-ready-evictions", float64(len(ready)))
	return err
}

// fleetLoss has a member answer nothing, and answer again. Its replicas go on serving, unseen.
func (b *bench) fleetLoss(ctx context.Context, w *fleetWorkload) error {
	lost := b.fleet.Members[2]
	began := time.Now()
	lost.Proxy.Hang(nil)
	err := w.awaitReady(ctx, w.histories[:2])
	covered := time.Since(began)
	back := time.Now()
	if err := errors.Join(err, lost.Proxy.Restore()); err != nil {
		return err
	}
	b.report.Record("fleet-loss-covered-s", covered.Seconds())
	if err := w.awaitExact(ctx, fleetReplicas); err != nil {
		return err
	}
	b.report.Record("fleet-loss-return-s", time.Since(back).Seconds())
	short, err := w.moments(func(all totals) bool { return all.at.After(began) && all.mix.Ready < fleetReplicas })
	b.report.Record("fleet-loss-short", float64(short))
	return err
}

// fleetFloors counts the moments with fewer on-demand replicas ready than the floor: no on-demand node was ever taken away.
func (b *bench) fleetFloors(_ context.Context, w *fleetWorkload) error {
	breaks, err := w.moments(func(all totals) bool { return all.at.After(w.begun) && all.onDemand < fleetFloor })
	b.report.Record("fleet-floor-breaks", float64(breaks))
	return err
}

// mixOf is what the placement asks for.
func mixOf(replicas int) (spot, onDemand int) {
	spot = min(replicas*fleetPercent/100, replicas-fleetFloor)
	return spot, replicas - spot
}

// spec is the FleetPlacement's, but for its target.
func (w *fleetWorkload) spec() {
	w.placement.Spec.Replicas = ptr.To(int32(0))
	w.placement.Spec.Capacity.MinOnDemand, w.placement.Spec.Capacity.SpotPercentage = fleetFloor, ptr.To(int32(fleetPercent))
	w.placement.Spec.ClusterLossGrace = durationOf(fleetGrace)
}
