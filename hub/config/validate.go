package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// TokenAlarm is the share of its life, in percent, after which a token that is still in use is shown as expiring.
const TokenAlarm = 80

// Validate returns every value that is out of range, as "path.to.key: value: rule" one per line. [Load] has called
// it already.
func (c *Config) Validate() error {
	return errors.Join(describe(c.check(), func(string) string { return "" })...)
}

// check returns every value that is out of range.
func (c *Config) check() field.ErrorList {
	v := &rules{}
	v.controller(&c.Controller)
	v.leaderElection(&c.LeaderElection)
	v.clusters(&c.Clusters)
	v.spot(&c.Spot)
	v.webhook(&c.Webhook)
	v.fleetHistory(&c.Fleet.History)
	v.api(&c.API)
	if c.Log.Format != FormatJSON && c.Log.Format != FormatText {
		v.refuse("log.format", c.Log.Format, "must be json or text")
	}
	v.address("peer.address", c.Peer.Address)
	if c.API.Advertise != "" {
		v.advertise("api.advertise", c.API.Advertise)
	}
	if c.Peer.Advertise != "" {
		v.advertise("peer.advertise", c.Peer.Advertise)
	}
	v.address("metrics.address", c.Metrics.Address)
	v.between("metrics.workloadsPerMember", c.Metrics.WorkloadsPerMember, 1, 100000)
	v.address("probes.address", c.Probes.Address)
	if c.Hub.Namespace != "" {
		v.name("hub.namespace", c.Hub.Namespace, validation.IsDNS1123Label)
	}
	if c.Hub.RegistrationNamespace != "" {
		v.name("hub.registrationNamespace", c.Hub.RegistrationNamespace, validation.IsDNS1123Label)
	}
	if c.LeaderElection.LeaseNamespace != "" { // may be that of the hub, which was named before
		v.name("leaderElection.leaseNamespace", c.LeaderElection.LeaseNamespace, validation.IsDNS1123Label)
	}
	if _, err := metav1.LabelSelectorAsSelector(&c.NamespaceSelector); err != nil {
		v.refuse("namespaceSelector", "", err.Error())
	}
	return v.problems
}

// rules collects what is out of range.
type rules struct{ problems field.ErrorList }

func (v *rules) refuse(path string, value any, rule string) {
	v.problems = append(v.problems, problem(path, value, rule))
}

func (v *rules) controller(c *ControllerConfig) {
	v.atLeast("controller.resyncPeriod", c.ResyncPeriod, 5*time.Second)
	v.between("controller.workers", c.Workers, 1, 1000)
	v.between("controller.workersPerMember", c.WorkersPerMember, 1, 1000)
	v.atLeast("controller.deadline", c.Deadline, time.Second)
	v.networks("controller.externalNetworks", c.ExternalNetworks)
}

func (v *rules) fleetHistory(c *FleetHistoryConfig) {
	if c.ConfigMap != "" {
		v.name("fleet.history.configMap", c.ConfigMap, validation.IsDNS1123Subdomain)
	}
	if c.Folder != "" && !filepath.IsAbs(c.Folder) {
		v.refuse("fleet.history.folder", c.Folder, "must be an absolute path")
	}
	if c.ConfigMap != "" && c.Folder != "" {
		v.refuse("fleet.history.folder", c.Folder, "must be empty where fleet.history.configMap has a value")
	}
}

func (v *rules) leaderElection(c *LeaderElectionConfig) {
	v.name("leaderElection.leaseName", c.LeaseName, validation.IsDNS1123Subdomain)
	if c.Identity != "" {
		v.name("leaderElection.identity", c.Identity, validation.IsDNS1123Subdomain)
	}
	v.atLeast("leaderElection.leaseDuration", c.LeaseDuration, 3*time.Second)
	if c.LeaseDuration%time.Second != 0 {
		v.refuse("leaderElection.leaseDuration", c.LeaseDuration, "must be whole seconds, because a Lease holds nothing finer")
	}
	if c.RenewDeadline >= c.LeaseDuration {
		v.refuse("leaderElection.renewDeadline", c.RenewDeadline, fmt.Sprintf("must be less than leaseDuration (%s)", c.LeaseDuration))
	}
	v.atLeast("leaderElection.retryPeriod", c.RetryPeriod, 50*time.Millisecond)
	if c.RetryPeriod > c.LeaseDuration/3 {
		v.refuse("leaderElection.retryPeriod", c.RetryPeriod, fmt.Sprintf("must be at most a third of leaseDuration (%s)", c.LeaseDuration))
	}
	if c.RetryPeriod+c.RetryPeriod/5 >= c.RenewDeadline {
		v.refuse("leaderElection.retryPeriod", c.RetryPeriod, fmt.Sprintf("and a fifth of it must be less than renewDeadline (%s)", c.RenewDeadline))
	}
}

