package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What a burst asks for.
const (
	burstReplicas = 100
	burstPercent  = 70
	burstFloor    = 1
	watchDelay    = 2 * time.Second
)

// A tally adds up what went wrong, over members and rounds.
type tally struct {
	mu        sync.Mutex
	mixError  int
	evictions int
}

func (t *tally) add(mixError, evictions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mixError += mixError
	t.evictions += evictions
}

// burst makes a Deployment of 100 replicas in each of three members at once, then again with watches that are late.
func (b *bench) burst(ctx context.Context) error {
	var wrong tally
	for _, delay := range []time.Duration{0, watchDelay} {
		b.logf("burst of %d pods in each member, watches delayed by %s", burstReplicas, delay)
		b.delayWatches(delay)
		err := b.eachMember(ctx, func(ctx context.Context, m *fleet.Member) error { return b.burstIn(ctx, m, &wrong) })
		b.delayWatches(0)
		if err != nil {
			return err
		}
	}
	b.report.Record("burst-mix-error", float64(wrong.mixError))
	b.report.Record("burst-evictions", float64(wrong.evictions))
	return b.noteUnplaced(ctx)
}

// noteUnplaced reports admissions after which a pod was let through without a place, in the hub's own words for why.
func (b *bench) noteUnplaced(ctx context.Context) error {
	samples, err := b.hub.Samples(ctx)
	if err != nil {
		return err
	}
	for _, sample := range samples["plimsoll_admissions_total"] {
		if sample.Value > 0 && !sample.Has("outcome", "spot") && !sample.Has("outcome", "on_demand") {
			b.report.Note("burst: %.0f pods were admitted without a decision: %s", sample.Value, sample.Labels)
		}
	}
	return nil
}

func (b *bench) delayWatches(d time.Duration) {
	for _, m := range b.fleet.Members {
		m.Proxy.DelayWatches(d)
	}
}

// burstIn does it in one member, and cleans up.
func (b *bench) burstIn(ctx context.Context, m *fleet.Member, wrong *tally) error {
	namespace, err := m.NewNamespace(ctx, "burst", fleet.Enabled())
	if err != nil {
		return err
	}
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", burstReplicas, fleet.Policy(burstPercent, burstFloor)))
	if err != nil {
		return err
	}
	mix, err := w.AwaitReady(ctx, burstReplicas)
	if err != nil {
		return err
	}
	off := mixError(mix, burstReplicas, burstPercent, burstFloor)
	if off > 0 {
		b.logf("%s: %s", w, mix)
	}
	if err := b.api.Settle(ctx, w, burstReplicas); err != nil {
		return err
	}
	evictions, err := evictionsIn(w, mark)
	if err != nil {
		return err
	}
	wrong.add(off, evictions)
	return discard(ctx, w)
}

// mixError is how many replicas are not where the formula wants them.
func mixError(mix fleet.Mix, replicas, percent, floor int) int {
	spot, onDemand := fleet.Want(replicas, percent, floor)
	return max(spot-mix.Spot, 0) + max(onDemand-mix.OnDemand, 0)
}

// evictionsIn counts the evictions in a workload's namespace since the mark, whoever asked for them.
func evictionsIn(w *fleet.Workload, mark kube.Mark) (int, error) {
	events, err := w.Member.Cluster.Audit().Since(mark, kube.Evictions, kube.InNamespace(w.Namespace))
	return len(events), err
}

// discard removes a workload and waits until its pods have gone, so that the next run has the machine for itself.
func discard(ctx context.Context, w *fleet.Workload) error {
	if err := w.Delete(ctx); err != nil {
		return err
	}
	err := fleet.Await(ctx, "the pods of "+w.String()+" to go", func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are there", len(pods))
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return w.Member.DeleteNamespace(ctx, w.Namespace)
}
