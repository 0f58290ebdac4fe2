package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// What overfleet/placement.yaml asks for.
const (
	overFleetNamespace = "catalog"
	overFleetReplicas  = 12
	overFleetFloor     = 3
)

const (
	// dryMember loses its spot nodes while a workload is placed over the fleet, and lostMember answers nothing for a while.
	dryMember  = "prod-us"
	lostMember = "staging"
	// overFleetStep is how long each step of the tour over the fleet lasts.
	overFleetStep = 25 * time.Second
)

// overFleetPage is where the commands of this part stand: people paste them from there, and the demo runs them as they stand.
const overFleetPage = "docs/fleet.md"

// overFleetLines are the commands of a block of the page, which begins with a line that is a comment.
func overFleetLines(heading string) ([]string, error) {
	page, err := os.ReadFile(overFleetPage)
	if err != nil {
		return nil, err
	}
	_, after, found := strings.Cut(string(page), "# "+heading+"\n")
	block, _, ends := strings.Cut(after, "```")
	if !found || !ends {
		return nil, fmt.Errorf("%s has no commands for %q", overFleetPage, heading)
	}
	return strings.Split(strings.TrimSpace(block), "\n"), nil
}

// overFleetRun runs the commands of a block, and returns what the last one said.
func (d *demo) overFleetRun(ctx context.Context, heading string) (said string, err error) {
	lines, err := overFleetLines(heading)
	for _, line := range lines {
		if err == nil {
			said, _, err = run(ctx, strings.TrimSpace(line))
		}
	}
	return said, err
}

// The headings of the blocks.
const (
	overFleetDeliver = "deliver it to every member, and place it"
	overFleetSee     = "see where it runs, and why"
	overFleetEnd     = "take it back"
)

// overFleetTour is what the demo does by itself with a workload over the fleet.
func (d *demo) overFleetTour() []stop {
	deliver := func(ctx context.Context) error {
		_, err := d.overFleetRun(ctx, overFleetDeliver)
		return err
	}
	return []stop{
		{overFleetStep, "The demo has placed catalog over the fleet: 12 replicas in all members.", deliver},
		{overFleetStep, "The demo has removed the spot nodes of " + dryMember + ": catalog runs on spot in other members.", func(ctx context.Context) error { return d.takeSpotNodesOf(ctx, dryMember) }},
		{overFleetStep, "The demo has added spot nodes to " + dryMember + " again: catalog returns.", func(ctx context.Context) error { return d.giveSpotNodesTo(ctx, dryMember) }},
		{overFleetStep, "The demo has " + lostMember + " time out: the other members replace its replicas.", func(context.Context) error { return d.loseMember() }},
		{2 * overFleetStep, "The demo has connected " + lostMember + " again: catalog returns to its plan.", func(context.Context) error { return d.findMember() }},
	}
}

// loseMember has a member's API server answer nothing. Its replicas go on running.
func (d *demo) loseMember() error {
	member, err := d.member(lostMember)
	if err != nil {
		return err
	}
	return member.HangAPIServer()
}

// findMember has it answer again.
func (d *demo) findMember() error {
	member, err := d.member(lostMember)
	if err != nil {
		return err
	}
	return member.ResumeAPIServer()
}

// overFleetSeen counts the replicas that are ready in some members, by the nodes that they run on.
func (d *demo) overFleetSeen(ctx context.Context, names ...string) (map[string]observed, observed, error) {
	seen, all := map[string]observed{}, observed{}
	for _, name := range names {
		member, err := d.member(name)
		if err != nil {
			return nil, all, err
		}
		var pods corev1.PodList
		if err := member.Client().List(ctx, &pods, client.InNamespace(overFleetNamespace)); err != nil {
			return nil, all, fmt.Errorf("%s: list pods: %w", name, err)
		}
		one := observed{}
		for i := range pods.Items {
			pod := &pods.Items[i]
			var node corev1.Node
			if pod.Spec.NodeName != "" {
				if err := member.Client().Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
					return nil, all, err
				}
			}
			switch where := node.Labels[kube.CapacityLabel]; {
			case pod.DeletionTimestamp != nil || !ready(pod):
				one.other++
			case where == kube.Spot:
				one.spot++
			case where == kube.OnDemand:
				one.onDemand++
			}
		}
		seen[name] = one
		all.spot, all.onDemand, all.other = all.spot+one.spot, all.onDemand+one.onDemand, all.other+one.other
	}
	return seen, all, nil
}

