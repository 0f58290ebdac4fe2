package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What the mass run has: 10,000 pods of 500 workloads in one member. The policy of every other workload changes so that 12 of
// its 20 replicas move, which is 3,000.
const (
	massWorkloads  = 500
	massReplicas   = 20
	massPerSpace   = 50
	massBefore     = 70
	massAfter      = 10
	massFloor      = 1
	massBudget     = "20%" // of a workload's replicas may be missing
	massNodes      = 50    // of each capacity type
	massNodePods   = 250
	massAtOnce     = 16
	massBuildLimit = 15 * time.Minute
)

// massMoves changes the policies of 250 workloads at once in a member with 500.
func (b *bench) massMoves(ctx context.Context) (err error) {
	m, err := b.massMember(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.dismiss(m)) }()
	hub, api, err := b.startReplica(ctx, byDefault)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stopReplica(context.WithoutCancel(ctx), hub, api)) }()
	if err := api.AwaitMembers(ctx, m); err != nil {
		return err
	}
	workloads, err := b.massWorkloads(ctx, m)
	if err != nil {
		return err
	}
	if err := b.massSettle(ctx, api, workloads); err != nil {
		return err
	}
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.massChange(ctx, workloads); err != nil {
		return err
	}
	if err := awaitMoves(ctx, workloads); err != nil {
		return err
	}
	b.report.Record("mass-moves-s", time.Since(began).Seconds())
	return b.massFigures(ctx, m, hub, mark)
}

// massMember starts a member that has room for 10,000 pods, and registers it.
func (b *bench) massMember(ctx context.Context) (*fleet.Member, error) {
	b.logf("start a member with room for %d pods", massWorkloads*massReplicas)
	m, err := b.fleet.StartMember(ctx, kube.Options{Name: "mass"})
	if err != nil {
		return nil, err
	}
	for _, capacity := range []string{kube.Spot, kube.OnDemand} {
		if _, err := m.Cluster.AddNodes(ctx, massNodes, kube.NodeSpec{Capacity: capacity, Pods: massNodePods, CPU: "640"}); err != nil {
			return nil, errors.Join(err, b.dismiss(m))
		}
	}
	if err := b.fleet.Register(ctx, m); err != nil {
		return nil, errors.Join(err, b.dismiss(m))
	}
	return m, nil
}

// dismiss takes a member out of the fleet.
func (b *bench) dismiss(m *fleet.Member) error {
	return errors.Join(b.fleet.Unregister(context.Background(), m), b.fleet.StopMember(m))
}

// massWorkloads makes the workloads with their budgets and waits until their pods are there.
func (b *bench) massWorkloads(ctx context.Context, m *fleet.Member) ([]*fleet.Workload, error) {
	b.logf("create %d workloads of %d replicas", massWorkloads, massReplicas)
	workloads := make([]*fleet.Workload, massWorkloads)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(massAtOnce)
	namespace := ""
	for i := range workloads {
		if i%massPerSpace == 0 {
			var err error
			if namespace, err = m.NewNamespace(ctx, "mass", fleet.Enabled()); err != nil {
				return nil, errors.Join(err, group.Wait())
			}
		}
		group.Go(func() (err error) {
			workloads[i], err = massWorkload(ctx, m, namespace, fmt.Sprintf("web-%03d", i))
			return err
		})
	}
	return workloads, group.Wait()
}

func massWorkload(ctx context.Context, m *fleet.Member, namespace, name string) (*fleet.Workload, error) {
	missing := intstr.FromString(massBudget)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &missing, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: name}},
		},
	}
	if err := m.Client().Create(ctx, budget); err != nil {
		return nil, fmt.Errorf("create a disruption budget: %w", err)
	}
	return m.Create(ctx, fleet.Deployment(namespace, name, massReplicas, fleet.Policy(massBefore, massFloor)))
}

// massSettle waits until the hub has nothing left to do.
func (b *bench) massSettle(ctx context.Context, api *fleet.API, workloads []*fleet.Workload) error {
	ctx, cancel := context.WithTimeout(ctx, massBuildLimit)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2) // each polls the API
	for _, w := range workloads {
		group.Go(func() error { return api.Settle(ctx, w, massReplicas) })
	}
	return group.Wait()
}

// massChange changes the policy of every other workload.
func (b *bench) massChange(ctx context.Context, workloads []*fleet.Workload) error {
	b.logf("change the policies of half of them")
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(massAtOnce)
	for i := 0; i < len(workloads); i += 2 {
		group.Go(func() error { return workloads[i].Annotate(ctx, fleet.Policy(massAfter, massFloor)) })
	}
	return group.Wait()
}

// awaitMoves waits until all replicas of the changed workloads are ready where they belong.
func awaitMoves(ctx context.Context, workloads []*fleet.Workload) error {
	spot, onDemand := fleet.Want(massReplicas, massAfter, massFloor)
	for i := 0; i < len(workloads); i += 2 { // one after the other, so that asking costs the member little
		if err := workloads[i].AwaitMix(ctx, spot, onDemand); err != nil {
			return err
		}
	}
	return nil
}

// massFigures checks what was promised and records the hub's own figures.
func (b *bench) massFigures(ctx context.Context, m *fleet.Member, hub *fleet.Process, mark kube.Mark) error {
	audit := m.Cluster.Audit()
	moves, err := audit.Since(mark, kube.Evictions, fleet.ByHub)
	if err != nil {
		return err
	}
	deleted, err := audit.Since(mark, fleet.ByHub, kube.ByVerb("delete", "deletecollection"))
	if err != nil {
		return err
	}
	before, _ := fleet.Want(massReplicas, massBefore, massFloor)
	after, _ := fleet.Want(massReplicas, massAfter, massFloor)
	wanted := massWorkloads / 2 * (before - after)
	switch {
	case len(moves) != wanted:
		return fmt.Errorf("%d replicas were evicted where %d had to move", len(moves), wanted)
	case len(deleted) > 0:
		return fmt.Errorf("the hub deleted %d objects, past the disruption budgets", len(deleted))
	}
	bytes, err := hub.RSS()
	if err != nil {
		return err
	}
	samples, err := hub.Samples(ctx)
	if err != nil {
		return err
	}
	b.report.Record("mass-rss-mb", float64(bytes)/1e6)
	all := func(fleet.Sample) bool { return true }
	b.report.Record("plan-p99-ms", 1000*fleet.Quantile(samples["plimsoll_plan_seconds_bucket"], 0.99, all))
	return nil
}
