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
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// wired is what the parts of a hub are told, as far as it follows from the configuration. It is made by the functions that
// the composition itself calls.
func wired(t *testing.T, config Config) []any {
	t.Helper()
	h := &Hub{happenings: newHappenings(), config: config, ownership: sole{}}
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
		members, runtime, spots, spotSchedule(&config), webAppPolicy(&config.WebApp), configurations, config.Webhook.ConfigName,
		config.LeaderElection.Enabled, leaseOptions(&config),
		wantedAddresses(&config), webhookAddress(&config), advertised(&config, nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}),
		names, ips, servesUntil(&config, time.Time{}), certificateError(config.Webhook.CertDir), certificateError(config.API.CertDir),
		clientError(h), audienceOf(t, config), certificateError(config.Metrics.CertDir), config.Metrics.Unauthenticated, newTokenKeeper(h, nil).renewAt,
		h.apiOptions().Unauthenticated, h.apiOptions().CallsPerSecond, plaintext(&config.API), noKubeconfig.Error(),
		config.Log.Logger(t.Output()).Enabled(t.Context(), slog.LevelDebug), firstLogged(config), leadership.NameOf(newIdentity(&config, nil, "")),
	}
}

// firstLogged is how a line of the log begins.
func firstLogged(config Config) string {
	var line strings.Builder
	config.Log.Logger(&line).Error("")
	return line.String()[:1]
}

func certificateError(dir string) string {
	if _, err := newCertificates(dir, &webhook.CA{}, &Config{}); err != nil {
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

// audienceOf is the audience for which the hub cluster is asked to review tokens.
func audienceOf(t *testing.T, config Config) (audience []string) {
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
	h := &Hub{happenings: newHappenings(), config: config, hubConfig: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}}
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
	byHand := DefaultConfig()
	byHand.derive(nil)
	byDefault := wired(t, byHand)
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	if !cmp.Equal(byDefault, wired(t, byHand), everything, byValue) {
		t.Fatal("the same configuration is wired differently: this shows nothing")
	}
	for _, leaf := range leaves() {
		t.Run(leaf.path, func(t *testing.T) {
			config := DefaultConfig()
			reflect.ValueOf(&config).Elem().FieldByIndex(leaf.index).Set(reflect.ValueOf(samples[leaf.path].want))
			config.derive(nil)
			if cmp.Equal(byDefault, wired(t, config), everything, byValue) {
				t.Error("this key changes nothing in any part")
			}
		})
	}
}
