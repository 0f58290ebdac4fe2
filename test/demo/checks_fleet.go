package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// members checks that the hub takes every member for ready.
func (c *checks) members(ctx context.Context) {
	for _, name := range memberNames {
		c.check(ctx, "member "+name+" is Ready", func(ctx context.Context) (string, error) {
			all, err := c.api.clusters(ctx)
			if err != nil {
				return "", err
			}
			for _, found := range all {
				if found.GetName() == name && found.GetState() == plimsollv1.ClusterState_CLUSTER_STATE_READY {
					return fmt.Sprintf("Kubernetes %s, %d workloads", found.GetKubernetesVersion(), found.GetWorkloads().GetManaged()), nil
				}
			}
			return "", fmt.Errorf("it is not: the hub reports %v", all)
		})
	}
}

// burst checks where the samples' replicas came to be, and that none was moved there.
func (c *checks) burst(ctx context.Context) {
	for _, s := range samples {
		c.check(ctx, s.String()+" is where its policy wants it", func(ctx context.Context) (string, error) {
			return c.awaitTold(ctx, s)
		})
	}
	c.check(ctx, "a Warning event in staging names the invalid annotation", c.warned)
	c.check(ctx, "the burst of new replicas was placed without an eviction", func(context.Context) (string, error) {
		return c.evicted(0, memberNames...)
	})
}

// mixInMember compares what is in the member with the formula.
func (c *checks) mixInMember(ctx context.Context, s sample) (string, error) {
	seen, err := c.observe(ctx, s)
	if err != nil {
		return "", err
	}
	wanted := s.spotWanted(seen.wanted)
	if seen.spot != wanted || seen.onDemand != seen.wanted-wanted {
		return "", fmt.Errorf("of %d replicas, %d belong on spot capacity; found %s", seen.wanted, wanted, seen)
	}
	return fmt.Sprintf("%d replicas at %d %%, floor %d: %s", seen.wanted, s.percent, s.floor, seen), nil
}

// mix compares what is in the member, and what the hub says, with the formula.
func (c *checks) mix(ctx context.Context, s sample) (string, error) {
	found, err := c.mixInMember(ctx, s)
	if err != nil {
		return "", err
	}
	told, err := c.placement(ctx, s)
	if err != nil {
		return "", err
	}
	n := int(told.GetReplicas())
	spot, onDemand := s.spotWanted(n), n-s.spotWanted(n)
	if int(told.GetSpotWanted()) != spot || int(told.GetOnDemandWanted()) != onDemand {
		return "", fmt.Errorf("the hub wants %d on spot capacity and %d on-demand; the formula gives %d and %d",
			told.GetSpotWanted(), told.GetOnDemandWanted(), spot, onDemand)
	}
	if int(told.GetSpotActual()) != spot || int(told.GetOnDemandActual()) != onDemand {
		return "", fmt.Errorf("the hub reports %d on spot capacity and %d on-demand; there are %d and %d",
			told.GetSpotActual(), told.GetOnDemandActual(), spot, onDemand)
	}
	if !s.broken {
		return found, nil
	}
	if len(told.GetProblems()) == 0 {
		return "", errors.New("the hub does not say which annotation is invalid")
	}
	return "all on-demand, and the hub names " + told.GetProblems()[0].GetKey(), nil
}

// warned waits for the event about the sample whose annotation is invalid.
func (c *checks) warned(ctx context.Context) (message string, err error) {
	broken := sampleOf("staging", "reports")
	member, err := c.member(broken.member)
	if err != nil {
		return "", err
	}
	err = await(ctx, "the event", func(ctx context.Context) error {
		var events corev1.EventList
		if err := member.Client().List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Name == broken.name && strings.Contains(e.Message, "spot-percentage") {
				message = e.Message
				return nil
			}
		}
		return fmt.Errorf("no such event among %d", len(events.Items))
	})
	return message, err
}

