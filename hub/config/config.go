package config

import (
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// Config is the whole configuration of a hub replica. Every key can be set in the file and by an environment variable
// ([EnvName]); docs/configuration.md is made from the comments of this file.
type Config struct {
	// All controllers.
	Controller ControllerConfig `yaml:"controller"`
	// Which replica acts. The Lease is in the hub's namespace, unless leaseNamespace is set.
	LeaderElection LeaderElectionConfig `yaml:"leaderElection"`
	// The namespaces of members in which workloads may be managed: a Kubernetes label selector. Empty: all.
	NamespaceSelector metav1.LabelSelector `yaml:"namespaceSelector"`
	// The admission endpoint that the members' API servers call.
	Webhook WebhookConfig `yaml:"webhook"`
	// The API for people and tools.
	API APIConfig `yaml:"api"`
	// How the replicas of the hub reach each other.
	Peer PeerConfig `yaml:"peer"`
	// Prometheus metrics.
	Metrics MetricsConfig `yaml:"metrics"`
	// The endpoints /healthz and /readyz.
	Probes ProbesConfig `yaml:"probes"`
	// The hub cluster, which holds Plimsoll's own state.
	Hub HubConfig `yaml:"hub"`
	// What a registration Secret may contain, and how the hub connects to members.
	Clusters ClustersConfig `yaml:"clusters"`
	// Spot placement.
	Spot SpotConfig `yaml:"spot"`
	// FleetPlacements: workloads that run in several members.
	Fleet FleetConfig `yaml:"fleet"`
	// A section for each module that is built into the hub, by the module's name. The documentation of the module describes its
	// keys, for instance docs/webapp.md those of webapp. The variable of a key is PLIMSOLL_MODULES_, the module's name and the key, in
	// capitals, with _ for dots and dashes.
	Modules ModuleSections `yaml:"modules"`
	// Logs go to standard error.
	Log LogConfig `yaml:"log"`
}

// ControllerConfig is the part of [Config] that all controllers share.
type ControllerConfig struct {
	// How often every object is reconciled without an event. At least 5s.
	ResyncPeriod time.Duration `yaml:"resyncPeriod"`
	// How many reconciles each controller runs concurrently in one member. 1 to 1000.
	Workers int `yaml:"workers"`
	// How many reconciles all controllers together run concurrently in one member. 1 to 1000.
	WorkersPerMember int `yaml:"workersPerMember"`
	// The timeout of one reconcile. At least 1s.
	Deadline time.Duration `yaml:"deadline"`
	// The networks of HTTPS endpoints outside the fleet on which objects may depend, checked on each connection. Empty: all but
	// loopback, link-local, multicast and unspecified addresses.
	ExternalNetworks []netip.Prefix `yaml:"externalNetworks"`
}

// LeaderElectionConfig is the part of [Config] about ownership of members.
type LeaderElectionConfig struct {
	// With false this replica always acts. This is safe only with exactly one replica, also during updates.
	Enabled bool `yaml:"enabled"`
	// The name of the Lease.
	LeaseName string `yaml:"leaseName"`
	// The namespace of the Lease. The hub's account needs the right to create and update Leases there. Empty: hub.namespace.
	LeaseNamespace string `yaml:"leaseNamespace"`
	// The name of this replica in the Lease; the hub appends an ID of the process. Empty: POD_NAME, or else the host name.
	Identity string `yaml:"identity"`
	// How long a Lease is valid without being renewed: the time until another replica takes over from a dead one. Whole seconds, at
	// least 3s.
	LeaseDuration time.Duration `yaml:"leaseDuration"`
	// How long the owner tries to renew the Lease before it stops acting. Less than leaseDuration.
	RenewDeadline time.Duration `yaml:"renewDeadline"`
	// The time between two attempts to renew or acquire the Lease. At most a third of leaseDuration; 1.2 times this must be less
	// than renewDeadline.
	RetryPeriod time.Duration `yaml:"retryPeriod"`
}

// WebhookConfig is the part of [Config] about admission.
type WebhookConfig struct {
	// The port of the endpoint; 0 selects a free one.
	Port int `yaml:"port"`
	// The address on which the endpoint listens. Empty: all.
	BindAddress string `yaml:"bindAddress"`
	// A directory with tls.crt and tls.key, read again when they change. ca.crt beside them is the CA bundle for members. Empty: the
	// hub creates its own certificate.
	CertDir string `yaml:"certDir"`
	// A PEM file with CA certificates, read again when it changes. Calls of API servers then need a client certificate of one of
	// these, in addition to the token in their URL. Conversions are excepted, because API servers send no certificate with them.
	// Empty: no client certificate is needed.
	ClientCA string `yaml:"clientCA"`
	// The https URL at which the members' API servers reach the endpoint. Empty: bindAddress and port if bindAddress is set, or else
	// https://plimsoll-webhook.<hub.namespace>.svc:443.
	URL string `yaml:"url"`
	// The name of the MutatingWebhookConfiguration in every member.
	ConfigName string `yaml:"configName"`
	// DNS names for the hub's own certificate, in addition to those of its Services, webhook.url and localhost.
	DNSNames []string `yaml:"dnsNames"`
	// IP addresses for the hub's own certificate, in addition to loopback.
	IPs []netip.Addr `yaml:"ips"`
	// How long a stopping replica still serves after it stops being ready, so that calls go to other replicas. In the second half it
	// closes connections after each answer. Another replica may act meanwhile. At most 15s.
	StopDelay time.Duration `yaml:"stopDelay"`
}

// APIConfig is the part of [Config] about the API.
type APIConfig struct {
	// The address of gRPC; port 0 selects a free one.
	GRPCAddress string `yaml:"grpcAddress"`
	// The address of REST and /openapi.json; port 0 selects a free one.
	RESTAddress string `yaml:"restAddress"`
	// The host and port at which clients outside the hub cluster reach gRPC. The hub publishes it for the plimsoll command. Empty:
	// the command forwards a port through the hub cluster's API server.
	Advertise string `yaml:"advertise"`
	// A directory with tls.crt and tls.key for gRPC and REST. Empty: the hub creates a certificate for the same names as the
	// webhook's.
	CertDir string `yaml:"certDir"`
	// A PEM file with CA certificates, read again when it changes. Callers without a token can then use a client certificate of one
	// of these: its common name is the user and its organizations are the groups, as for an API server. Empty: the hub accepts no
	// client certificates.
	ClientCA string `yaml:"clientCA"`
	// Serves without TLS. Allowed only if grpcAddress and restAddress are loopback addresses.
	Plaintext bool `yaml:"plaintext"`
	// The audience that bearer tokens must have.
	Audience string `yaml:"audience"`
	// How many calls per second each caller can make on a replica on average, with bursts of twice as many. 1 to 100000; -1: no
	// limit.
	CallsPerSecond int `yaml:"callsPerSecond"`
	// Gives every caller all rights, without TLS. Allowed only if grpcAddress and restAddress are loopback addresses. The hub logs a
	// warning at the start.
	Unauthenticated bool `yaml:"unauthenticated"`
	// Serves the web page at /ui/ of restAddress. The page needs no token; its data comes from the API, with the token of the user
	// who signs in.
	Page bool `yaml:"page"`
}

// PeerConfig is the part of [Config] about the other replicas.
type PeerConfig struct {
	// The address on which this replica listens for the others; port 0 selects a free one.
	Address string `yaml:"address"`
	// The host and port at which the others reach this replica. Empty: POD_IP, or else the host of address (loopback if that is all
	// addresses), with the port of address.
	Advertise string `yaml:"advertise"`
}

// MetricsConfig is the part of [Config] about metrics.
type MetricsConfig struct {
	// The address of /metrics; port 0 selects a free one.
	Address string `yaml:"address"`
	// A directory with tls.crt and tls.key for the endpoint. Empty: the hub creates a certificate for the same names as the
	// webhook's.
	CertDir string `yaml:"certDir"`
	// Serves metrics without TLS and authentication. Otherwise scrapers need TLS and a bearer token of the hub cluster with the
	// right to get the non-resource URL /metrics there.
	Unauthenticated bool `yaml:"unauthenticated"`
	// How many workloads of a member have time series of their own; the others are summed. 1 to 100000.
	WorkloadsPerMember int `yaml:"workloadsPerMember"`
}

// ProbesConfig is the part of [Config] about probes.
type ProbesConfig struct {
	// The address of /healthz and /readyz; port 0 selects a free one.
	Address string `yaml:"address"`
}

// HubConfig is the part of [Config] about the hub cluster.
type HubConfig struct {
	// The namespace of the hub's own keys, Lease and certificates. Empty: POD_NAMESPACE, or else plimsoll-system.
	Namespace string `yaml:"namespace"`
	// The namespace of registration Secrets, which have type plimsoll.dev/kubeconfig there. Empty: hub.namespace. Then whoever may
	// read registrations can read the hub's keys as well, and condition Separate of the members is False.
	RegistrationNamespace string `yaml:"registrationNamespace"`
	// Also uses registrations in hub.namespace, of any type, unless registrationNamespace has one of the same name. For the time of
	// moving them.
	RegistrationsInOwnNamespace bool `yaml:"registrationsInOwnNamespace"`
	// A kubeconfig file for the hub cluster. Empty: the pod's service account, or else the environment's KUBECONFIG.
	Kubeconfig string `yaml:"kubeconfig"`
}

// ClustersConfig is the part of [Config] about members.
type ClustersConfig struct {
	// The networks of the members' API servers, checked on each connection. Empty: all but loopback, link-local, multicast and
	// unspecified addresses.
	AllowedNetworks []netip.Prefix `yaml:"allowedNetworks"`
	// Allows a kubeconfig to name a program that the hub runs. Whoever may write registration Secrets can then run code in the hub.
	AllowExec bool `yaml:"allowExec"`
	// Allows a kubeconfig to name files of the hub. Whoever may write registration Secrets can then read them.
	AllowFiles bool `yaml:"allowFiles"`
	// Allows a kubeconfig to name a proxy-url.
	AllowProxy bool `yaml:"allowProxy"`
	// Allows members without certificate verification, and http servers.
	AllowInsecure bool `yaml:"allowInsecure"`
	// Allows impersonation in a kubeconfig.
	AllowImpersonation bool `yaml:"allowImpersonation"`
	// Allows user name and password in a kubeconfig.
	AllowBasicAuth bool `yaml:"allowBasicAuth"`
	// The timeout of one request to a member, except watches. The timeout of a write is at most a third of
	// leaderElection.leaseDuration.
	RequestTimeout time.Duration `yaml:"requestTimeout"`
	// How long the hub waits until a kind of a member is cached. After that it works in the member without that kind, and retries.
	WarmTimeout time.Duration `yaml:"warmTimeout"`
	// The time between two health probes of a member. At least 1s.
	ProbeInterval time.Duration `yaml:"probeInterval"`
	// The timeout of a health probe.
	ProbeTimeout time.Duration `yaml:"probeTimeout"`
	// The age of a member's token, in percent of its lifetime, at which the hub renews it: it requests a new token in the member and
	// writes it to the registration Secret. 1 to 79; 0: the hub renews no tokens.
	TokenRenewalPercent int `yaml:"tokenRenewalPercent"`
	// How many requests per second the hub sends to one member.
	QPS float64 `yaml:"qps"`
	// How many requests the hub sends at once, above qps.
	Burst int `yaml:"burst"`
	// The maximum size of one response of a member in MiB, decompressed. One object, one page of a list, and the response to a write
	// may have an eighth of this, and at least 4 MiB. The hub fills caches in pages of 500 objects, or fewer if 500 take more than an
	// eighth of this. 1 to 1024.
	MaxAnswerMiB int `yaml:"maxAnswerMiB"`
	// The maximum size of one watch event in MiB. 1 to 64.
	MaxEventMiB int `yaml:"maxEventMiB"`
	// The approximate memory for all caches of a member in MiB, and half of it for one kind. The hub stops caching a kind that
	// exceeds it, and the member is Degraded. This limits what a hostile member can use: a few times what your largest member needs
	// is a good value; plimsoll_member_cache_bytes shows what it needs. 16 to 1048576.
	MaxCacheMiB int `yaml:"maxCacheMiB"`
	// The approximate memory for the caches of all members in MiB. When they exceed it, the member with the largest caches loses its
	// largest kind and is Degraded; the other members keep theirs. 0 is 70 % of GOMEMLIMIT, or else of nine tenths of the container's
	// memory limit, and no limit where there is neither. 0, or 16 to 1048576.
	MaxTotalCacheMiB int `yaml:"maxTotalCacheMiB"`
	// How many objects of one kind the hub caches in a member. 1000 to 10000000.
	MaxCachedObjects int `yaml:"maxCachedObjects"`
}

// SpotConfig is the part of [Config] about spot placement.
type SpotConfig struct {
	// The prefix of the labels and annotations of managed objects. With spotalis.io the hub replaces Spotalis for workloads with its
	// labels.
	AnnotationPrefix string `yaml:"annotationPrefix"`
	// Node labels with the capacity type. Each has a key, the values for spot and onDemand, and optionally a family: a label on all
	// nodes of a provider that labels only its spot nodes. The hub selects nodes by the first one that a member's nodes have. You
	// need none for Karpenter, EKS, GKE and AKS: the hub always recognises their labels, and selects by those that the member's
	// nodes have, or by karpenter.sh/capacity-type while there are none.
	NodeLabels []NodeLabelConfig `yaml:"nodeLabels"`
	// Policy values for workloads that have none on themselves or on their namespace.
	Defaults SpotDefaultsConfig `yaml:"defaults"`
	// How many replicas of a workload the hub moves at a time: a number, or a percentage that is at least one replica.
	MaxMoves MoveLimit `yaml:"maxMoves"`
	// The time between two batches of moves of a workload.
	MoveCooldown time.Duration `yaml:"moveCooldown"`
	// How many replicas of all workloads of a member the hub moves at a time to reach their mix; 0: no limit. Urgent moves for a
	// shortage or an interruption do not count.
	MaxMovesPerMember int `yaml:"maxMovesPerMember"`
	// The same limit for all members together.
	MaxMovesPerHub int `yaml:"maxMovesPerHub"`
	// How the hub moves running replicas: evict them, or release them, which starts the replacement before it evicts the replica. An
	// annotation of a workload or namespace overrides it.
	Strategy Strategy `yaml:"strategy"`
	// How long a replica waits for capacity without a sign that a node is coming, before the hub treats the capacity type as dry for
	// replicas of its shape. 5s to 1h. An annotation of a workload or namespace overrides it.
	PendingTimeout time.Duration `yaml:"pendingTimeout"`
	// How long replicas and probes wait for a node that is coming. At least pendingTimeout and probe.timeout, at most 1h.
	NodeStartTimeout time.Duration `yaml:"nodeStartTimeout"`
	// Probes: pause pods that test whether dry capacity has room again.
	Probe SpotProbeConfig `yaml:"probe"`
	// Signs that a node is about to be removed, in addition to those that the hub always recognises: a taint, optionally with effect
	// and value, or a condition, optionally with status (default True), reason and a part of its message. within is the time from
	// the sign to the removal; advisory: true means that the node may stay. ignore: true means that a match is no sign, also for
	// signs that the hub always recognises.
	Interruptions []InterruptionConfig `yaml:"interruptions"`
	// Plans and shows the plan, but moves, labels and places no pod in any member. Annotations set single members, namespaces and
	// workloads to read-only.
	ReadOnly bool `yaml:"readOnly"`
	// Tolerations that the hub adds to pods on spot slots.
	Tolerations []corev1.Toleration `yaml:"tolerations"`
	// Kinds of workloads to place in addition to Deployments, StatefulSets and ReplicaSets, by apiVersion and kind. They must have
	// the scale subresource and own pods, directly or through ReplicaSets. If the CRD stores replicas elsewhere, set replicasPath
	// and statusReplicasPath to specReplicasPath and statusReplicasPath of its scale subresource.
	WorkloadKinds []WorkloadKindConfig `yaml:"workloadKinds"`
}

// WorkloadKindConfig names a kind of workload.
type WorkloadKindConfig struct {
	// The group and version, such as argoproj.io/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// The kind as in manifests, such as Rollout.
	Kind string `yaml:"kind"`
	// The path of the wanted number of replicas. Empty: .spec.replicas.
	ReplicasPath string `yaml:"replicasPath"`
	// The path of the observed number of replicas. Empty: .status.replicas.
	StatusReplicasPath string `yaml:"statusReplicasPath"`
}

// NodeLabelConfig says which values of a node label mean spot, and which on-demand.
type NodeLabelConfig struct {
	// The label's key.
	Key string `yaml:"key"`
	// The values that mean spot.
	Spot []string `yaml:"spot"`
	// The values that mean on-demand.
	OnDemand []string `yaml:"onDemand"`
	// A label on all nodes of a provider that labels only its spot nodes: a node with this label and without key is on-demand.
	Family string `yaml:"family"`
}

// SpotProbeConfig is the part of [SpotConfig] about probes.
type SpotProbeConfig struct {
	// The namespace of probes in every member. In a member that is registered for other namespaces only, they run in the first of
	// those.
	Namespace string `yaml:"namespace"`
	// The image of probes. The hub deletes them before it runs.
	Image string `yaml:"image"`
	// The time from the start of a shortage to the first probe. It doubles with every probe that finds no capacity. At least 1s.
	FirstAfter time.Duration `yaml:"firstAfter"`
	// The maximum time between two probes. At least firstAfter.
	AtMostAfter time.Duration `yaml:"atMostAfter"`
	// How long a probe waits without a sign that a node is coming. At least 1s.
	Timeout time.Duration `yaml:"timeout"`
}

// InterruptionConfig is a sign that a node is about to go.
type InterruptionConfig struct {
	// The key of a taint.
	Taint string `yaml:"taint"`
	// The taint's effect. Empty: any.
	Effect string `yaml:"effect"`
	// The taint's value. Empty: any.
	Value string `yaml:"value"`
	// The type of a condition.
	Condition string `yaml:"condition"`
	// The condition's status. Empty: True.
	Status string `yaml:"status"`
	// The condition's reason. Empty: any.
	Reason string `yaml:"reason"`
	// A part of the condition's message. Empty: any.
	Message string `yaml:"message"`
	// The maximum time from the sign to the removal of the node. 0: unknown.
	Within time.Duration `yaml:"within"`
	// The sign may be withdrawn: pods leave such nodes at the pace of moves, within disruption windows. Not together with within.
	Advisory bool `yaml:"advisory"`
	// A match is no sign.
	Ignore bool `yaml:"ignore"`
}

// SpotDefaultsConfig holds policy values for workloads that have none.
type SpotDefaultsConfig struct {
	// The target share on spot capacity in percent, 0 to 100. Unset: none.
	SpotPercentage *int `yaml:"spotPercentage"`
	// The floor of on-demand replicas, 0 to 10000. Unset: none.
	MinOnDemand *int `yaml:"minOnDemand"`
	// When the disruption window opens: five cron fields. Empty: the hub may move replicas at any time. A workload or namespace with
	// a window of its own ignores this one.
	DisruptionSchedule string `yaml:"disruptionSchedule"`
	// How long the disruption window stays open, such as 2h. Only with disruptionSchedule.
	DisruptionDuration string `yaml:"disruptionDuration"`
	// The IANA time zone of disruptionSchedule, such as Europe/Berlin. Empty: UTC.
	DisruptionTimezone string `yaml:"disruptionTimezone"`
}

// Formats of logs.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// FleetConfig is the part of [Config] about FleetPlacements.
type FleetConfig struct {
	// Reconciles the FleetPlacements of the hub cluster; their definition can be installed later. Delete all FleetPlacements before
	// you disable this: otherwise each member places its workloads on its own again.
	Enabled bool `yaml:"enabled"`
	// The recorded history of the fleet.
	History FleetHistoryConfig `yaml:"history"`
}

// FleetHistoryConfig is the part of [FleetConfig] about the fleet's past. Without a value the hub records nothing.
type FleetHistoryConfig struct {
	// The ConfigMap in hub.namespace in which the hub records changes of spot supply by member and shape of pods, for plimsoll
	// replay. Create it without data. The hub writes it at most once a minute, and drops the oldest entries beyond 512 KiB. Empty:
	// the hub does not use one.
	ConfigMap string `yaml:"configMap"`
	// The folder in which the hub records them as files instead, at most 8 MiB. It must exist: mount a volume. Set only one of the two.
	Folder string `yaml:"folder"`
}

// LogConfig is the part of [Config] about logs.
type LogConfig struct {
	// debug, info, warn or error.
	Level slog.Level `yaml:"level"`
	// json, one object per line, or text, one line of key=value pairs.
	Format string `yaml:"format"`
}

// Default returns the configuration of an empty file in an empty environment.
func Default() Config {
	return Config{
		Controller: ControllerConfig{ResyncPeriod: 30 * time.Second, Workers: 5, WorkersPerMember: 10, Deadline: 30 * time.Second},
		LeaderElection: LeaderElectionConfig{
			Enabled: true, LeaseName: "plimsoll-hub",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
		Webhook: WebhookConfig{Port: 9443, ConfigName: "plimsoll", StopDelay: 5 * time.Second},
		API:     APIConfig{GRPCAddress: ":9090", RESTAddress: ":8443", Audience: "plimsoll", CallsPerSecond: 500, Page: true},
		Peer:    PeerConfig{Address: ":9444"},
		Metrics: MetricsConfig{Address: ":8080", WorkloadsPerMember: report.DefaultWorkloadSeries},
		Probes:  ProbesConfig{Address: ":8081"},
		Clusters: ClustersConfig{
			RequestTimeout: 10 * time.Second, WarmTimeout: 30 * time.Second,
			ProbeInterval: 10 * time.Second, ProbeTimeout: 5 * time.Second, TokenRenewalPercent: 66, QPS: 200, Burst: 400,
			MaxAnswerMiB: 64, MaxEventMiB: 4, MaxCacheMiB: 256, MaxCachedObjects: 200_000,
		},
		Spot: SpotConfig{AnnotationPrefix: "plimsoll.dev", MaxMoves: MoveLimit{policy.MoveLimit{Percent: 10}}, MoveCooldown: 10 * time.Second,
			MaxMovesPerMember: 100, MaxMovesPerHub: 500,
			Probe: SpotProbeConfig{
				Namespace: "plimsoll-system", Image: "registry.k8s.io/pause:3.10",
				FirstAfter: 2 * time.Minute, AtMostAfter: 30 * time.Minute, Timeout: 2 * time.Minute,
			},
			Strategy: Strategy(policy.StrategyEvict), PendingTimeout: time.Minute, NodeStartTimeout: 5 * time.Minute},
		Log: LogConfig{Level: slog.LevelInfo, Format: FormatJSON},
	}
}
