package hub

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// workloadKinds are the kinds of workloads that the configuration names.
func workloadKinds(config *SpotConfig) ([]spot.WorkloadKind, error) {
	kinds := make([]spot.WorkloadKind, 0, len(config.WorkloadKinds))
	named := map[string]bool{}
	for _, one := range config.WorkloadKinds {
		kind, err := spot.NewWorkloadKind(one.APIVersion, one.Kind, one.ReplicasPath, one.StatusReplicasPath)
		if err != nil {
			return nil, err
		}
		if named[kind.Name()] {
			return nil, fmt.Errorf("kind %s: it is named twice", kind.Name())
		}
		named[kind.Name()] = true
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// ownerKinds are those of them that may own pods directly, for all that is known.
func ownerKinds(config *SpotConfig) []schema.GroupKind {
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

// capacityLabels are the labels of nodes that tell their capacity type.
func capacityLabels(config *SpotConfig) (spot.CapacityLabels, error) {
	labels := make([]spot.NodeLabel, len(config.NodeLabels))
	for i, label := range config.NodeLabels {
		labels[i] = spot.NodeLabel{Key: label.Key, Spot: label.Spot, OnDemand: label.OnDemand, Family: label.Family}
	}
	return spot.NewCapacityLabels(labels...)
}

// interruptions are the signs that a node is about to go.
func interruptions(config *SpotConfig) (spot.Interruptions, error) {
	signs := make([]spot.Sign, len(config.Interruptions))
	for i, c := range config.Interruptions {
		signs[i] = spot.Sign{
			Taint: c.Taint, Effect: corev1.TaintEffect(c.Effect), Value: c.Value,
			Condition: c.Condition, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			Within: c.Within, Ignore: c.Ignore,
		}
		if c.Advisory {
			signs[i].Weight = spot.WeightAdvisory
		}
	}
	return spot.NewInterruptions(signs...)
}

// spotDefaults are the policy values of workloads that name none.
func spotDefaults(config *SpotDefaultsConfig) spot.Defaults {
	return spot.Defaults{
		Percentage: config.SpotPercentage, MinOnDemand: config.MinOnDemand,
		Schedule: config.DisruptionSchedule, Duration: config.DisruptionDuration, Timezone: config.DisruptionTimezone,
	}
}
