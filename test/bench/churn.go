package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const churnReplicas = 100

// churnCases are policies whose floor binds: every on-demand replica is one that may not be missing.
var churnCases = []struct{ percent, floor int }{{100, 20}, {70, 30}}

// churn evicts pods at random while creations are refused by a quota and by another webhook, and the hub sees everything
// two seconds late. It counts the moments at which the floor was broken by what the hub did.
func (b *bench) churn(ctx context.Context) error {
	m := b.fleet.Members[0]
	m.Proxy.DelayWatches(watchDelay)
	defer m.Proxy.DelayWatches(0)
	breaks := make([]int, len(churnCases))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, policy := range churnCases {
		group.Go(func() (err error) {
			breaks[i], err = b.churnOne(groupCtx, m, policy.percent, policy.floor)
			if err != nil {
				return fmt.Errorf("%d %% spot with a floor of %d: %w", policy.percent, policy.floor, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	sum := 0
	for _, n := range breaks {
		sum += n
	}
	b.report.Record("churn-floor-breaks", float64(sum))
	return nil
}

// churnOne is the churn of one workload, until it has settled with the mix that it should have.
func (b *bench) churnOne(ctx context.Context, m *fleet.Member, percent, floor int) (breaks int, err error) {
	namespace, err := m.NewNamespace(ctx, "churn", fleet.Enabled())
	if err != nil {
		return 0, err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", churnReplicas, fleet.Policy(percent, floor)))
	if err != nil {
		return 0, err
	}
	if err := b.api.Settle(ctx, w, churnReplicas); err != nil {
		return 0, err
	}
	churn := fleet.Churn{Workload: w, Replicas: churnReplicas, Floor: floor, Evictions: 500, AtOnce: 8, RejectOneIn: 5, Seed: 20}
	ordeal, err := churn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer ordeal.History.Stop()
	if err := ordeal.Run(ctx); err != nil {
		return 0, err
	}
	spot, onDemand := fleet.Want(churnReplicas, percent, floor)
	if err := ordeal.History.AwaitMix(ctx, fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: churnReplicas}); err != nil {
		return 0, fmt.Errorf("after the churn: %w", err)
	}
	if err := b.api.Settle(ctx, w, churnReplicas); err != nil {
		return 0, fmt.Errorf("after the churn: %w", err)
	}
	outcome, err := ordeal.Judge()
	if err != nil {
		return 0, err
	}
	for _, sentence := range outcome.Breaks {
		b.logf("%s: floor of %d broken: %s", w, floor, sentence)
	}
	b.report.Note("churn, floor %d: %d pods evicted by us and %d by the hub, %d creations refused; all replicas ready at %d times, then at least %d on-demand; at most %d pods without a slot",
		floor, churn.Evictions, outcome.ByHub, outcome.Refused, outcome.Whole, outcome.Lowest, outcome.Unplaced)
	return len(outcome.Breaks), discard(ctx, w)
}
