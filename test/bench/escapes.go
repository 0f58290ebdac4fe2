package main

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/webhook"
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
	err := fleet.Await(ctx, "the hub's webhook configuration", func(ctx context.Context) (bool, error) {
		var written admissionregistrationv1.MutatingWebhookConfiguration
		err := m.Client().Get(ctx, client.ObjectKey{Name: webhook.ConfigurationName}, &written)
		return len(written.Webhooks) > 0, err
	})
	if err != nil {
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
