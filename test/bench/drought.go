package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What the drought run has: 200 replicas on spot, all of which lose their nodes, in a hub as it is by default.
const (
	droughtReplicas = 200
	droughtPods     = 250 // that fit on a node
)

// drought takes all spot nodes of a member away, waits until their replicas run on-demand, and gives the nodes back.
func (b *bench) drought(ctx context.Context) error {
	m := b.fleet.Members[2]
	namespace, err := m.NewNamespace(ctx, "drought", fleet.Enabled())
	if err != nil {
		return err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", droughtReplicas, fleet.Policy(100, 0)))
	if err != nil {
		return err
	}
	if err := b.api.Settle(ctx, w, droughtReplicas); err != nil {
		return err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return err
	}
	defer history.Stop()

	began := time.Now()
	nodes, err := m.TakeAway(ctx, kube.Spot)
	if err != nil {
		return err
	}
	taken := time.Now()
	if err := history.AwaitMix(ctx, fleet.Mix{OnDemand: droughtReplicas, Ready: droughtReplicas}); err != nil {
		return errors.Join(err, b.giveBack(m, nodes))
	}
	b.report.Record("drought-covered-s", time.Since(began).Seconds())
	bound, err := b.awaitProbe(ctx, m, nodes)
	if err != nil {
		return err
	}
	if err := history.AwaitMix(ctx, fleet.Mix{Spot: droughtReplicas, Ready: droughtReplicas}); err != nil {
		return err
	}
	b.report.Record("drought-return-s", time.Since(bound).Seconds())
	evicted, err := readyThatLeft(history, taken, bound)
	if err != nil {
		return err
	}
	b.report.Record("drought-ready-evictions", float64(evicted))
	return discard(ctx, w)
}

func (b *bench) giveBack(m *fleet.Member, nodes int) error {
	_, err := m.Cluster.AddNodes(context.Background(), nodes, kube.NodeSpec{Capacity: kube.Spot, Pods: droughtPods})
	return err
}

// awaitProbe gives the nodes back, and returns when the first probe was bound to one of them.
func (b *bench) awaitProbe(ctx context.Context, m *fleet.Member, nodes int) (time.Time, error) {
	watcher, err := client.NewWithWatch(m.Cluster.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return time.Time{}, err
	}
	events, err := watcher.Watch(ctx, &corev1.PodList{}, client.InNamespace(fleet.Namespace))
	if err != nil {
		return time.Time{}, err
	}
	defer events.Stop()
	if err := b.giveBack(m, nodes); err != nil {
		return time.Time{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for a probe to be bound: %w", ctx.Err())
		case event, open := <-events.ResultChan():
			if !open {
				return time.Time{}, errors.New("wait for a probe to be bound: the watch has ended")
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				return time.Now(), nil
			}
		}
	}
}

// readyThatLeft counts the pods that were ready and left between two times.
func readyThatLeft(history *fleet.History, from, to time.Time) (int, error) {
	moments, err := history.Moments()
	n := 0
	for _, moment := range moments {
		if moment.Left && moment.WasReady && moment.At.After(from) && moment.At.Before(to) {
			n++
		}
	}
	return n, err
}