// placement is what the hub says of a sample.
func (c *checks) placement(ctx context.Context, s sample) (*plimsollv1.Placement, error) {
	all, _, err := c.api.workloads(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if w.GetCluster() == s.member && w.GetNamespace() == namespace && w.GetKind() == s.kind && w.GetName() == s.name {
			return w.GetPlacement(), nil
		}
	}
	return nil, fmt.Errorf("the hub does not list %s", s)
}

// evicted checks how many pods were evicted in these members since the demo began, by their API servers' audit logs.
func (c *checks) evicted(want int, names ...string) (string, error) {
	total := 0
	for _, name := range names {
		member, err := c.member(name)
		if err != nil {
			return "", err
		}
		n, err := evictions(member)
		if err != nil {
			return "", err
		}
		total += n
	}
	if total != want {
		return "", fmt.Errorf("%d evictions in the audit logs of %s instead of %d", total, strings.Join(names, ", "), want)
	}
	return fmt.Sprintf("%d evictions in the audit logs of %s", total, strings.Join(names, ", ")), nil
}

// policyChange checks that the line that changes a policy moves as many replicas as the policy asks, and no more.
func (c *checks) policyChange(ctx context.Context) {
	web := sampleOf("prod-eu", "web")
	moves := web.spotWanted(web.replicas)
	web.percent = changedPercent
	moves -= web.spotWanted(web.replicas)
	c.check(ctx, "the printed kubectl line moves replicas", func(ctx context.Context) (string, error) {
		if _, err := c.paste(ctx, "policy"); err != nil {
			return "", err
		}
		if err := c.awaitMix(ctx, web, web.replicas); err != nil {
			return "", err
		}
		return c.awaitTold(ctx, web)
	})
	c.check(ctx, "no replica moved that could stay", func(context.Context) (string, error) {
		return c.evicted(moves, "prod-eu")
	})
	c.check(ctx, "the printed line for pods shows slots", func(ctx context.Context) (string, error) {
		output, err := c.paste(ctx, "pods")
		if err != nil {
			return "", err
		}
		return slotsShown(output, web.replicas)
	})
}

// awaitTold waits until the hub shows what the member shows.
func (c *checks) awaitTold(ctx context.Context, s sample) (found string, err error) {
	err = await(ctx, "the hub to see it", func(ctx context.Context) error {
		found, err = c.mix(ctx, s)
		return err
	})
	return found, err
}

// scaling checks that the mix holds when a workload grows and shrinks, and that nothing is evicted for it.
func (c *checks) scaling(ctx context.Context) {
	web := sampleOf("prod-us", "web")
	for _, to := range []struct {
		line     string
		replicas int
	}{{"up", scaledUp}, {"down", scaledDown}} {
		c.check(ctx, fmt.Sprintf("scaling %s keeps the mix", to.line), func(ctx context.Context) (string, error) {
			if _, err := c.paste(ctx, to.line); err != nil {
				return "", err
			}
			if err := c.awaitMix(ctx, web, to.replicas); err != nil {
				return "", err
			}
			return c.awaitTold(ctx, web)
		})
	}
	c.check(ctx, "scaling needed no eviction", func(context.Context) (string, error) {
		return c.evicted(0, "prod-us")
	})
}

// hubUser is who the hub is in the hub cluster, by rbac.yaml, and in members, by plimsoll register.
const hubUser = "system:serviceaccount:" + hubNamespace + ":plimsoll-hub"

// rights checks that the hub got by with the rights that it was given.
func (c *checks) rights(ctx context.Context) {
	c.check(ctx, "no API server refused a request of the hub", func(context.Context) (string, error) {
		requests := 0
		for _, cluster := range c.clusters() {
			events, err := cluster.Audit().Events(kube.ByUser(hubUser))
			if err != nil {
				return "", err
			}
			for _, e := range events {
				if e.Code == http.StatusForbidden {
					return "", fmt.Errorf("cluster %s refused %s %s", cluster.Name(), e.Verb, e.URI)
				}
			}
			if requests += len(events); len(events) == 0 {
				return "", fmt.Errorf("no request of %s reached cluster %s", hubUser, cluster.Name())
			}
		}
		return fmt.Sprintf("%d requests to %d clusters, none refused", requests, len(c.clusters())), nil
	})
}
