package hub

import (
	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// What follows from the configuration for each part of the hub. Nothing here starts anything.

func capacityLabels(config *SpotConfig) (spot.CapacityLabels, error) {
	labels := make([]spot.NodeLabel, len(config.NodeLabels))
	for i, label := range config.NodeLabels {
		labels[i] = spot.NodeLabel{Key: label.Key, Spot: label.Spot, OnDemand: label.OnDemand, Family: label.Family}
	}
	return spot.NewCapacityLabels(labels...)
}

func spotDefaults(config *SpotDefaultsConfig) spot.Defaults {
	return spot.Defaults{
		Percentage: config.SpotPercentage, MinOnDemand: config.MinOnDemand,
		Schedule: config.DisruptionSchedule, Duration: config.DisruptionDuration,
	}
}

func clusterRules(config *ClustersConfig) clusters.Rules {
	return clusters.Rules{
		AllowExec: config.AllowExec, AllowFiles: config.AllowFiles, AllowProxy: config.AllowProxy, AllowInsecure: config.AllowInsecure,
		AllowImpersonation: config.AllowImpersonation, AllowBasicAuth: config.AllowBasicAuth, AllowedNetworks: config.AllowedNetworks,
	}
}
