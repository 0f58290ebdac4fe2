package main

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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
	for i, m := range b.fleet.Members {
		var err error
		if marks[i], err = m.Cluster.Audit().Mark(); err != nil {
			return err
		}
		namespace, err := m.NewNamespace(ctx, "idle", fleet.Enabled())
		if err != nil {
			return err
		}
		for number := range idleWorkloads {
			w, err := m.Create(ctx, fleet.Deployment(namespace, fmt.Sprintf("web-%d", number), idleReplicas, fleet.Policy(burstPercent, burstFloor)))
			if err != nil {
				return err
			}
			workloads = append(workloads, w)
			if err := m.Client().Create(ctx, budgetOf(w)); err != nil {
				return err
			}
		}
	}
	for _, w := range workloads {
		if err := b.api.Settle(ctx, w, idleReplicas); err != nil {
			return err
		}
	}
	for i, m := range b.fleet.Members {
		if err := awaitEvents(ctx, m, marks[i]); err != nil {
			return err
		}
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
			b.report.Note("idle: member %s: %s %s of %s/%s", m.Name, write.Verb, write.Resource, write.Namespace, write.Name)
		}
		writes += len(found)
	}
	b.report.Record("idle-writes", float64(writes))
	return b.discardAll(ctx, workloads)
}

// budgetOf keeps others from the floor, as the documentation advises: the hub warns of workloads without one, a minute after they came.
func budgetOf(w *fleet.Workload) *policyv1.PodDisruptionBudget {
	floor := intstr.FromInt32(burstFloor)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &floor, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: w.Name}}},
	}
}

// awaitEvents waits until the hub has recorded an Event for each workload that came since the mark: these are written a little later.
func awaitEvents(ctx context.Context, m *fleet.Member, since kube.Mark) error {
	return fleet.Await(ctx, "the Events of the new workloads in "+m.Name, func(context.Context) (bool, error) {
		found, err := m.Cluster.Audit().Since(since, fleet.ByHub, kube.Writes)
		if err != nil {
			return false, err
		}
		events := 0
		for _, write := range found {
			if write.Resource == "events" {
				events++
			}
		}
		return events >= idleWorkloads, nil
	})
}
