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

// What the policy run asks for: a floor that a careless hub would go below, and a budget that a careless one would pass.
const (
	policyReplicas = 100
	policyBefore   = 70
	policyAfter    = 30
	policyFloor    = 20
	policyBudget   = 10 // percent of the replicas that may be missing
)

// policyGoal is the mix that the change asks for.
var policyGoal = fleet.Mix{Spot: policyAfter, OnDemand: policyReplicas - policyAfter, Ready: policyReplicas}

// policy changes the wanted share of 100 ready replicas and waits until they are where they belong.
func (b *bench) policy(ctx context.Context) error {
	m := b.fleet.Members[0]
	namespace, err := m.NewNamespace(ctx, "policy", fleet.Enabled())
	if err != nil {
		return err
	}
	if err := m.Client().Create(ctx, budget(namespace)); err != nil {
		return fmt.Errorf("create a disruption budget: %w", err)
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", policyReplicas, fleet.Policy(policyBefore, policyFloor)))
	if err != nil {
		return err
	}
	if err := b.api.Settle(ctx, w, policyReplicas); err != nil {
		return err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return err
	}
	defer history.Stop()
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	if err := w.Annotate(ctx, fleet.Policy(policyAfter, policyFloor)); err != nil {
		return err
	}
	changed := time.Now()
	if err := history.AwaitMix(ctx, policyGoal); err != nil {
		return err
	}
	if err := b.policyTimes(w, history, mark, changed); err != nil {
		return err
	}
	return discard(ctx, w)
}

func budget(namespace string) *policyv1.PodDisruptionBudget {
	missing := intstr.FromString(fmt.Sprintf("%d%%", policyBudget))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &missing,
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: "web"}},
		},
	}
}

// policyTimes reads the times from the audit log and the watch. A hub that broke a promise on the way has no figures.
func (b *bench) policyTimes(w *fleet.Workload, history *fleet.History, mark kube.Mark, changed time.Time) error {
	audit := w.Member.Cluster.Audit()
	moves, err := audit.Since(mark, kube.Evictions, kube.InNamespace(w.Namespace), fleet.ByHub)
	if err != nil {
		return err
	}
	deleted, err := audit.Since(mark, fleet.ByHub, kube.ByVerb("delete", "deletecollection"))
	if err != nil {
		return err
	}
	moments, err := history.Moments()
	if err != nil {
		return err
	}
	switch {
	case len(moves) != policyBefore-policyAfter:
		return fmt.Errorf("%d replicas were evicted where %d had to move", len(moves), policyBefore-policyAfter)
	case len(deleted) > 0:
		return fmt.Errorf("the hub deleted %d objects, past the disruption budget", len(deleted))
	}
	var done time.Time
	for _, moment := range moments {
		if moment.Mix.OnDemand < policyFloor {
			return fmt.Errorf("%s is below the floor of %d", moment.Mix, policyFloor)
		}
		if done.IsZero() && moment.Mix == policyGoal {
			done = moment.At
		}
	}
	b.report.Record("policy-first-move-s", moves[0].Received.Sub(changed).Seconds())
	b.report.Record("policy-done-s", done.Sub(changed).Seconds())
	return nil
}
