package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// setup takes everything to the point where the replicas are where they belong.
func (d *demo) setup(ctx context.Context) error {
	steps := []struct {
		doing, done string
		do          func(context.Context) error
	}{
		{"starting a hub cluster and three members", "hub cluster and three members run", d.startClusters},
		{"adding nodes", fmt.Sprintf("each member has %d spot and %d on-demand nodes", spotNodes, onDemandNodes), d.addNodes},
		{"starting plimsoll-hub", "plimsoll-hub runs; its log is " + hubLog, d.startHub},
	}
	for _, s := range steps {
		if err := d.screen.step(s.doing, func() (string, error) { return s.done, s.do(ctx) }); err != nil {
			return err
		}
	}
	if err := d.noteUntouched(ctx); err != nil {
		return err
	}
	for _, name := range memberNames {
		if err := d.register(ctx, name); err != nil {
			return err
		}
	}
	if err := d.screen.step("waiting for the members to be ready", func() (string, error) {
		return "all members are Ready", d.awaitReady(ctx)
	}); err != nil {
		return err
	}
	return d.screen.step("applying sample workloads", func() (string, error) {
		if err := d.apply(ctx); err != nil {
			return "", err
		}
		return d.settle(ctx)
	})
}

// awaitReady waits until the hub says of every member that it is ready.
func (d *demo) awaitReady(ctx context.Context) error {
	return await(ctx, "the members to be Ready", func(ctx context.Context) error {
		all, err := d.api.clusters(ctx)
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, c := range all {
			if c.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY {
				return fmt.Errorf("%s is %s: %s", c.GetName(), word(c.GetState().String(), "CLUSTER_STATE_"), c.GetMessage())
			}
			ready[c.GetName()] = true
		}
		for _, name := range memberNames {
			if !ready[name] {
				return fmt.Errorf("%s is not listed", name)
			}
		}
		return nil
	})
}

// apply applies the manifests in all members at once: a burst of new pods.
func (d *demo) apply(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range memberNames {
		content, err := manifests.ReadFile("workloads/" + name + ".yaml")
		if err != nil {
			return err
		}
		path := folder + "/" + name + ".yaml"
		if err := keep(path, content); err != nil {
			return err
		}
		group.Go(func() error {
			_, _, err := run(ctx, kubectl+" --kubeconfig "+kubeconfig(name)+" apply -f "+path)
			return err
		})
	}
	return group.Wait()
}

// settle waits until every replica of every sample is ready where it belongs, and says what that took.
func (d *demo) settle(ctx context.Context) (string, error) {
	replicas := 0
	for _, s := range samples {
		replicas += s.replicas
		if err := d.awaitMix(ctx, s, s.replicas); err != nil {
			return "", err
		}
	}
	evicted, err := d.allEvictions()
	return fmt.Sprintf("%d replicas of %d workloads run where they belong, after %d evictions", replicas, len(samples), evicted), err
}
