package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// Nodes of each member. Each takes 110 pods.
const (
	spotNodes     = 3
	onDemandNodes = 2
)

// podTime is how long a pod takes to start and to stop: long enough to be seen moving.
const podTime = 500 * time.Millisecond

// startClusters starts the hub cluster and the members, all at once, and leaves kubeconfigs for the printed lines.
func (d *demo) startClusters(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		// Nothing runs in the hub cluster: the hub is a process beside it.
		d.hubCluster, err = kube.Start(groupCtx, kube.Options{Name: "hub", Minimal: true})
		return err
	})
	group.Go(func() (err error) {
		d.members, err = kube.StartFleet(groupCtx, memberNames, kube.Options{PodStart: podTime, PodStop: podTime})
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, c := range d.clusters() {
		if err := keep(kubeconfig(c.Name()), c.Kubeconfig()); err != nil {
			return err
		}
	}
	return nil
}

// addNodes gives every member spot and on-demand nodes.
func (d *demo) addNodes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, member := range d.members {
		for capacity, n := range map[string]int{kube.Spot: spotNodes, kube.OnDemand: onDemandNodes} {
			group.Go(func() error {
				_, err := member.AddNodes(ctx, n, kube.NodeSpec{Capacity: capacity})
				return err
			})
		}
	}
	return group.Wait()
}

// clusters are those that run: the hub's first, then the members.
func (d *demo) clusters() []*kube.Cluster {
	var all []*kube.Cluster
	for _, c := range append([]*kube.Cluster{d.hubCluster}, d.members...) {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// member finds a member by its name.
func (d *demo) member(name string) (*kube.Cluster, error) {
	for _, m := range d.members {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the demo has no member %q", name)
}

// evictions are how many pods were evicted in a member, by its API server's audit log.
func evictions(member *kube.Cluster) (int, error) {
	events, err := member.Audit().Events(kube.Evictions)
	if err != nil {
		return 0, err
	}
	return len(events), nil
}

// allEvictions are how many pods were evicted in all members.
func (d *demo) allEvictions() (total int, err error) {
	for _, member := range d.members {
		n, err := evictions(member)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
