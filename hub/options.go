package hub

import (
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// What follows from the configuration for each part of the hub. Nothing here starts anything.

func runtimeOptions(h *Hub) reconcile.Options {
	c := &h.config.Controller
	return reconcile.Options{
		WorkersPerMember: c.WorkersPerMember, Deadline: c.Deadline, Resync: c.ResyncPeriod,
		ExternalNetworks: c.ExternalNetworks,
		Scheme:           h.scheme, Log: h.log, Registerer: h.registry,
	}
}

func memberOptions(h *Hub) clusters.Options {
	c := &h.config.Clusters
	return clusters.Options{
		Namespace: h.config.Hub.RegistrationNamespace, HubNamespace: h.config.Hub.Namespace,
		AlsoHubNamespace: h.config.Hub.RegistrationsInOwnNamespace, HubConfig: h.hubConfig, Scheme: h.scheme, Fence: h.ownership,
		Rules: clusterRules(c), QPS: c.QPS, Burst: c.Burst,
		RequestTimeout: c.RequestTimeout, WriteTimeout: writeTimeout(&h.config), WarmTimeout: c.WarmTimeout,
		ProbeInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout,
		AnswerBytes: int64(c.MaxAnswerMiB) << 20, EventBytes: int64(c.MaxEventMiB) << 20,
		CacheBytes: int64(c.MaxCacheMiB) << 20, CacheObjects: c.MaxCachedObjects, FleetCacheBytes: fleetCacheBytes(c.MaxTotalCacheMiB),
		Log: h.log, Registerer: h.registry,
	}
}

func clusterRules(c *config.ClustersConfig) kubeconfig.Rules {
	return kubeconfig.Rules{
		AllowExec: c.AllowExec, AllowFiles: c.AllowFiles, AllowProxy: c.AllowProxy, AllowInsecure: c.AllowInsecure,
		AllowImpersonation: c.AllowImpersonation, AllowBasicAuth: c.AllowBasicAuth, AllowedNetworks: c.AllowedNetworks,
	}
}

func spotOptions(h *Hub) (spot.Options, error) {
	c := &h.config.Spot
	keys, err := policy.NewKeys(c.AnnotationPrefix)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.annotationPrefix: %w", err)
	}
	labels, err := config.CapacityLabels(c)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.nodeLabels: %w", err)
	}
	kinds, err := config.WorkloadKinds(c)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.workloadKinds: %w", err)
	}
	namespaces, err := metav1.LabelSelectorAsSelector(&h.config.NamespaceSelector)
	if err != nil {
		return spot.Options{}, fmt.Errorf("namespaceSelector: %w", err)
	}
	interruptions, err := config.Interruptions(c)
	if err != nil {
		return spot.Options{}, fmt.Errorf("spot.interruptions: %w", err)
	}
	return spot.Options{
		Interruptions: interruptions,
		Ceilings:      plan.CeilingLimits{Member: c.MaxMovesPerMember, Hub: c.MaxMovesPerHub},
		Probes: spot.ProbeOptions{Namespace: c.Probe.Namespace, Image: c.Probe.Image, Times: shortage.Settings{
			FirstProbe: c.Probe.FirstAfter, MostBetween: c.Probe.AtMostAfter, ProbeTime: c.Probe.Timeout, NodeStart: c.NodeStartTimeout}},
		Keys: keys, Capacity: labels, Defaults: config.SpotDefaults(&c.Defaults), Namespaces: namespaces, Kinds: kinds,
		Settings: plan.Settings{MaxMoves: c.MaxMoves.MoveLimit, Cooldown: c.MoveCooldown, ReadOnly: c.ReadOnly,
			Strategy: policy.Strategy(c.Strategy), PendingTimeout: c.PendingTimeout},
		SpotTolerations: append([]corev1.Toleration(nil), c.Tolerations...),
		WorkloadSeries:  h.config.Metrics.WorkloadsPerMember,
		Log:             h.log, Registerer: h.registry,
	}, nil
}

func spotSchedule(config *config.Config) spot.Schedule {
	return spot.Schedule{Resync: config.Controller.ResyncPeriod, Workers: config.Controller.Workers}
}

// wanted is what the members' webhook configurations follow from, but for the bundle, which may change.
func wanted(conf *config.Config, bound net.Addr) (webhook.Wanted, error) {
	base, err := webhookURL(conf, bound)
	if err != nil {
		return webhook.Wanted{}, fmt.Errorf("webhook.url: %w", err)
	}
	keys, err := policy.NewKeys(conf.Spot.AnnotationPrefix)
	if err != nil {
		return webhook.Wanted{}, fmt.Errorf("spot.annotationPrefix: %w", err)
	}
	w := webhook.Wanted{BaseURL: base, EnabledLabel: keys.Enabled(), Owners: config.OwnerKinds(&conf.Spot)}
	if len(conf.NamespaceSelector.MatchLabels)+len(conf.NamespaceSelector.MatchExpressions) > 0 {
		w.Namespaces = conf.NamespaceSelector.DeepCopy()
	}
	return w, nil
}

func (h *Hub) installerOptions() (webhook.InstallerOptions, error) {
	now, err := wanted(&h.config, h.listeners.webhook.Addr())
	if err != nil {
		return webhook.InstallerOptions{}, err
	}
	tokens := webhook.NewTokens(h.ca.TokenKey(), registrations(h.provider))
	return webhook.InstallerOptions{
		Name: h.config.Webhook.ConfigName, Tokens: tokens, Namespaces: namespacesOf(h.provider),
		CheckNamespace: h.engine.CheckNamespace, CheckImage: h.engine.ProbeImage(), UndecidedAt: h.engine.UndecidedAt,
		Further: kinds.Completing(h.resources(), tokens),
		Wanted: func() webhook.Wanted {
			current := now
			current.Bundle = h.certificates.Bundle()
			return current
		},
	}, nil
}

// apiOptions are those of the API's public side, but for who may call and TLS.
func (h *Hub) apiOptions() api.Options {
	return api.Options{
		Backend: h.backend(), Peers: h.peers, Unauthenticated: h.config.API.Unauthenticated, Log: h.log, Registerer: h.registry,
		CallsPerSecond: h.config.API.CallsPerSecond,
	}
}

// plaintext reports whether the API is served without TLS: without tokens there is nothing to hide on loopback.
func plaintext(config *config.APIConfig) bool { return config.Plaintext || config.Unauthenticated }
