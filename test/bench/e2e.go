package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/e2e"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// e2eFailover kills the replica that acts, in a container, while sizes and policies change in three members, and waits until the
// other one does. It needs a Docker engine; without one nothing is measured.
func (b *bench) e2eFailover(ctx context.Context) (err error) {
	if err := e2e.EngineReady(ctx); errors.Is(err, e2e.ErrNoDocker) {
		b.report.Note("e2e was not measured: %v", err)
		return nil
	}
	dir, err := os.MkdirTemp("", "plimsoll-e2e-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	site, err := e2e.Start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			b.logf("%s", site.Logs())
		}
		err = errors.Join(err, site.Stop())
	}()
	before, _, err := site.Settle(ctx)
	if err != nil {
		return err
	}
	owner, err := site.Owner(ctx, nil)
	if err != nil {
		return err
	}
	standby, err := otherThan(site.Replicas(), owner)
	if err != nil {
		return err
	}
	reconciled, err := standby.Reconciles(ctx)
	if err != nil {
		return err
	}
	killed := time.Now()
	if err := site.Kill(ctx, owner); err != nil {
		return err
	}
	err = fleet.Await(ctx, "the other replica to reconcile", func(ctx context.Context) (bool, error) {
		now, err := standby.Reconciles(ctx)
		return now > reconciled, err
	})
	if err != nil {
		return err
	}
	taken := time.Since(killed)
	after, converged, err := site.Settle(ctx)
	if err != nil {
		return err
	}
	b.report.Record("e2e-failover-s", taken.Seconds())
	b.report.Record("e2e-floor-breaks", float64(len(after.FloorBreaks)))
	b.report.Record("e2e-double-writes", float64(len(after.DoubleWrites)))
	b.report.Note("e2e: %d changes were acknowledged before the kill and %d after it; all members converged %.1f s after the load stopped; %s",
		before.Changes, after.Changes-before.Changes, converged.Seconds(), after)
	return after.Err()
}

// otherThan is the replica beside one of two.
func otherThan(replicas []*e2e.Replica, owner *e2e.Replica) (*e2e.Replica, error) {
	for _, r := range replicas {
		if r != owner {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s is the only replica", owner.Name)
}
