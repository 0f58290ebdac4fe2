package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
)

// clientOf is a certificate of an authority with which a client shows itself.
func clientOf(t *testing.T, ca *pki.CA) tls.Certificate {
	t.Helper()
	pair, err := ca.PeerClientTLS().GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return *pair
}

func TestCallsNeedACertificateOfTheClientAuthorityButForConversions(t *testing.T) {
	g := NewWithT(t)
	ca, theirs := newCA(t), newCA(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(file, theirs.Bundle(), 0o600)).To(Succeed())
	authority, err := pki.ClientAuthorityOf(file)
	g.Expect(err).NotTo(HaveOccurred())
	metrics, err := NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	reached := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the call came by %s", r.Proto)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	server, err := Listen("webhook", "127.0.0.1:0", authority.Asking(ca.ServerTLS(nil, []net.IP{net.IPv4(127, 0, 0, 1)})), WithCertificate(reached, metrics, "POST /webhook/v1/members/{member}/{token}/convert"), metrics, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()

	post := func(path string, certificates ...tls.Certificate) (int, string, error) {
		config := tlstest.Trusting(ca.Bundle())
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certificates[0], nil
		}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server.Addr().String()+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, "", err
		}
		text, err := drain(response)
		return response.StatusCode, text, err
	}
	const member = "/webhook/v1/members/eu/token"
	for _, path := range []string{member + "/pods", member + "/webapps/default", member + "/webapps/validate"} {
		status, _, err := post(path, clientOf(t, theirs))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status).To(Equal(http.StatusNoContent), path)
		status, text, err := post(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status).To(Equal(http.StatusUnauthorized), path)
		g.Expect(text).To(ContainSubstring("client certificate"))
		_, _, err = post(path, clientOf(t, ca))
		g.Expect(err).To(HaveOccurred(), "a certificate of another authority")
	}
	g.Expect(testutil.ToFloat64(metrics.rejected.WithLabelValues("no_certificate"))).To(BeNumerically("==", 3))
	status, _, err := post(member + "/convert")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(http.StatusNoContent), "API servers show no certificate for conversions")
}

// A certificate that was shown and not verified, as a self-signed one on a server that only asks for one, is none.
func TestACertificateThatNobodyVerifiedIsNone(t *testing.T) {
	g := NewWithT(t)
	shown := &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	guarded := WithCertificate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), metrics)
	for name, c := range map[string]struct {
		connection *tls.ConnectionState
		status     int
	}{
		"no TLS":     {nil, http.StatusUnauthorized},
		"none":       {&tls.ConnectionState{}, http.StatusUnauthorized},
		"unverified": {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}, http.StatusUnauthorized},
		"verified":   {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}, VerifiedChains: [][]*x509.Certificate{{shown}}}, http.StatusNoContent},
	} {
		request := httptest.NewRequest(http.MethodPost, "/webhook/v1/members/eu/token/pods", http.NoBody)
		request.TLS = c.connection
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		g.Expect(answer.Code).To(Equal(c.status), name)
	}
}
