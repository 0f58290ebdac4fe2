package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	// droughtMember loses its spot nodes, and gets them back.
	droughtMember = "prod-eu"
	// droughtAfter is how long after the changed policy that is, and droughtLasts how long it is without.
	droughtAfter = 30 * time.Second
	droughtLasts = 30 * time.Second
)

// takeSpotNodes takes all spot nodes of the member away, as a cloud does, with the pods on them.
func (d *demo) takeSpotNodes(ctx context.Context) error { return d.takeSpotNodesOf(ctx, droughtMember) }

func (d *demo) takeSpotNodesOf(ctx context.Context, name string) error {
	member, err := d.member(name)
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := member.Client().List(ctx, &nodes, client.MatchingLabels{kube.CapacityLabel: kube.Spot}); err != nil {
		return fmt.Errorf("%s: list the spot nodes: %w", name, err)
	}
	names := make([]string, len(nodes.Items))
	for i := range nodes.Items {
		names[i] = nodes.Items[i].Name
	}
	return member.RemoveNodes(ctx, names...)
}

// giveSpotNodes adds as many as the member had at the start.
func (d *demo) giveSpotNodes(ctx context.Context) error { return d.giveSpotNodesTo(ctx, droughtMember) }

func (d *demo) giveSpotNodesTo(ctx context.Context, name string) error {
	member, err := d.member(name)
	if err != nil {
		return err
	}
	_, err = member.AddNodes(ctx, spotNodes, kube.NodeSpec{Capacity: kube.Spot})
	return err
}

// drought checks that replicas do not wait for spot capacity that is gone, and return when it is there again.
func (c *checks) drought(ctx context.Context) {
	var there []sample
	for _, s := range samples {
		if s.member == droughtMember {
			if s.name == "web" {
				s.percent = changedPercent // by a check before
			}
			there = append(there, s)
		}
	}
	c.check(ctx, "without spot nodes, all replicas of "+droughtMember+" run on-demand", func(ctx context.Context) (string, error) {
		if err := c.takeSpotNodes(ctx); err != nil {
			return "", err
		}
		n := 0
		for _, s := range there {
			s.percent = 0
			if err := c.awaitMix(ctx, s, s.replicas); err != nil {
				return "", err
			}
			n += s.replicas
		}
		return fmt.Sprintf("%d replicas", n), nil
	})
	c.check(ctx, "when the spot nodes are back, they return", func(ctx context.Context) (string, error) {
		if err := c.giveSpotNodes(ctx); err != nil {
			return "", err
		}
		for _, s := range there {
			if err := c.awaitMix(ctx, s, s.replicas); err != nil {
				return "", err
			}
		}
		return "the mix of every workload is back", nil
	})
}
