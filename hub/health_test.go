package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// A replica that is ready gets the calls of members' API servers.
func TestAReplicaIsReadyWhileItsWebhookListens(t *testing.T) {
	g := NewWithT(t)
	metrics, err := webhook.NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	server, err := webhook.Listen("webhook", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13}, http.NotFoundHandler(), metrics, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	h := &Hub{listeners: &listeners{webhook: server}}
	checks := slices.DeleteFunc(h.readiness(), func(c check) bool { return c.name != "webhook" })
	readyz := func() int {
		answer := httptest.NewRecorder()
		probeHandler(checks).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code
	}
	g.Expect(readyz()).To(Equal(http.StatusServiceUnavailable), "it does not listen yet")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	g.Eventually(readyz).Should(Equal(http.StatusOK))
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))
	g.Expect(readyz()).To(Equal(http.StatusServiceUnavailable), "it has stopped")
}

// A rolling update ends the next replica when the new one is ready: that one must have had its time to become warm.
func TestAReplicaIsReadyWhenItIsWarmOrHasHadItsTime(t *testing.T) {
	g := NewWithT(t)
	owns, _, _ := newShared(t)
	provider, err := clusters.New(clusters.Options{HubConfig: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "plimsoll-system", Scheme: clientgoscheme.Scheme, Fence: owns})
	g.Expect(err).NotTo(HaveOccurred())
	h := &Hub{ownership: owns, provider: provider, started: time.Now()} // it has read no registration yet
	h.config.Clusters.WarmTimeout = time.Hour
	g.Expect(h.warmed()).To(Succeed(), "there is nobody to leave anything to: it acts")
	owns.owners = nil
	g.Expect(h.warmed()).To(MatchError(ContainSubstring("have not been read yet")))
	h.started = time.Now().Add(-2 * time.Hour)
	g.Expect(h.warmed()).To(Succeed(), "it has had its time")

	members := []clusters.Status{{Name: "away", State: clusters.StateUnreachable}, {Name: "there", State: clusters.StateReady}}
	g.Expect(connected(members)).To(Succeed(), "nobody waits for what cannot be reached")
	members = append(members, clusters.Status{Name: "new", State: clusters.StateConnecting, Message: "waits for its caches"})
	g.Expect(connected(members)).To(MatchError("1 of 3 members are being connected to; the API and the log say which"))
}
