package main

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What the idle run has in each member, and for how long nothing may be written.
const (
	idleWorkloads = 5
	idleReplicas  = 20
	idleTime      = 5 * time.Minute
)

// idle counts what the hub writes while nothing happens, Events included.
func (b *bench) idle(ctx context.Context) error {
	var workloads []*fleet.Workload
	marks := make([]kube.Mark, len(b.fleet.Members))
	for _, m := range b.fleet.Members {
		namespace, err := m.NewNamespace(ctx, "idle", fleet.Enabled())
		if err != nil {
			return err
		}
		for i := range idleWorkloads {
			w, err := m.Create(ctx, fleet.Deployment(namespace, fmt.Sprintf("web-%d", i), idleReplicas, fleet.Policy(burstPercent, burstFloor)))
			if err != nil {
				return err
			}
			workloads = append(workloads, w)
		}
	}
	for _, w := range workloads {
		if err := b.api.Settle(ctx, w, idleReplicas); err != nil {
			return err
		}
	}
	for i, m := range b.fleet.Members {
		var err error
		if marks[i], err = m.Cluster.Audit().Mark(); err != nil {
			return err
		}
	}
	b.logf("nothing happens for %s", idleTime)
	select {
	case <-time.After(idleTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	writes := 0
	for i, m := range b.fleet.Members {
		found, err := m.Cluster.Audit().Since(marks[i], fleet.ByHub, kube.Writes)
		if err != nil {
			return err
		}
		for _, write := range found {
			b.report.note("idle: member %s: %s %s of %s/%s", m.Name, write.Verb, write.Resource, write.Namespace, write.Name)
		}
		writes += len(found)
	}
	b.report.record("idle-writes", float64(writes))
	return b.discardAll(ctx, workloads)
}