func (v *rules) clusters(c *ClustersConfig) {
	v.atLeast("clusters.requestTimeout", c.RequestTimeout, 100*time.Millisecond)
	v.atLeast("clusters.warmTimeout", c.WarmTimeout, time.Second)
	v.atLeast("clusters.probeInterval", c.ProbeInterval, time.Second)
	v.atLeast("clusters.probeTimeout", c.ProbeTimeout, 100*time.Millisecond)
	if c.QPS <= 0 || c.QPS > 100000 || math.IsNaN(c.QPS) {
		v.refuse("clusters.qps", c.QPS, "must be more than 0 and at most 100000")
	}
	v.between("clusters.tokenRenewalPercent", c.TokenRenewalPercent, 0, TokenAlarm-1)
	v.between("clusters.burst", c.Burst, 1, 100000)
	v.between("clusters.maxAnswerMiB", c.MaxAnswerMiB, 1, 1024)
	v.between("clusters.maxEventMiB", c.MaxEventMiB, 1, 64)
	v.between("clusters.maxCacheMiB", c.MaxCacheMiB, 16, 1<<20)
	if n := c.MaxTotalCacheMiB; n != 0 && (n < 16 || n > 1<<20) {
		v.refuse("clusters.maxTotalCacheMiB", n, "must be 0, or 16 to 1048576")
	}
	v.between("clusters.maxCachedObjects", c.MaxCachedObjects, 1000, 10_000_000)
	v.networks("clusters.allowedNetworks", c.AllowedNetworks)
}

func (v *rules) networks(path string, networks []netip.Prefix) {
	for i, network := range networks {
		if network != network.Masked() {
			v.refuse(fmt.Sprintf("%s[%d]", path, i), network, fmt.Sprintf("must be a network, not an address in it; did you mean %s?", network.Masked()))
		}
	}
}

func (v *rules) spot(c *SpotConfig) {
	v.name("spot.annotationPrefix", c.AnnotationPrefix, validation.IsDNS1123Subdomain)
	if _, err := CapacityLabels(c); err != nil {
		v.refuse("spot.nodeLabels", "", err.Error())
	}
	if _, err := WorkloadKinds(c); err != nil {
		v.refuse("spot.workloadKinds", "", err.Error())
	}
	if p := c.Defaults.SpotPercentage; p != nil {
		v.between("spot.defaults.spotPercentage", *p, 0, 100)
	}
	if m := c.Defaults.MinOnDemand; m != nil {
		v.between("spot.defaults.minOnDemand", *m, 0, 10000)
	}
	window := SpotDefaults(&c.Defaults)
	window.Percentage, window.MinOnDemand = nil, nil
	for _, found := range policy.Parse(policy.Keys{Prefix: policy.DefaultPrefix}, nil, nil, window).Problems {
		v.refuse(found.Key, strconv.Quote(found.Value), "must be "+found.Rule)
	}
	if t := c.PendingTimeout; t < policy.MinPendingTimeout || t > policy.MaxPendingTimeout {
		v.refuse("spot.pendingTimeout", t, fmt.Sprintf("must be from %s to %s", policy.MinPendingTimeout, policy.MaxPendingTimeout))
	}
	v.atLeast("spot.moveCooldown", c.MoveCooldown, 0)
	v.between("spot.maxMovesPerMember", c.MaxMovesPerMember, 0, 100000)
	v.between("spot.maxMovesPerHub", c.MaxMovesPerHub, 0, 100000)
	if _, err := Interruptions(c); err != nil {
		v.refuse("spot.interruptions", "", err.Error())
	}
	v.name("spot.probe.namespace", c.Probe.Namespace, validation.IsDNS1123Label)
	if strings.TrimSpace(c.Probe.Image) == "" {
		v.refuse("spot.probe.image", strconv.Quote(c.Probe.Image), "must name an image")
	}
	v.atLeast("spot.probe.firstAfter", c.Probe.FirstAfter, time.Second)
	v.atLeast("spot.probe.atMostAfter", c.Probe.AtMostAfter, c.Probe.FirstAfter)
	v.atLeast("spot.probe.timeout", c.Probe.Timeout, time.Second)
	v.nodeStart(c)
}

