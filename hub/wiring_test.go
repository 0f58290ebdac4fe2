package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/internal/sample"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
)

// wired is what the parts of a hub are given, as far as it follows from the configuration. It is made by the functions that
// the composition itself calls.
func wired(t *testing.T, config config.Config) []any {
	t.Helper()
	h := &Hub{config: config, ownership: sole{}, events: newEventLog()}
	members, runtime := memberOptions(h), runtimeOptions(h)
	members.Scheme, runtime.Scheme = nil, nil
	spots, err := spotOptions(h)
	if err != nil {
		t.Fatal(err)
	}
	configurations, err := wanted(&config, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	names, ips := certificateNames(&config)
	_, noKubeconfig := hubClusterConfig(config.Hub.Kubeconfig, nil)
	return []any{
		members, runtime, spots, spotSchedule(&config), configurations, config.Webhook.ConfigName,
		config.LeaderElection.Enabled, leaseOptions(&config),
		wantedAddresses(&config), webhookAddress(&config), advertised(&config, nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}),
		names, ips, servesUntil(&config, time.Time{}), certificateError(config.Webhook.CertDir), certificateError(config.API.CertDir),
		clientError(h), callersError(&config.API), readsPlacements(config), historyInto(&config), audienceOf(t, config), certificateError(config.Metrics.CertDir), config.Metrics.Unauthenticated, newTokenKeeper(h, nil).renewAt,
		h.apiOptions().Unauthenticated, h.apiOptions().CallsPerSecond, plaintext(&config.API), string(apiAddress(&config)()), servesPage(t, &config.API), noKubeconfig.Error(),
		Logger(config.Log, t.Output()).Enabled(t.Context(), slog.LevelDebug), firstLogged(config), leadership.NameOf(newIdentity(&config, nil, "")),
	}
}

func historyInto(c *config.Config) string {
	configMap, folder := fleetHistory(c)
	return configMap.Name + folder
}

func servesPage(t *testing.T, config *config.APIConfig) bool {
	t.Helper()
	served, err := newPage(config)
	if err != nil {
		t.Fatal(err)
	}
	return served != nil
}

// firstLogged is how a line of the log begins.
func firstLogged(config config.Config) string {
	var line strings.Builder
	Logger(config.Log, &line).Error("")
	return line.String()[:1]
}

func certificateError(dir string) string {
	if _, err := newCertificates(dir, &pki.CA{}, &config.Config{}); err != nil {
		return err.Error()
	}
	return ""
}

// clientError is what is wrong with the authority of client certificates.
func clientError(h *Hub) string {
	if _, _, err := h.askClients(nil, nil); err != nil {
		return err.Error()
	}
	return ""
}

// callersError is what is wrong with the authorities of the API's client certificates.
func callersError(c *config.APIConfig) string {
	if _, err := callersCAs(c); err != nil {
		return err.Error()
	}
	return ""
}

// readsPlacements reports whether the hub cluster is asked for FleetPlacements.
func readsPlacements(c config.Config) bool {
	h := &Hub{config: c, hubConfig: &rest.Config{Host: "no://address of a server"}}
	return h.buildFleet(context.Background()) != nil
}

// audienceOf is the audience for which the hub cluster is asked to review tokens.
func audienceOf(t *testing.T, config config.Config) (audience []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		audience = review.Spec.Audiences
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	h := &Hub{events: newEventLog(), config: config, hubConfig: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}}
	var options api.Options
	if err := h.admit(&options); err != nil {
		t.Fatal(err)
	}
	if _, err := options.Authenticator.Authenticate(context.Background(), "token"); err == nil {
		t.Fatal("a server that is not available accepted a token")
	}
	return audience
}

func TestEveryKeyReachesThePartThatItIsFor(t *testing.T) {
	byHand := config.Default()
	byHand.Derive(nil)
	byDefault := wired(t, byHand)
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	if !cmp.Equal(byDefault, wired(t, byHand), everything, sample.ByValue) {
		t.Fatal("the same configuration is wired differently: this shows nothing")
	}
	for _, leaf := range config.Leaves() {
		t.Run(leaf.Path, func(t *testing.T) {
			config := config.Default()
			reflect.ValueOf(&config).Elem().FieldByIndex(leaf.Index).Set(reflect.ValueOf(sample.Of[leaf.Path].Want))
			config.Derive(nil)
			if cmp.Equal(byDefault, wired(t, config), everything, sample.ByValue) {
				t.Error("this key changes nothing in any part")
			}
		})
	}
}
