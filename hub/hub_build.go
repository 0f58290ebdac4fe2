package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// buildMembers creates the runtime, the provider and the manager that engages members.
func (h *Hub) buildMembers(context.Context) (err error) {
	if h.runtime, err = reconcile.NewRuntime(runtimeOptions(h)); err != nil {
		return err
	}
	h.holds = holds{runtime: h.runtime, ownership: h.ownership, peers: h.peers, log: h.log}
	h.holds.follow()
	stop := stopTime * 2 / 3
	local, err := manager.New(h.hubConfig, manager.Options{
		Scheme: h.scheme, Logger: logr.FromSlogHandler(h.log.Handler()),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", GracefulShutdownTimeout: &stop,
	})
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	if shared := h.config.Hub.Namespace; shared == h.config.Hub.RegistrationNamespace {
		h.log.Warn("registrations and the hub's own keys share a namespace: whoever may read registrations may read the keys",
			"namespace", shared, "set", "hub.registrationNamespace")
	}
	options := memberOptions(h)
	options.Events = ownEvents{EventRecorder: local.GetEventRecorder("plimsoll-hub"), routes: h.routes}
	h.holds.events = options.Events
	if h.provider, err = clusters.New(options); err != nil {
		return err
	}
	if h.manager, err = mcmanager.WithMultiCluster(local, h.provider); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	h.tasks = append(h.tasks, task{"manager", h.manager.Start})
	return h.buildTokens()
}

// buildTokens creates what renews the members' tokens.
func (h *Hub) buildTokens() error {
	core, err := corev1client.NewForConfig(h.hubConfig)
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	h.tokens = newTokenKeeper(h, core)
	h.tasks = append(h.tasks, task{"member tokens", h.tokens.run})
	return h.registry.Register(h.tokens)
}

// buildPlacement creates the engine, which follows members and answers admissions.
func (h *Hub) buildPlacement(context.Context) error {
	options, err := spotOptions(h)
	if err != nil {
		return err
	}
	options.ReadOnlyBy, options.SteerBy = readOnlyBy(h.provider), steerBy(h.provider)
	options.CordonedMember = cordonedMember(h.provider)
	options.OnEvent = h.events.placement
	if h.config.LeaderElection.Enabled {
		options.Acts = func(member string) bool { _, mine := h.ownership.Mine(member); return mine }
	}
	if h.engine, err = spot.NewEngine(options); err != nil {
		return err
	}
	h.ownership.Subscribe(h.engine.OwnershipChanged)
	if err := h.manager.Add(h.engine); err != nil {
		return fmt.Errorf("spot placement: %w", err)
	}
	return nil
}

// buildWebhook creates the admission endpoint for members, and the same for the other replicas beside the API's.
func (h *Hub) buildWebhook(context.Context) (err error) {
	if h.admission, err = webhook.NewMetrics(h.registry); err != nil {
		return err
	}
	h.forwarder = webhook.NewForwarder(h.ca.PeerClientTLS())
	tokens := webhook.NewTokens(h.ca.TokenKey(), registrations(h.provider))
	handler := webhook.NewHandler(webhook.HandlerOptions{
		Tokens: tokens, Router: h.routes, Forwarder: h.forwarder, Placer: h.engine,
		Metrics: h.admission, Log: h.log,
	})
	aboutKinds, err := kinds.NewHandler(tokens, h.resources(), h.registry, h.log)
	if err != nil {
		return err
	}
	if h.certificates, err = newCertificates(h.config.Webhook.CertDir, h.ca, &h.config); err != nil {
		return fmt.Errorf("webhook.certDir: %w", err)
	}
	serves, calls, err := h.askClients(h.certificates.ServerTLS(), aboutKinds.Beside(handler))
	if err != nil {
		return err
	}
	if h.listeners.webhook, err = webhook.Listen("webhook", webhookAddress(&h.config), serves, calls, h.admission, h.log); err != nil {
		return err
	}
	if err := h.registry.Register(newExpiry("webhook", serves)); err != nil {
		return err
	}
	h.tasks = append(h.tasks, task{"webhook", h.listeners.webhook.Start})
	return h.buildPeer(handler.Peer())
}

// askClients has the webhook ask for client certificates, where the configuration says whose.
func (h *Hub) askClients(serves *tls.Config, calls http.Handler) (*tls.Config, http.Handler, error) {
	if h.config.Webhook.ClientCA == "" {
		return serves, calls, nil
	}
	authority, err := pki.ClientAuthorityOf(h.config.Webhook.ClientCA)
	if err != nil {
		return nil, nil, fmt.Errorf("webhook.clientCA: %w", err)
	}
	return authority.Asking(serves), webhook.WithCertificate(calls, h.admission, kinds.ConvertPattern), nil
}

// buildPeer creates the server for the other replicas.
func (h *Hub) buildPeer(admission http.Handler) error {
	stopping, stop := context.WithCancel(context.Background())
	between, err := api.NewPeer(stopping, h.backend(), h.ca.PeerServerTLS(), h.log)
	if err != nil {
		stop()
		return err
	}
	server := &http.Server{
		Handler: peerHandler(between, admission), TLSConfig: h.ca.PeerServerTLS(), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(h.log.With("server", "peer").Handler(), slog.LevelDebug),
	}
	h.tasks = append(h.tasks, task{"peer", func(ctx context.Context) error {
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return serveHTTP(ctx, server, func() error { return server.ServeTLS(h.listeners.peer, "", "") })
	}})
	return nil
}