// awaitOverFleet waits until the replicas of some members are as they should be.
func (d *demo) awaitOverFleet(ctx context.Context, what string, holds func(map[string]observed, observed) bool, names ...string) (found string, err error) {
	err = await(ctx, what, func(ctx context.Context) error {
		seen, all, err := d.overFleetSeen(ctx, names...)
		if err != nil {
			return err
		}
		if found = fmt.Sprintf("%s; %v", all, seen); !holds(seen, all) {
			return fmt.Errorf("there are %s", found)
		}
		return nil
	})
	return found, err
}

// overFleet checks a workload over the fleet: placed, in a drought of one member, and without another member.
func (c *checks) overFleet(ctx context.Context) {
	exact := func(_ map[string]observed, all observed) bool {
		return all == observed{spot: overFleetReplicas - overFleetFloor, onDemand: overFleetFloor}
	}
	c.check(ctx, "a workload is placed over the fleet by the commands of "+overFleetPage, func(ctx context.Context) (string, error) {
		if _, err := c.overFleetRun(ctx, overFleetDeliver); err != nil {
			return "", err
		}
		return c.awaitOverFleet(ctx, "replicas in all members", exact, memberNames...)
	})
	c.check(ctx, "the FleetPlacement reports where its replicas run, and why", func(ctx context.Context) (string, error) {
		said, err := c.overFleetRun(ctx, overFleetSee)
		for _, name := range memberNames {
			if err == nil && !strings.Contains(said, name) {
				err = fmt.Errorf("it does not name %s: %s", name, said)
			}
		}
		return "", err
	})
	c.check(ctx, "without spot nodes in "+dryMember+", its replicas run on spot in other members", func(ctx context.Context) (string, error) {
		if err := c.takeSpotNodesOf(ctx, dryMember); err != nil {
			return "", err
		}
		return c.awaitOverFleet(ctx, "spot elsewhere", func(seen map[string]observed, all observed) bool {
			return seen[dryMember].spot == 0 && all.spot == overFleetReplicas-overFleetFloor && all.onDemand == overFleetFloor
		}, memberNames...)
	})
	c.check(ctx, "when the spot nodes are back, they return to "+dryMember, func(ctx context.Context) (string, error) {
		if err := c.giveSpotNodesTo(ctx, dryMember); err != nil {
			return "", err
		}
		return c.awaitOverFleet(ctx, "spot in "+dryMember, func(seen map[string]observed, all observed) bool { return seen[dryMember].spot > 0 && exact(seen, all) }, memberNames...)
	})
	c.check(ctx, "other members replace the replicas of a member that does not answer, until it answers again", func(ctx context.Context) (string, error) {
		if err := c.loseMember(); err != nil {
			return "", err
		}
		_, err := c.awaitOverFleet(ctx, "all replicas elsewhere", func(_ map[string]observed, all observed) bool { return all.spot+all.onDemand >= overFleetReplicas }, memberNames[:2]...)
		if err := errors.Join(err, c.findMember()); err != nil {
			return "", err
		}
		return c.awaitOverFleet(ctx, "the plan", exact, memberNames...)
	})
	c.check(ctx, "the commands of "+overFleetPage+" delete it", func(ctx context.Context) (string, error) {
		_, err := c.overFleetRun(ctx, overFleetEnd)
		return "", err
	})
}
