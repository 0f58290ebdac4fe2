package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// listenHere takes free ports of this machine.
func listenHere(t *testing.T) *listeners {
	t.Helper()
	const here = "127.0.0.1:0"
	var conf config.Config
	conf.API.GRPCAddress, conf.API.RESTAddress, conf.Peer.Address, conf.Metrics.Address, conf.Probes.Address = here, here, here, here, here
	l, err := listen(&conf)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.close)
	return l
}

// Nobody needs a token to connect.
func TestConnectionsOfOneAddressAreBoundedOnEachListener(t *testing.T) {
	g := NewWithT(t)
	l := listenHere(t)
	for name, listener := range map[string]net.Listener{"grpc": l.grpc, "rest": l.rest, "peer": l.peer, "metrics": l.metrics, "probes": l.probes} {
		accepted := make(chan net.Conn, maxConnections)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				accepted <- conn
			}
		}()
		dial := func() net.Conn {
			conn, err := net.Dial("tcp", listener.Addr().String())
			g.Expect(err).NotTo(HaveOccurred(), name)
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		var kept net.Conn
		for range maxConnectionsOfAddress {
			dial()
			kept = <-accepted
		}
		tooMany := dial()
		g.Expect(tooMany.SetReadDeadline(time.Now().Add(time.Minute))).To(Succeed())
		_, err := tooMany.Read(make([]byte, 1))
		var timeout net.Error
		g.Expect(err).To(HaveOccurred())
		g.Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeFalse(), "%s: it is open", name)
		g.Expect(kept.Close()).To(Succeed())
		_, err = io.WriteString(dial(), "x")
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(accepted).Should(Receive(), "%s: there is room for another", name)
	}
}

// Refusing a call costs the hub as much as sending it costs the caller.
func TestTheListenersPaceStrangers(t *testing.T) {
	g := NewWithT(t)
	l := listenHere(t)
	for name, listener := range map[string]net.Listener{"grpc": l.grpc, "rest": l.rest, "metrics": l.metrics} {
		client, err := net.Dial("tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred(), name)
		t.Cleanup(func() { _ = client.Close() })
		conn, err := listener.Accept()
		g.Expect(err).NotTo(HaveOccurred(), name)
		t.Cleanup(func() { _ = conn.Close() })
		refusing, stop := context.WithCancel(t.Context())
		var refused sync.WaitGroup
		refused.Go(func() { // without end, so that the rate has no time to recover
			for refusing.Err() == nil {
				shares.Refused(conn.RemoteAddr())
			}
		})
		g.Eventually(func() error {
			if _, err := io.WriteString(client, "x"); err != nil {
				return err
			}
			_, err := conn.Read(make([]byte, 1))
			return err
		}).WithTimeout(time.Minute).ShouldNot(Succeed(), name)
		stop()
		refused.Wait()
	}
}

// A newcomer reads all that is for everybody, uncompressed, before it waits: a page has at most 150 KB.
func TestWhatIsForEverybodyIsWithinTheBurstOfAStranger(t *testing.T) {
	NewWithT(t).Expect(len(plimsollv1.OpenAPI) + len(plimsollv1.OpenAPIv3) + 150_000).To(BeNumerically("<", strangerLimits.Burst))
}

// A server that asks for certificates and does not require them would answer all of these calls.
func TestCallsNeedACertificateWhereTheConfigurationSaysWhose(t *testing.T) {
	g := NewWithT(t)
	ours, theirs := newTestCA(t), newTestCA(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(file, theirs.Bundle(), 0o600)).To(Succeed())
	metrics, err := webhook.NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

	for _, clientCA := range []string{"", file} {
		h := &Hub{config: config.Default(), admission: metrics}
		h.config.Webhook.ClientCA = clientCA
		serves, calls, err := h.askClients(ours.ServerTLS(nil, []net.IP{net.IPv4(127, 0, 0, 1)}), reached)
		g.Expect(err).NotTo(HaveOccurred())
		server, err := webhook.Listen("webhook", "127.0.0.1:0", serves, calls, metrics, slog.New(slog.DiscardHandler))
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Start(ctx) }()

		// status is how a call is answered; 0: the connection is refused.
		status := func(path string, shows func(*tls.CertificateRequestInfo) (*tls.Certificate, error)) int {
			trusting := tlstest.Trusting(ours.Bundle())
			trusting.GetClientCertificate = shows
			transport := &http.Transport{TLSClientConfig: trusting}
			defer transport.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server.Addr().String()+"/webhook/v1/members/eu/token/"+path, http.NoBody)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := transport.RoundTrip(request)
			if err != nil {
				return 0
			}
			g.Expect(response.Body.Close()).To(Succeed())
			return response.StatusCode
		}
		const answered = http.StatusNoContent
		without, another := http.StatusUnauthorized, 0
		if clientCA == "" {
			without, another = answered, answered
		}
		for _, path := range []string{"pods", "webapps/validate", "webapps/default"} {
			g.Expect(status(path, nil)).To(Equal(without), "%s of a client that shows none", path)
			g.Expect(status(path, theirs.PeerClientTLS().GetClientCertificate)).To(Equal(answered), path)
			g.Expect(status(path, ours.PeerClientTLS().GetClientCertificate)).To(Equal(another), "%s of another authority's client", path)
		}
		g.Expect(status("convert", nil)).To(Equal(answered), "API servers show none for conversions")
		stop()
		g.Expect(<-ended).To(Succeed())
	}
}
