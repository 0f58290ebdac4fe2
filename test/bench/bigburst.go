package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// What the big burst asks for: 1,000 pods of many workloads in one member, which two replicas share and see late.
const (
	bigBurstWorkloads = 20
	bigBurstReplicas  = 50
	bigBurstPercent   = 70
	bigBurstFloor     = 5
	bigBurstDelay     = 3 * time.Second
)

// bigBurst makes 20 Deployments of 50 replicas at once, through two replicas of the hub whose watches are late.
func (b *bench) bigBurst(ctx context.Context) error {
	owner, standby, err := b.startPair(ctx, failoverSettings)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(owner.stop(ctx), standby.stop(ctx)) }()
	m := b.fleet.Members[0]
	namespace, err := m.NewNamespace(ctx, "big-burst", fleet.Enabled())
	if err != nil {
		return err
	}
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	m.Proxy.DelayWatches(bigBurstDelay)
	defer m.Proxy.DelayWatches(0)

	var wrong tally
	group, groupCtx := errgroup.WithContext(ctx)
	workloads := make([]*fleet.Workload, bigBurstWorkloads)
	for i := range workloads {
		group.Go(func() (err error) {
			workloads[i], err = b.bigBurstOne(groupCtx, m, namespace, fmt.Sprintf("web-%d", i), &wrong)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.Proxy.DelayWatches(0)
	for _, w := range workloads {
		if err := owner.api.Settle(ctx, w, bigBurstReplicas); err != nil {
			return err
		}
	}
	evictions, err := evictionsIn(workloads[0], mark) // of the namespace
	if err != nil {
		return err
	}
	b.report.Record("big-burst-mix-error", float64(wrong.mixError))
	b.report.Record("big-burst-evictions", float64(evictions))
	return b.discardAll(ctx, workloads)
}

// bigBurstOne makes one workload, and breaks the run if its floor was not kept at a moment at which all its replicas were there.
func (b *bench) bigBurstOne(ctx context.Context, m *fleet.Member, namespace, name string, wrong *tally) (*fleet.Workload, error) {
	deployment := fleet.Deployment(namespace, name, 0, fleet.Policy(bigBurstPercent, bigBurstFloor))
	w, err := m.Create(ctx, deployment)
	if err != nil {
		return nil, err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return nil, err
	}
	defer history.Stop()
	if err := w.Scale(ctx, bigBurstReplicas); err != nil {
		return nil, err
	}
	mix, err := w.AwaitReady(ctx, bigBurstReplicas)
	if err != nil {
		return nil, err
	}
	if err := history.AwaitMix(ctx, mix); err != nil { // the list may be ahead of the watch
		return nil, err
	}
	moments, err := history.Moments()
	if err != nil {
		return nil, fmt.Errorf("the floor was not watched to the end: %w", err)
	}
	for _, moment := range moments {
		if moment.Mix.All() >= bigBurstReplicas && moment.Mix.OnDemand < bigBurstFloor {
			return nil, fmt.Errorf("%s: %s is below the floor of %d", w, moment.Mix, bigBurstFloor)
		}
	}
	off := mixError(mix, bigBurstReplicas, bigBurstPercent, bigBurstFloor)
	if off > 0 {
		b.logf("%s: %s", w, mix)
	}
	wrong.add(off, 0)
	return w, nil
}

// discardAll removes workloads of one namespace.
func (b *bench) discardAll(ctx context.Context, workloads []*fleet.Workload) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range workloads {
		group.Go(func() error { return discard(ctx, w) })
	}
	return group.Wait()
}
