package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// interruptionReplicas are all on the node that goes.
const interruptionReplicas = 20

// goes is how AWS Node Termination Handler says that a node goes within two minutes; shut keeps pods from a node for a moment.
var (
	goes = corev1.Taint{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectNoSchedule}
	shut = corev1.Taint{Key: "bench.plimsoll.dev/shut", Effect: corev1.TaintEffectNoSchedule}
)

// interruption says of a node with 20 replicas that it goes, and waits until as many replacements exist.
func (b *bench) interruption(ctx context.Context) error {
	m := b.fleet.Members[1]
	nodes, err := m.NodesOf(ctx, kube.Spot)
	if err != nil {
		return err
	}
	node, others := nodes[0], nodes[1:]
	if err := m.Cluster.TaintNodes(ctx, shut, others...); err != nil {
		return err
	}
	w, err := b.interruptionWorkload(ctx, m)
	if err := errors.Join(err, m.Cluster.UntaintNodes(ctx, shut.Key, others...)); err != nil {
		return err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return err
	}
	defer history.Stop()
	said := time.Now()
	if err := m.Cluster.TaintNodes(ctx, goes, node); err != nil {
		return err
	}
	var replaced time.Time
	err = fleet.Await(ctx, "the replicas of "+node+" to be replaced", func(context.Context) (done bool, err error) {
		moments, err := history.Moments()
		replaced, done = allReplaced(moments, interruptionReplicas)
		return done, err
	})
	if err != nil {
		return err
	}
	b.report.Record("interruption-replaced-s", replaced.Sub(said).Seconds())
	return errors.Join(m.Cluster.UntaintNodes(ctx, goes.Key, node), discard(ctx, w))
}

func (b *bench) interruptionWorkload(ctx context.Context, m *fleet.Member) (*fleet.Workload, error) {
	namespace, err := m.NewNamespace(ctx, "interruption", fleet.Enabled())
	if err != nil {
		return nil, err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", interruptionReplicas, fleet.Policy(100, 0)))
	if err != nil {
		return nil, err
	}
	return w, b.api.Settle(ctx, w, interruptionReplicas)
}

// allReplaced returns when so many replicas had left, and as many were there again.
func allReplaced(moments []fleet.Moment, replicas int) (time.Time, bool) {
	left := 0
	for _, moment := range moments {
		if moment.Left {
			left++
		}
		if left >= replicas && moment.Mix.All() >= replicas {
			return moment.At, true
		}
	}
	return time.Time{}, false
}