// buildControllers registers what reconciles, after the engine, which must know a member's pods first.
func (h *Hub) buildControllers(context.Context) error {
	controllers, err := h.engine.Controllers(h.runtime, spotSchedule(&h.config))
	if err != nil {
		return err
	}
	options, err := h.installerOptions()
	if err != nil {
		return err
	}
	if h.installer, err = webhook.NewInstaller(options); err != nil {
		return err
	}
	if err := h.registry.Register(reachedWebhooks{h.installer.Reached, h.routes.Mine}); err != nil {
		return err
	}
	warnOfClusterLocal(h.log, options.Wanted().BaseURL)
	installs, err := reconcile.For(h.runtime, webhook.ControllerName, h.installer).Kind(h.installer.Kind()).Register()
	if err != nil {
		return err
	}
	for _, controller := range append(controllers, installs) {
		if err := h.addController(controller, h.engine.Cached(controller)); err != nil {
			return err
		}
	}
	if err := h.buildModules(options); err != nil {
		return err
	}
	return h.provider.AddAccess(append(spot.Access(), h.installer.Access()...)...)
}

func (h *Hub) backend() api.Backend {
	members := shownMembers{
		provider: h.provider, mine: h.routes.Mine,
		// Asked when the API is, by when the installer is there.
		installation: func(member string) webhook.Installation { return h.installer.Installation(member) },
		kinds:        h.kindStates,
		token:        h.tokens.condition,
		checkSteerBy: func(value string) error { return h.engine.CheckSteerBy(value) },
		namespace:    h.config.Hub.RegistrationNamespace,
	}
	backend := api.Backend{Members: members, Workloads: h.engine, Objects: h.runtime, Ownership: h.routes, Events: h.events.journal, Batches: h.batches}
	if h.config.Fleet.Enabled {
		backend.Fleet = fleetPlacements{h}
	}
	return backend
}

// callersCAs returns the authorities of the API's client certificates; nil: none are asked for.
func callersCAs(c *config.APIConfig) (func() *x509.CertPool, error) {
	if c.ClientCA == "" {
		return nil, nil
	}
	authority, err := pki.ClientAuthorityOf(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("api.clientCA: %w", err)
	}
	return authority.Pool, nil
}

// buildAPI creates the API's public side.
func (h *Hub) buildAPI(context.Context) error {
	options := h.apiOptions()
	if !options.Unauthenticated {
		if err := h.admit(&options); err != nil {
			return err
		}
	}
	if !plaintext(&h.config.API) {
		certificates, err := newCertificates(h.config.API.CertDir, h.ca, &h.config)
		if err != nil {
			return fmt.Errorf("api.certDir: %w", err)
		}
		options.TLS = certificates.ServerTLS()
		if err := h.registry.Register(newExpiry("api", options.TLS)); err != nil {
			return err
		}
		h.bundles[apiCAKey] = certificates.Bundle
		h.bundles[apiAddressKey] = apiAddress(&h.config)
	}
	var err error
	if options.ClientCAs, err = callersCAs(&h.config.API); err != nil {
		return err
	}
	if options.Page, err = newPage(&h.config.API); err != nil {
		return err
	}
	public, err := api.New(options)
	if err != nil {
		return err
	}
	h.tasks = append(h.tasks, task{"API", func(ctx context.Context) error { return public.Run(ctx, h.listeners.grpc, h.listeners.rest) }})
	return nil
}

// admit lets the hub cluster say who callers are and what they may do.
func (h *Hub) admit(options *api.Options) error {
	// Strangers make the hub ask these questions, so they have a budget of their own.
	asks := rest.CopyConfig(h.hubConfig)
	asks.QPS, asks.Burst = 200, 400
	tokens, err := authenticationclient.NewForConfig(asks)
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	access, err := authorizationclient.NewForConfig(asks)
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	if options.Authenticator, err = auth.NewTokenReviewer(tokens.TokenReviews(), h.config.API.Audience); err != nil {
		return err
	}
	options.Authorizer = auth.NewAccessReviewer(access.SubjectAccessReviews())
	return nil
}

// readiness is what has to be as it should for calls to be sent to this replica.
func (h *Hub) readiness() []check {
	return []check{{"registrations", h.synced}, {"members", h.warmed}, {"webhook", h.listeners.webhook.Serving}, {"stopping", h.holds.stopped}}
}

// buildProbes creates the endpoints for Kubernetes.
func (h *Hub) buildProbes(context.Context) error {
	probes := plainServer(probeHandler(h.readiness()))
	h.tasks = append(h.tasks, task{"probes", func(ctx context.Context) error {
		return serveHTTP(ctx, probes, func() error { return probes.Serve(h.listeners.probes) })
	}})
	return nil
}

// warm returns an error while members are being connected to or warmed. Those that cannot be reached are not waited for.
func (h *Hub) warm() error {
	if err := h.synced(); err != nil {
		return err
	}
	return connected(h.provider.Statuses())
}

// connected returns an error while members are being connected to. Anybody may ask for it, so it names none of them.
func connected(members []clusters.Status) error {
	connecting := 0
	for _, status := range members {
		if status.State == clusters.StateConnecting {
			connecting++
		}
	}
	if connecting > 0 {
		return fmt.Errorf("%d of %d members are being connected to; the API and the log say which", connecting, len(members))
	}
	return nil
}

// warmed returns an error while another replica should act or answer rather than this one, until it has had
// clusters.warmTimeout for it.
func (h *Hub) warmed() error {
	if h.ownership.MineAny() || time.Since(h.started) > h.config.Clusters.WarmTimeout {
		return nil
	}
	return h.warm()
}

func (h *Hub) synced() error {
	if !h.provider.Synced() {
		return fmt.Errorf("the registration Secrets of namespace %s have not been read yet", h.config.Hub.RegistrationNamespace)
	}
	return nil
}
