package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

const (
	// CASecret is the name of the Secret, in the hub's namespace, with the hub's certificate authority.
	CASecret = "plimsoll-hub-ca"

	// Stopping takes at most the sum of these, and of giving up the Lease.
	drainTime   = 10 * time.Second // for reconciles that are under way
	serverGrace = 5 * time.Second  // for calls that are under way
	stopTime    = 15 * time.Second // for everything else

	// startTime bounds what New asks the hub cluster for.
	startTime = 30 * time.Second
)

// Hub is one replica: members, queues, placement, webhook and API, and the ownership that says whether it acts.
type Hub struct {
	config    config.Config
	environ   []string
	log       *slog.Logger
	registry  *prometheus.Registry
	modules   []Module
	scheme    *k8sruntime.Scheme // knows the kinds of all modules
	hubConfig *rest.Config       // of the hub cluster
	installed bool               // a replica was here before this one
	started   time.Time          // when Run began

	listeners    *listeners
	ca           *pki.CA
	certificates certificates // of the webhook
	bundles      bundles
	ownership    ownership
	routes       routes
	peers        *peers
	forwarder    *webhook.Forwarder

	runtime   *reconcile.Runtime
	provider  *clusters.Provider
	tokens    *tokenKeeper
	engine    *spot.Engine
	fleet     *placing.Controller // nil: fleet placement is off
	installer *webhook.Installer
	kinds     *kinds.Installer
	admission *webhook.Metrics
	manager   mcmanager.Manager

	holds   holds
	events  *eventLog
	batches *api.Batches // of both sides of the API
	tasks   []task
}

// ownership is what the composition needs of one.
type ownership interface {
	Ownership
	clusters.Fence
	// MayWrite returns nil when a write to the member may begin now, else an error that says why not.
	MayWrite(member string) error
}

// task is something that runs as long as the hub does. A task that ends by itself stops the hub.
type task struct {
	name string
	run  func(ctx context.Context) error
}

// Option changes what [New] takes from its surroundings.
type Option func(*Hub)

// WithLog sets the logger; default: that of [LogConfig.Logger] to standard error.
func WithLog(log *slog.Logger) Option { return func(h *Hub) { h.log = log } }

// WithEnvironment replaces the process's environment; see [os.Environ].
func WithEnvironment(environ []string) Option { return func(h *Hub) { h.environ = environ } }

// WithHubCluster says where the hub cluster is, instead of hub.kubeconfig.
func WithHubCluster(config *rest.Config) Option { return func(h *Hub) { h.hubConfig = config } }

// New puts a replica together and takes its addresses, so that a port in use stops the start. It reads the hub's
// certificate authority from the hub cluster, or makes it. Nothing runs before [Hub.Run].
func New(ctx context.Context, config config.Config, options ...Option) (*Hub, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	h := &Hub{config: config, environ: os.Environ(), registry: prometheus.NewRegistry(), batches: api.NewBatches(), bundles: bundles{}, events: newEventLog()}
	for _, option := range options {
		option(h)
	}
	if h.log == nil {
		h.log = Logger(config.Log, os.Stderr)
	}
	h.log = plain.Log(h.log)
	h.config.Derive(h.environ)
	if err := h.takeIn(); err != nil {
		return nil, err
	}
	var err error
	if h.listeners, err = listen(&h.config); err != nil {
		return nil, err
	}
	if err := h.build(ctx); err != nil {
		h.listeners.close()
		return nil, err
	}
	return h, nil
}

// build creates every part, each after those that it stands on.
func (h *Hub) build(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		h.buildCluster, h.buildOwnership, h.buildMembers, h.buildPlacement, h.buildWebhook, h.buildControllers, h.buildFleet, h.buildAPI, h.buildMetrics, h.buildProbes,
		h.publish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// buildCluster finds the hub cluster and the hub's certificate authority in it.
func (h *Hub) buildCluster(ctx context.Context) (err error) {
	if h.hubConfig == nil {
		if h.hubConfig, err = hubClusterConfig(h.config.Hub.Kubeconfig, h.environ); err != nil {
			return err
		}
	}
	h.hubConfig = rest.CopyConfig(h.hubConfig)
	h.hubConfig.QPS, h.hubConfig.Burst, h.hubConfig.UserAgent = 50, 100, "plimsoll-hub"
	live, err := client.New(h.hubConfig, client.Options{})
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if h.installed, err = hasAuthority(ctx, live, h.config.Hub.Namespace); err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	if h.ca, err = pki.EnsureCA(ctx, live, h.config.Hub.Namespace, CASecret); err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	return h.registry.Register(expiryGauge("authority", h.ca.Expiry))
}

// hasAuthority reports whether any replica was here before: the first one makes the certificate authority.
func hasAuthority(ctx context.Context, live client.Client, namespace string) (bool, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: CASecret}, secret)
	return len(secret.Data[corev1.TLSPrivateKeyKey]) > 0, client.IgnoreNotFound(err)
}

// buildOwnership decides how it is known who acts.
func (h *Hub) buildOwnership(context.Context) error {
	self := advertised(&h.config, h.environ, h.listeners.peer.Addr())
	h.ownership = sole{address: self}
	if h.config.LeaderElection.Enabled {
		options := leaseOptions(&h.config)
		options.Identity, options.Log, options.Registerer = newIdentity(&h.config, h.environ, self), h.log, h.registry
		if h.installed {
			options.Suspect, options.Warm = true, func() bool { return h.warm() == nil }
		}
		l, err := leadership.New(h.hubConfig, options)
		if err != nil {
			return err
		}
		h.ownership = l
		h.tasks = append(h.tasks, task{"Lease watch", func(ctx context.Context) error {
			l.Watch(ctx)
			return nil
		}})
	}
	h.routes = routes{ownership: h.ownership, self: self}
	h.peers = newPeers(h.ca.PeerClientTLS(), h.log)
	return h.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plimsoll_owner", Help: "1 while this replica may act on members.",
	}, func() float64 {
		if h.ownership.MineAny() {
			return 1
		}
		return 0
	}))
}

// errEnded says that a part ended though nobody asked it to.
var errEnded = errors.New("ended by itself")
