package main

import (
	"context"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// scaleStops are the numbers of replicas that a Deployment is taken through, ready at each.
var scaleStops = []int{100, 37, 80, 5}

// scale takes a Deployment in each member up and down: whatever the number, the mix must come without one eviction.
func (b *bench) scale(ctx context.Context) error {
	var wrong tally
	err := b.eachMember(ctx, func(ctx context.Context, m *fleet.Member) error { return b.scaleIn(ctx, m, &wrong) })
	if err != nil {
		return err
	}
	b.report.Record("scale-mix-error", float64(wrong.mixError))
	b.report.Record("scale-evictions", float64(wrong.evictions))
	return nil
}

func (b *bench) scaleIn(ctx context.Context, m *fleet.Member, wrong *tally) error {
	namespace, err := m.NewNamespace(ctx, "scale", fleet.Enabled())
	if err != nil {
		return err
	}
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", 0, fleet.Policy(burstPercent, burstFloor)))
	if err != nil {
		return err
	}
	for _, replicas := range scaleStops {
		if err := w.Scale(ctx, replicas); err != nil {
			return err
		}
		mix, err := w.AwaitReady(ctx, replicas)
		if err != nil {
			return err
		}
		off := mixError(mix, replicas, burstPercent, burstFloor)
		if off > 0 {
			b.logf("%s: %s", w, mix)
		}
		wrong.add(off, 0)
	}
	if err := b.api.Settle(ctx, w, scaleStops[len(scaleStops)-1]); err != nil {
		return err
	}
	evictions, err := evictionsIn(w, mark)
	if err != nil {
		return err
	}
	wrong.add(0, evictions)
	return discard(ctx, w)
}
