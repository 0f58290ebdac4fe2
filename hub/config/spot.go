package config

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// WorkloadKinds are the kinds of workloads that the configuration names.
func WorkloadKinds(config *SpotConfig) ([]spot.WorkloadKind, error) {
	kinds := make([]spot.WorkloadKind, 0, len(config.WorkloadKinds))
	named := map[string]bool{}
	for _, one := range config.WorkloadKinds {
		kind, err := spot.NewWorkloadKind(one.APIVersion, one.Kind, one.ReplicasPath, one.StatusReplicasPath)
		if err != nil {
			return nil, err
		}
		if named[kind.Name()] {
			return nil, fmt.Errorf("kind %s: specified twice", kind.Name())
		}
		named[kind.Name()] = true
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// OwnerKinds are those of them that may own pods directly, for all that is known.
func OwnerKinds(config *SpotConfig) []schema.GroupKind {
	var owners []schema.GroupKind
	for _, one := range config.WorkloadKinds {
		gv, err := schema.ParseGroupVersion(one.APIVersion)
		if err != nil {
			continue // the configuration was checked
		}
		owners = append(owners, schema.GroupKind{Group: gv.Group, Kind: one.Kind})
	}
	return owners
}

// CapacityLabels are the labels of nodes that show their capacity type.
func CapacityLabels(config *SpotConfig) (capacity.Labels, error) {
	labels := make([]capacity.NodeLabel, len(config.NodeLabels))
	for i, label := range config.NodeLabels {
		labels[i] = capacity.NodeLabel{Key: label.Key, Spot: label.Spot, OnDemand: label.OnDemand, Family: label.Family}
	}
	return capacity.NewLabels(labels...)
}

// Interruptions are the signs that a node is about to go.
func Interruptions(config *SpotConfig) (nodes.Interruptions, error) {
	signs := make([]nodes.Sign, len(config.Interruptions))
	for i, c := range config.Interruptions {
		signs[i] = nodes.Sign{
			Taint: c.Taint, Effect: corev1.TaintEffect(c.Effect), Value: c.Value,
			Condition: c.Condition, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			Within: c.Within, Ignore: c.Ignore,
		}
		if c.Advisory {
			signs[i].Weight = plan.WeightAdvisory
		}
	}
	return nodes.NewInterruptions(signs...)
}

// SpotDefaults are the policy values of workloads that name none.
func SpotDefaults(config *SpotDefaultsConfig) policy.Defaults {
	return policy.Defaults{
		Percentage: config.SpotPercentage, MinOnDemand: config.MinOnDemand,
		Schedule: config.DisruptionSchedule, Duration: config.DisruptionDuration, Timezone: config.DisruptionTimezone,
	}
}
