package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// A Provider is who labels nodes, each in its own way.
type Provider string

// The providers whose labels nodes can have. KarpenterNodes are those of Karpenter on any cloud; the others are the managed
// node groups of a cloud, without Karpenter.
const (
	KarpenterNodes Provider = "karpenter"
	EKS            Provider = "eks"
	GKE            Provider = "gke"
	AKS            Provider = "aks"
)

const (
	eksCapacity     = "eks.amazonaws.com/capacityType"
	gkeProvisioning = "cloud.google.com/gke-provisioning"
	gkeSpot         = "cloud.google.com/gke-spot"
	aksPriority     = "kubernetes.azure.com/scalesetpriority"
)

// Labels are what the provider puts on the nodes of a group.
func (p Provider) Labels(group, capacity string) (map[string]string, error) {
	if capacity != Spot && capacity != OnDemand {
		return nil, fmt.Errorf("capacity %q: want %s or %s", capacity, Spot, OnDemand)
	}
	spot := capacity == Spot
	switch p {
	case KarpenterNodes:
		return map[string]string{PoolLabel: group, CapacityLabel: capacity}, nil
	case EKS:
		labels := map[string]string{"eks.amazonaws.com/nodegroup": group, eksCapacity: "ON_DEMAND"}
		if spot {
			labels[eksCapacity] = "SPOT"
		}
		return labels, nil
	case GKE:
		labels := map[string]string{"cloud.google.com/gke-nodepool": group, gkeProvisioning: "standard"}
		if spot {
			labels[gkeProvisioning], labels[gkeSpot] = "spot", "true"
		}
		return labels, nil
	case AKS:
		labels := map[string]string{"kubernetes.azure.com/agentpool": group, "kubernetes.azure.com/mode": "user"}
		if spot {
			labels[aksPriority] = "spot"
		}
		return labels, nil
	}
	return nil, fmt.Errorf("provider %q: want %s, %s, %s or %s", p, KarpenterNodes, EKS, GKE, AKS)
}

// Taints are what the provider taints the nodes of a group with for good.
func (p Provider) Taints(capacity string) []corev1.Taint {
	if p == AKS && capacity == Spot {
		return []corev1.Taint{{Key: aksPriority, Value: "spot", Effect: corev1.TaintEffectNoSchedule}}
	}
	return nil
}

// CapacityOf is the capacity type that a node's labels show, Spot or OnDemand, by any provider's; empty: they do not show it.
func CapacityOf(labels map[string]string) string {
	switch {
	case labels[CapacityLabel] == "reserved":
		return OnDemand
	case labels[CapacityLabel] != "":
		return labels[CapacityLabel]
	case labels[eksCapacity] == "SPOT", labels[gkeSpot] == "true", labels[gkeProvisioning] == "spot", labels[aksPriority] == "spot":
		return Spot
	}
	for _, group := range []string{"eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"} {
		if labels[group] != "" {
			return OnDemand
		}
	}
	return ""
}
