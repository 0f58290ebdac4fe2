package main

import (
	"context"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// escapes counts what somebody with the hub's token could do in a member beyond the hub's own work.
func (b *bench) escapes(ctx context.Context) error {
	m := b.fleet.Members[0]
	if err := m.InstallWebApps(ctx); err != nil {
		return err
	}
	if err := m.PrepareEscapes(ctx); err != nil {
		return err
	}
	if err := fleet.Await(ctx, "what the hub writes into the member", m.AsksHub); err != nil {
		return err
	}
	kubeconfig, err := m.DirectKubeconfig(ctx)
	if err != nil {
		return err
	}
	became, err := fleet.TryEscapes(ctx, kubeconfig, fleet.Escapes())
	if err != nil {
		return err
	}
	worked := 0
	for name, err := range became {
		if !fleet.Refused(err) {
			worked++
			b.logf("escape: %s: %v", name, err)
		}
	}
	b.logf("%d of %d escapes worked", worked, len(became))
	b.report.Record("hostile-escapes", float64(worked))
	return nil
}
