package hub

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// What follows from the configuration for each part of the hub. Nothing here starts anything.

func runtimeOptions(h *Hub) reconcile.Options {
	c := &h.config.Controller
	return reconcile.Options{
		WorkersPerMember: c.WorkersPerMember, Deadline: c.Deadline, Resync: c.ResyncPeriod,
		Scheme: clientgoscheme.Scheme, Log: h.log, Registerer: h.registry,
	}
}

func memberOptions(h *Hub) clusters.Options {
	c := &h.config.Clusters
	return clusters.Options{
		Namespace: h.config.Hub.Namespace, HubConfig: h.hubConfig, Scheme: clientgoscheme.Scheme, Fence: h.ownership,
		Rules: clusterRules(c), QPS: c.QPS, Burst: c.Burst,
		RequestTimeout: c.RequestTimeout, WriteTimeout: writeTimeout(&h.config), WarmTimeout: c.WarmTimeout,
		ProbeInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout,
		Log: h.log, Registerer: h.registry,
	}
}

func clusterRules(c *ClustersConfig) clusters.Rules {
	return clusters.Rules{
		AllowExec: c.AllowExec, AllowFiles: c.AllowFiles, AllowProxy: c.AllowProxy, AllowInsecure: c.AllowInsecure,
		AllowImpersonation: c.AllowImpersonation, AllowBasicAuth: c.AllowBasicAuth, AllowedNetworks: c.AllowedNetworks,
	}
}

func spotOptions(h *Hub) (spot.Options, error) {
	c := &h.config.Spot
	keys, err := spot.NewKeys(c.AnnotationPrefix)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.annotationPrefix: %w", err)
	}
	capacity, err := capacityLabels(c)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.nodeLabels: %w", err)
	}
	namespaces, err := metav1.LabelSelectorAsSelector(&h.config.NamespaceSelector)
	if err != nil {
		return spot.Options{}, fmt.Errorf("namespaceSelector: %w", err)
	}
	return spot.Options{
		Keys: keys, Capacity: capacity, Defaults: spotDefaults(&c.Defaults), Namespaces: namespaces,
		Settings:        spot.Settings{MaxMoves: c.MaxMoves.MoveLimit, Cooldown: c.MoveCooldown, ReadOnly: c.ReadOnly},
		SpotTolerations: append([]corev1.Toleration(nil), c.Tolerations...),
		Log:             h.log, Registerer: h.registry,
	}, nil
}

func spotSchedule(config *Config) spot.Schedule {
	return spot.Schedule{Resync: config.Controller.ResyncPeriod, Workers: config.Controller.Workers}
}

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

func (h *Hub) installerOptions() (webhook.InstallerOptions, error) {
	base, err := webhookURL(&h.config, h.listeners.webhook.Addr())
	if err != nil {
		return webhook.InstallerOptions{}, fmt.Errorf("webhook.url: %w", err)
	}
	enabled, selector := h.engine.Keys.Enabled(), &h.config.NamespaceSelector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector = nil
	}
	return webhook.InstallerOptions{
		Name: h.config.Webhook.ConfigName, Tokens: h.ca.Tokens(registrations(h.provider)),
		Wanted: func() webhook.Wanted {
			return webhook.Wanted{BaseURL: base, Bundle: h.certificates.Bundle(), EnabledLabel: enabled, Namespaces: selector}
		},
	}, nil
}
