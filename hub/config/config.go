package config

import (
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

// Config is the whole configuration of a hub replica. Every key can be set in the file and by an environment variable
// ([EnvName]); docs/configuration.md is made from the comments of this file.
type Config struct {
	// What all controllers have in common.
	Controller ControllerConfig `yaml:"controller"`
	// Which replica acts. The Lease lives in the hub's namespace, unless leaseNamespace says otherwise.
	LeaderElection LeaderElectionConfig `yaml:"leaderElection"`
	// The namespaces of a member in which workloads may be managed, by their labels (a Kubernetes label selector). Empty:
	// all.
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
	// What a registration Secret may ask for, and how members are reached.
	Clusters ClustersConfig `yaml:"clusters"`
	// Spot placement.
	Spot SpotConfig `yaml:"spot"`
	// What is asked of WebApps, beyond the rules in their definition.
	WebApp WebAppConfig `yaml:"webapp"`
	// FleetPlacements: workloads that run over several members.
	Fleet FleetConfig `yaml:"fleet"`
	// A section for each module that was built into the hub, by the module's name; what is in one, the module's own documentation
	// says. A variable is PLIMSOLL_MODULES_, the module's name and the key, in capitals, with _ for dots and dashes.
	Modules ModuleSections `yaml:"modules"`
	// Logs go to standard error, one JSON object per line.
	Log LogConfig `yaml:"log"`
}

// ControllerConfig is the part of [Config] that all controllers share.
type ControllerConfig struct {
	// How often every object is looked at again without an event. At least 5s.
	ResyncPeriod time.Duration `yaml:"resyncPeriod"`
	// How many reconciles each controller runs at a time in one member. 1 to 1000.
	Workers int `yaml:"workers"`
	// How many reconciles all controllers together run at a time in one member. 1 to 1000.
	WorkersPerMember int `yaml:"workersPerMember"`
	// How long one reconcile may take. At least 1s.
	Deadline time.Duration `yaml:"deadline"`
	// The networks in which HTTPS endpoints outside the fleet may be that objects depend on, checked when they are dialled.
	// Empty: anywhere but loopback, link-local, multicast and unspecified addresses.
	ExternalNetworks []netip.Prefix `yaml:"externalNetworks"`
}

// LeaderElectionConfig is the part of [Config] about ownership of members.
type LeaderElectionConfig struct {
	// With false this replica always acts: only safe when there is exactly one, updates included.
	Enabled bool `yaml:"enabled"`
	// The name of the Lease.
	LeaseName string `yaml:"leaseName"`
	// The namespace of the Lease, in which the hub's account may create and update Leases. Empty: hub.namespace.
	LeaseNamespace string `yaml:"leaseNamespace"`
	// How this replica is called in the Lease, before what tells its process from all others. Empty: POD_NAME, or else the name
	// of the host.
	Identity string `yaml:"identity"`
	// How long a Lease holds without being renewed, and so how long a takeover from a dead replica takes. Whole seconds, at
	// least 3s.
	LeaseDuration time.Duration `yaml:"leaseDuration"`
	// How long the owner tries to renew before it stops acting. Less than leaseDuration.
	RenewDeadline time.Duration `yaml:"renewDeadline"`
	// How long between two tries to renew or to take over. At most a third of leaseDuration, and less than renewDeadline by a
	// fifth.
	RetryPeriod time.Duration `yaml:"retryPeriod"`
}

// WebhookConfig is the part of [Config] about admission.
type WebhookConfig struct {
	// The port that the endpoint listens on; 0 takes a free one.
	Port int `yaml:"port"`
	// The address that it listens on. Empty: all.
	BindAddress string `yaml:"bindAddress"`
	// A folder with tls.crt and tls.key, read again when they change; ca.crt beside them is the bundle that members are told
	// to trust. Empty: the hub makes its own certificate.
	CertDir string `yaml:"certDir"`
	// A file with certificates of authorities, in PEM, read again when it changes: calls of API servers must come with a client
	// certificate of one of these, beside the token in their URL. Conversions are excepted, for which API servers never show one.
	// Empty: no certificate is asked for.
	ClientCA string `yaml:"clientCA"`
	// Where the members' API servers find the endpoint, as an https URL. Empty: the bindAddress and
	// port, if that is set, or else https://plimsoll-webhook.<hub.namespace>.svc:443.
	URL string `yaml:"url"`
	// The name of the MutatingWebhookConfiguration in every member.
	ConfigName string `yaml:"configName"`
	// Further DNS names for the certificate that the hub makes, beside those of its Services, webhook.url and localhost.
	DNSNames []string `yaml:"dnsNames"`
	// Further IP addresses for the certificate that the hub makes, beside those of loopback.
	IPs []netip.Addr `yaml:"ips"`
	// How long a replica that stops goes on serving after it has ceased to be ready, while members' calls are routed to others.
	// In the second half of it each answer ends its connection. Another replica may act meanwhile. At most 15s.
	StopDelay time.Duration `yaml:"stopDelay"`
}

// APIConfig is the part of [Config] about the API.
type APIConfig struct {
	// Where gRPC is served; port 0 takes a free one.
	GRPCAddress string `yaml:"grpcAddress"`
	// Where REST and /openapi.json are served; port 0 takes a free one.
	RESTAddress string `yaml:"restAddress"`
	// The host and port at which people reach gRPC from outside, which is published for the plimsoll command. Empty: it opens
	// a way of its own through the hub cluster's API server.
	Advertise string `yaml:"advertise"`
	// A folder with the tls.crt and tls.key of both. Empty: a certificate of the hub's own authority, for the same names as
	// the webhook's.
	CertDir string `yaml:"certDir"`
	// A file with certificates of authorities, in PEM, read again when it changes: whoever calls without a token may show a client
	// certificate of one of these. Its common name is the user, its organizations are the groups, as for the API server. Empty: no
	// certificate is asked for.
	ClientCA string `yaml:"clientCA"`
	// Serves without TLS. Only allowed when grpcAddress and restAddress are loopback addresses.
	Plaintext bool `yaml:"plaintext"`
	// The audience that bearer tokens must be made for.
	Audience string `yaml:"audience"`
	// How many calls each caller may make on a replica in a second, on average; twice as many at once. 1 to 100000; -1: any
	// number.
	CallsPerSecond int `yaml:"callsPerSecond"`
	// Takes every caller for an administrator, without TLS. Only allowed when grpcAddress and restAddress are loopback
	// addresses; announced at the start.
	Unauthenticated bool `yaml:"unauthenticated"`
	// Serves the web page at /ui/ of restAddress. The page itself takes no token; what it shows comes from the API, to those who sign in.
	Page bool `yaml:"page"`
}

// PeerConfig is the part of [Config] about the other replicas.
type PeerConfig struct {
	// Where this replica listens for the others; port 0 takes a free one.
	Address string `yaml:"address"`
	// The host and port at which the others reach this replica. Empty: the environment's POD_IP, or else the listening host
	// (loopback when that is all addresses), with the port of address.
	Advertise string `yaml:"advertise"`
}

// MetricsConfig is the part of [Config] about metrics.
type MetricsConfig struct {
	// Where /metrics is served; port 0 takes a free one.
	Address string `yaml:"address"`
	// A folder with the tls.crt and tls.key of the endpoint. Empty: a certificate of the hub's own authority, for the same
	// names as the webhook's.
	CertDir string `yaml:"certDir"`
	// Serves metrics in plain text to whoever reaches the address. Otherwise a scraper needs TLS and a bearer token of the hub
	// cluster whose owner may get the non-resource URL /metrics there.
	Unauthenticated bool `yaml:"unauthenticated"`
	// How many workloads of a member have series of their own; further ones are added up. 1 to 100000.
	WorkloadsPerMember int `yaml:"workloadsPerMember"`
}

// ProbesConfig is the part of [Config] about probes.
type ProbesConfig struct {
	// Where /healthz and /readyz are served; port 0 takes a free one.
	Address string `yaml:"address"`
}

// HubConfig is the part of [Config] about the hub cluster.
type HubConfig struct {
	// The namespace of the hub's own keys, Lease and certificates. Empty: the environment's POD_NAMESPACE, or else
	// plimsoll-system.
	Namespace string `yaml:"namespace"`
	// The namespace of registration Secrets, which are of type plimsoll.dev/kubeconfig there. Empty: that of the hub's own keys, as
	// it was before there were two; whoever may read registrations can then read the keys, and the members' condition Separate is
	// False.
	RegistrationNamespace string `yaml:"registrationNamespace"`
	// Takes registrations from namespace as well, of any type, where registrationNamespace has none of the name: while they are
	// moved.
	RegistrationsInOwnNamespace bool `yaml:"registrationsInOwnNamespace"`
	// A kubeconfig file for the hub cluster. Empty: the pod's service account, or else the environment's KUBECONFIG.
	Kubeconfig string `yaml:"kubeconfig"`
}

// ClustersConfig is the part of [Config] about members.
type ClustersConfig struct {
	// The networks in which members' API servers may be, checked when they are dialled. Empty: anywhere but loopback,
	// link-local, multicast and unspecified addresses.
	AllowedNetworks []netip.Prefix `yaml:"allowedNetworks"`
	// Lets a kubeconfig name a program that the hub runs. Whoever may write registration Secrets can then run code in the hub.
	AllowExec bool `yaml:"allowExec"`
	// Lets a kubeconfig name files of the hub. Whoever may write registration Secrets can then read them.
	AllowFiles bool `yaml:"allowFiles"`
	// Lets a kubeconfig name a proxy-url.
	AllowProxy bool `yaml:"allowProxy"`
	// Accepts members whose certificate is not checked, and http servers.
	AllowInsecure bool `yaml:"allowInsecure"`
	// Accepts impersonation in a kubeconfig.
	AllowImpersonation bool `yaml:"allowImpersonation"`
	// Accepts user name and password in a kubeconfig.
	AllowBasicAuth bool `yaml:"allowBasicAuth"`
	// How long one request to a member may take, watches apart. A write gets at most a third of leaderElection.leaseDuration.
	RequestTimeout time.Duration `yaml:"requestTimeout"`
	// How long a kind of a member may take until it is cached; after that the member goes on without it.
	WarmTimeout time.Duration `yaml:"warmTimeout"`
	// How long between two health probes of a member. At least 1s.
	ProbeInterval time.Duration `yaml:"probeInterval"`
	// How long a health probe may take.
	ProbeTimeout time.Duration `yaml:"probeTimeout"`
	// The share of its life, in percent, after which the hub renews a member's token: it requests another one in the member, and
	// writes it into the registration Secret. 1 to 79; 0: the hub renews no token.
	TokenRenewalPercent int `yaml:"tokenRenewalPercent"`
	// How many requests per second the hub sends to one member.
	QPS float64 `yaml:"qps"`
	// How many requests above qps it sends at once.
	Burst int `yaml:"burst"`
	// How many MiB one answer of a member may have, after decompression. Caches are filled in pages of 500 objects, or of fewer
	// where these have more than an eighth of it. 1 to 1024.
	MaxAnswerMiB int `yaml:"maxAnswerMiB"`
	// How many MiB one event of a watch may have. 1 to 64.
	MaxEventMiB int `yaml:"maxEventMiB"`
	// How many MiB all caches of a member may take in memory, about, and those of one kind half of it. A kind that exceeds it is
	// no longer cached, and the member is Degraded. What a hostile member can take is bounded by this: some times what the
	// largest member takes is a good value. 16 to 1048576.
	MaxCacheMiB int `yaml:"maxCacheMiB"`
	// How many objects of one kind may be cached in a member. 1000 to 10000000.
	MaxCachedObjects int `yaml:"maxCachedObjects"`
}

// SpotConfig is the part of [Config] about spot placement.
type SpotConfig struct {
	// The prefix of the labels and annotations of managed objects. With spotalis.io the hub is a drop-in for workloads that
	// are labelled for that project.
	AnnotationPrefix string `yaml:"annotationPrefix"`
	// The node labels that tell the capacity type, the one that pods are steered with first, where nodes carry it: key, the
	// values that mean spot, those that mean onDemand, and optionally a family, which is a label that all nodes of a provider
	// have which labels its spot nodes only. Nothing has to be set for Karpenter, EKS, GKE and AKS: their labels are always
	// recognised, and pods are steered by those that a member's nodes carry; by karpenter.sh/capacity-type while none is known.
	NodeLabels []NodeLabelConfig `yaml:"nodeLabels"`
	// Policy values for workloads that neither say themselves nor have them from their namespace.
	Defaults SpotDefaultsConfig `yaml:"defaults"`
	// How much of a workload is moved at a time: a number of replicas, or a percentage of them, at least one replica.
	MaxMoves MoveLimit `yaml:"maxMoves"`
	// How long between two batches of moves of a workload.
	MoveCooldown time.Duration `yaml:"moveCooldown"`
	// How many replicas of all workloads of a member may be on the move for their mix at a time; 0: no limit. What a drought or
	// an interruption makes urgent does not count.
	MaxMovesPerMember int `yaml:"maxMovesPerMember"`
	// The same for all members together.
	MaxMovesPerHub int `yaml:"maxMovesPerHub"`
	// How replicas that serve are moved: evict them, or release them, which makes the replacement before the replica goes. An
	// annotation of a workload or namespace overrides it.
	Strategy Strategy `yaml:"strategy"`
	// How long a replica may wait for capacity without any sign of a node that is on its way until the capacity type counts as
	// dry for replicas like it. 5s to 1h. An annotation of a workload or namespace overrides it.
	PendingTimeout time.Duration `yaml:"pendingTimeout"`
	// How long a node that is on its way may take: as long as that, replicas and probes wait for it. At least pendingTimeout and
	// probe.timeout, at most 1h.
	NodeStartTimeout time.Duration `yaml:"nodeStartTimeout"`
	// Probes: pause pods that find out whether capacity that was dry has room again.
	Probe SpotProbeConfig `yaml:"probe"`
	// The signs that a node is about to go, beside those that are always recognised: a taint, with its effect and value if
	// they matter, or a condition, with its status (True where none is given), its reason and a part of its message if they
	// matter; within says how soon after the sign the node goes, and advisory that it may stay. ignore: true says that what
	// matches is no sign, also of those that are always recognised.
	Interruptions []InterruptionConfig `yaml:"interruptions"`
	// Shows what would be done and moves, stamps and admits nothing, in any member. Members, namespaces and workloads are set
	// to read-only by an annotation.
	ReadOnly bool `yaml:"readOnly"`
	// Tolerations that pods on spot slots get in addition.
	Tolerations []corev1.Toleration `yaml:"tolerations"`
	// Kinds of workloads that are placed beside Deployments, StatefulSets and ReplicaSets: those that can be scaled and own pods,
	// directly or through ReplicaSets, by apiVersion and kind; where the CRD keeps the replicas elsewhere, also replicasPath and
	// statusReplicasPath, which are specReplicasPath and statusReplicasPath of its scale subresource.
	WorkloadKinds []WorkloadKindConfig `yaml:"workloadKinds"`
}

// WorkloadKindConfig names a kind of workload.
type WorkloadKindConfig struct {
	// The group and version, such as argoproj.io/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// The kind as in manifests, such as Rollout.
	Kind string `yaml:"kind"`
	// Where the number of replicas that are wanted is. Empty: .spec.replicas.
	ReplicasPath string `yaml:"replicasPath"`
	// Where the number of replicas that were counted is. Empty: .status.replicas.
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
	// A label that all nodes of a provider have which labels its spot nodes only: a node with it and without key is
	// on-demand.
	Family string `yaml:"family"`
}

// SpotProbeConfig is the part of [SpotConfig] about probes.
type SpotProbeConfig struct {
	// The namespace of probes in every member. A member that is registered for other namespaces only has them in the first of
	// those.
	Namespace string `yaml:"namespace"`
	// The image of probes. They are removed before it runs.
	Image string `yaml:"image"`
	// How long after a capacity type was found dry the first probe starts. It doubles with every probe that was in vain. At least 1s.
	FirstAfter time.Duration `yaml:"firstAfter"`
	// The most time between two probes. At least firstAfter.
	AtMostAfter time.Duration `yaml:"atMostAfter"`
	// How long a probe waits without any sign of a node that is on its way. At least 1s.
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
	// How soon after the sign the node goes at the latest. 0: nobody knows.
	Within time.Duration `yaml:"within"`
	// Says that the sign is a wish that may be taken back: pods leave such nodes at the pace of moves, within disruption windows.
	// Not together with within.
	Advisory bool `yaml:"advisory"`
	// Says that what matches is no sign.
	Ignore bool `yaml:"ignore"`
}

// SpotDefaultsConfig holds policy values for workloads that have none.
type SpotDefaultsConfig struct {
	// The target share on spot in percent, 0 to 100. Unset: none.
	SpotPercentage *int `yaml:"spotPercentage"`
	// The floor of on-demand replicas, 0 to 10000. Unset: none.
	MinOnDemand *int `yaml:"minOnDemand"`
	// When the window opens in which replicas may be moved: five cron fields. Empty: at any time. A workload or namespace
	// with a window of its own uses nothing of this one.
	DisruptionSchedule string `yaml:"disruptionSchedule"`
	// How long the window stays open, such as 2h. With disruptionSchedule only.
	DisruptionDuration string `yaml:"disruptionDuration"`
	// The IANA time zone of disruptionSchedule, such as Europe/Berlin. Empty: UTC.
	DisruptionTimezone string `yaml:"disruptionTimezone"`
}

// WebAppConfig is the part of [Config] about WebApps.
type WebAppConfig struct {
	// What becomes of a WebApp with an image that names neither a tag nor a digest: deny, warn or allow. What was stored before
	// is only warned about.
	ImagePolicy string `yaml:"imagePolicy"`
	// How many replicas a WebApp may ask for, itself or through its autoscaler. 1 to 10000.
	MaxReplicas int `yaml:"maxReplicas"`
}

// Formats of logs.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// FleetConfig is the part of [Config] about FleetPlacements.
type FleetConfig struct {
	// With true the hub keeps the FleetPlacements of the hub cluster, whose definition may come later. Delete all of them before
	// this is switched off: their members would go back to the placement of their own.
	Enabled bool `yaml:"enabled"`
	// What the hub keeps of the fleet's past.
	History FleetHistoryConfig `yaml:"history"`
}

// FleetHistoryConfig is the part of [FleetConfig] about the fleet's past.
type FleetHistoryConfig struct {
	// The ConfigMap in hub.namespace in which the hub records changes of spot supply by member and FleetPlacement, in at most 512 KiB,
	// and once a minute at most: the oldest are forgotten. You make it, empty. plimsoll replay reads it. Without a value nothing is recorded.
	ConfigMap string `yaml:"configMap"`
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
		Metrics: MetricsConfig{Address: ":8080", WorkloadsPerMember: spot.DefaultWorkloadSeries},
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
		WebApp: WebAppConfig{ImagePolicy: string(webapp.ImagesWarned), MaxReplicas: 1000},
		Log:    LogConfig{Level: slog.LevelInfo, Format: FormatJSON},
	}
}
