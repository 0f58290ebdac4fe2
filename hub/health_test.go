package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/webhook"
)

// A replica that is ready gets the calls of members' API servers.
func TestAReplicaIsReadyWhileItsWebhookListens(t *testing.T) {
	g := NewWithT(t)
	server, err := webhook.Listen("webhook", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13}, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
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
