package hub

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

const (
	metricsPath = "/metrics"
	// maxScrapes is how many scrapes are answered at a time; each gathers all series.
	maxScrapes = 4
)

// buildMetrics creates the endpoint for Prometheus. What metrics say of members goes only to whom the hub cluster allows it,
// unless the configuration opens it to everybody.
func (h *Hub) buildMetrics(context.Context) error {
	scraped := scrapes(h.gathered())
	if h.config.Metrics.Unauthenticated {
		h.log.Warn("metrics are unauthenticated: everybody who reaches the address can read them", "address", h.listeners.metrics.Addr().String())
		h.serveMetrics(scraped, func(server *http.Server) error { return server.Serve(h.listeners.metrics) })
		return nil
	}
	guarded, err := h.guardMetrics(scraped)
	if err != nil {
		return err
	}
	certificates, err := newCertificates(h.config.Metrics.CertDir, h.ca, &h.config)
	if err != nil {
		return fmt.Errorf("metrics.certDir: %w", err)
	}
	serves := certificates.ServerTLS()
	if err := h.registry.Register(newExpiry("metrics", serves)); err != nil {
		return err
	}
	h.bundles[MetricsCAKey] = certificates.Bundle
	h.serveMetrics(guarded, func(server *http.Server) error {
		server.TLSConfig = serves
		return server.ServeTLS(h.listeners.metrics, "", "")
	})
	return nil
}

// gathered are the hub's own series, and those of controller-runtime and client-go.
func (h *Hub) gathered() prometheus.Gatherer {
	return prometheus.Gatherers{h.registry, metrics.Registry}
}

// scrapes answers with what is gathered, a few at a time; others get 503.
func scrapes(gathered prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(gathered, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	})
}

func (h *Hub) serveMetrics(handler http.Handler, serve func(*http.Server) error) {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, handler)
	server := plainServer(mux)
	server.ErrorLog = slog.NewLogLogger(h.log.With("server", "metrics").Handler(), slog.LevelDebug)
	h.tasks = append(h.tasks, task{"metrics", func(ctx context.Context) error {
		return serveHTTP(ctx, server, func() error { return serve(server) })
	}})
}

// guardMetrics lets the hub cluster say who may scrape. The API's own reviewers are used and not controller-runtime's filter:
// they bound what a flood of bad tokens costs the hub cluster.
func (h *Hub) guardMetrics(scraped http.Handler) (http.Handler, error) {
	asks := rest.CopyConfig(h.hubConfig)
	asks.QPS, asks.Burst = 20, 40 // strangers make the hub ask, so it has a budget of its own
	tokens, err := authenticationclient.NewForConfig(asks)
	if err != nil {
		return nil, fmt.Errorf("hub cluster: %w", err)
	}
	access, err := authorizationclient.NewForConfig(asks)
	if err != nil {
		return nil, fmt.Errorf("hub cluster: %w", err)
	}
	authenticator, err := auth.NewPodTokenReviewer(tokens.TokenReviews())
	if err != nil {
		return nil, err
	}
	return api.Guard(metricsPath, authenticator, auth.NewAccessReviewer(access.SubjectAccessReviews()), h.log, scraped), nil
}
