package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// observed is where the replicas of a workload really are, by the nodes that their pods run on.
type observed struct {
	wanted         int // replicas in the spec
	spot, onDemand int
	other          int // pods without a node, not ready, or on their way out
}

// String says it in words.
func (o observed) String() string {
	text := fmt.Sprintf("%d on spot and %d on-demand", o.spot, o.onDemand)
	if o.other > 0 {
		text += fmt.Sprintf(" and %d neither", o.other)
	}
	return text
}

// observe asks a member's API server about a sample.
func (d *demo) observe(ctx context.Context, s sample) (observed, error) {
	member, err := d.member(s.member)
	if err != nil {
		return observed{}, err
	}
	reader := member.Client()
	wanted, owners, err := ownersOf(ctx, reader, s)
	if err != nil {
		return observed{}, fmt.Errorf("%s: %w", s, err)
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := reader.List(ctx, &nodes); err != nil {
		return observed{}, fmt.Errorf("%s: list nodes: %w", s.member, err)
	}
	if err := reader.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return observed{}, fmt.Errorf("%s: list pods: %w", s.member, err)
	}
	capacity := map[string]string{}
	for _, node := range nodes.Items {
		capacity[node.Name] = node.Labels[kube.CapacityLabel]
	}
	seen := observed{wanted: wanted}
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil || !owners[owner.UID] {
			continue
		}
		switch where := capacity[pod.Spec.NodeName]; {
		case pod.DeletionTimestamp != nil || !ready(&pod):
			seen.other++
		case where == kube.Spot:
			seen.spot++
		case where == kube.OnDemand:
			seen.onDemand++
		default:
			seen.other++
		}
	}
	return seen, nil
}

// ownersOf are the replicas that a sample wants, and the objects that control its pods.
func ownersOf(ctx context.Context, reader client.Client, s sample) (int, map[types.UID]bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: s.name}
	if s.kind == "StatefulSet" {
		var set appsv1.StatefulSet
		if err := reader.Get(ctx, key, &set); err != nil {
			return 0, nil, err
		}
		return int(*set.Spec.Replicas), map[types.UID]bool{set.UID: true}, nil
	}
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, key, &deployment); err != nil {
		return 0, nil, err
	}
	var sets appsv1.ReplicaSetList
	if err := reader.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		return 0, nil, err
	}
	owners := map[types.UID]bool{}
	for _, set := range sets.Items {
		if metav1.IsControlledBy(&set, &deployment) {
			owners[set.UID] = true
		}
	}
	return int(*deployment.Spec.Replicas), owners, nil
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitMix waits until a sample has n replicas, all ready, as many of them on spot capacity as its policy asks.
func (d *demo) awaitMix(ctx context.Context, s sample, n int) error {
	want := observed{wanted: n, spot: s.spotWanted(n), onDemand: n - s.spotWanted(n)}
	return await(ctx, fmt.Sprintf("%s to have %s", s, want), func(ctx context.Context) error {
		seen, err := d.observe(ctx, s)
		if err == nil && seen != want {
			err = fmt.Errorf("%d replicas wanted, found %s", seen.wanted, seen)
		}
		return err
	})
}