// nodeStart refuses times that contradict each other: what waits without a sign of a node would wait for longer than with one.
func (v *rules) nodeStart(c *SpotConfig) {
	refuse := func(rule string) { v.refuse("spot.nodeStartTimeout", c.NodeStartTimeout, rule) }
	switch t := c.NodeStartTimeout; {
	case t > policy.MaxPendingTimeout:
		refuse(fmt.Sprintf("must be at most %s", policy.MaxPendingTimeout))
	case t < c.PendingTimeout:
		refuse(fmt.Sprintf("must be at least spot.pendingTimeout (%s)", c.PendingTimeout))
	case t < c.Probe.Timeout:
		refuse(fmt.Sprintf("must be at least spot.probe.timeout (%s)", c.Probe.Timeout))
	}
}

// MaxStopDelay leaves time for the rest of a stop within the 45 s that the chart gives to it.
const MaxStopDelay = 15 * time.Second

func (v *rules) webhook(c *WebhookConfig) {
	v.between("webhook.port", c.Port, 0, 65535)
	if _, err := netip.ParseAddr(c.BindAddress); c.BindAddress != "" && err != nil {
		v.refuse("webhook.bindAddress", c.BindAddress, "must be an IP address")
	}
	if c.URL != "" {
		if _, err := webhook.ParseBaseURL(c.URL); err != nil {
			v.refuse("webhook.url", strconv.Quote(c.URL), "must be https://host[:port], at most with a path after it")
		}
	}
	v.name("webhook.configName", c.ConfigName, validation.IsDNS1123Subdomain)
	if c.StopDelay < 0 || c.StopDelay > MaxStopDelay {
		v.refuse("webhook.stopDelay", c.StopDelay, fmt.Sprintf("must be from 0s to %s: pods that stop are killed after a while", MaxStopDelay))
	}
	for i, name := range c.DNSNames {
		v.name(fmt.Sprintf("webhook.dnsNames[%d]", i), name, validation.IsDNS1123Subdomain)
	}
}

func (v *rules) api(c *APIConfig) {
	v.address("api.grpcAddress", c.GRPCAddress)
	v.address("api.restAddress", c.RESTAddress)
	if strings.TrimSpace(c.Audience) == "" {
		v.refuse("api.audience", strconv.Quote(c.Audience), "must not be empty: a token for anybody would do")
	}
	if c.ClientCA != "" && (c.Plaintext || c.Unauthenticated) {
		v.refuse("api.clientCA", strconv.Quote(c.ClientCA), "needs TLS and authentication: leave api.plaintext and api.unauthenticated out")
	}
	if n := c.CallsPerSecond; n != -1 && (n < 1 || n > 100_000) {
		v.refuse("api.callsPerSecond", n, "must be 1 to 100000, or -1 for any number")
	}
	for _, key := range []struct {
		path string
		set  bool
	}{{"api.unauthenticated", c.Unauthenticated}, {"api.plaintext", c.Plaintext}} {
		for _, address := range []string{c.GRPCAddress, c.RESTAddress} {
			if key.set && !isLoopback(address) {
				v.refuse(key.path, true, fmt.Sprintf("is only allowed while grpcAddress and restAddress are loopback addresses, and %s is not", address))
			}
		}
	}
}

// isLoopback reports whether only this machine can reach address. A name counts only if it is localhost: what others
// resolve to is not known here.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, parsed := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || parsed == nil && ip.IsLoopback())
}

func (v *rules) address(path, value string) {
	host, port, err := net.SplitHostPort(value)
	n, parsed := strconv.Atoi(port)
	if err != nil || parsed != nil || n < 0 || n > 65535 || strings.ContainsAny(host, " /") {
		v.refuse(path, strconv.Quote(value), `must be an address to listen on, such as ":8080" or "127.0.0.1:0"`)
	}
}

func (v *rules) advertise(path, value string) {
	host, port, err := net.SplitHostPort(value)
	n, parsed := strconv.Atoi(port)
	if err != nil || parsed != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, " /_") {
		v.refuse(path, strconv.Quote(value), `must be the host and port that others reach, such as "10.0.0.7:9444"`)
	}
}

func (v *rules) name(path, value string, check func(string) []string) {
	if problems := check(value); len(problems) > 0 {
		v.refuse(path, strconv.Quote(value), problems[0])
	}
}

func (v *rules) atLeast(path string, value, least time.Duration) {
	if value < least {
		v.refuse(path, value, fmt.Sprintf("must be at least %s", least))
	}
}

func (v *rules) between(path string, value, least, most int) {
	if value < least || value > most {
		v.refuse(path, value, fmt.Sprintf("must be from %d to %d", least, most))
	}
}
