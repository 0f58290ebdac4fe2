package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
)

func certPEM(pair *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
}

func keyPEM(t *testing.T, pair *tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// serve answers every request with 204 over the given TLS configuration.
func serve(t *testing.T, config *tls.Config) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	server.TLS = config
	server.Config.ErrorLog = discardLog
	// StartTLS would add a certificate of its own.
	server.Listener = tls.NewListener(server.Listener, config)
	server.Start()
	t.Cleanup(server.Close)
	return "https://" + server.Listener.Addr().String()
}

func TestAMemberThatTrustsTheBundleReachesTheWebhookByNameAndByAddress(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	url := serve(t, ca.ServerTLS([]string{"hub.example"}, []net.IP{net.IPv4(127, 0, 0, 1)}))
	g.Expect(tlstest.Get(t, url, tlstest.Trusting(ca.Bundle()))).To(Succeed())
	byName := tlstest.Trusting(ca.Bundle())
	byName.ServerName = "hub.example"
	g.Expect(tlstest.Get(t, url, byName)).To(Succeed())

	byName.ServerName = "other.example"
	g.Expect(tlstest.Get(t, url, byName)).To(MatchError(ContainSubstring("not other.example")))
	g.Expect(tlstest.Get(t, url, tlstest.Trusting(newCA(t).Bundle()))).To(MatchError(ContainSubstring("unknown authority")))
}

func TestTheCertificateIsRenewedAtTwoThirdsOfItsLifeWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ca := newCA(t)
		config := ca.ServerTLS([]string{"hub.example"}, nil)
		current := func() *x509.Certificate {
			pair, err := config.GetCertificate(nil)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: ca.pool, DNSName: "hub.example", CurrentTime: time.Now()})
			g.Expect(err).NotTo(HaveOccurred())
			return pair.Leaf
		}
		first := current()
		g.Expect(first.NotAfter).To(BeTemporally("==", time.Now().Add(30*24*time.Hour)))
		time.Sleep(20*24*time.Hour - time.Second)
		g.Expect(current().SerialNumber).To(Equal(first.SerialNumber))
		time.Sleep(2 * time.Second)
		g.Expect(current().SerialNumber).NotTo(Equal(first.SerialNumber))

		time.Sleep(caLifetime - 25*24*time.Hour) // the last days of the CA
		g.Expect(current().NotAfter).To(BeTemporally("==", ca.cert.NotAfter))
	})
}

func TestReplicasKnowEachOther(t *testing.T) {
	ca := newCA(t)
	NewWithT(t).Expect(tlstest.Get(t, serve(t, ca.PeerServerTLS()), ca.PeerClientTLS())).To(Succeed())
}

func TestOnlyReplicasAreServedAsPeers(t *testing.T) {
	ca, stranger := newCA(t), newCA(t)
	url := serve(t, ca.PeerServerTLS())
	// client shows what a leaf of the template's kind would, and trusts this hub's CA.
	client := func(l *leaf) *tls.Config {
		config := ca.PeerClientTLS()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return l.current(time.Now()) }
		return config
	}
	withNames := func(usage x509.ExtKeyUsage, names ...string) *leaf {
		return &leaf{ca: ca, template: x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{usage}}}
	}
	nobody := ca.PeerClientTLS()
	nobody.GetClientCertificate = nil
	for name, config := range map[string]*tls.Config{
		"no certificate":                        nobody,
		"a peer of another CA":                  client(stranger.newPeerLeaf()),
		"the webhook's certificate":             client(withNames(x509.ExtKeyUsageServerAuth, "hub.example")),
		"a server's certificate with the name":  client(withNames(x509.ExtKeyUsageServerAuth, PeerName)),
		"a client's certificate, no name":       client(withNames(x509.ExtKeyUsageClientAuth)),
		"a client's certificate, another name":  client(withNames(x509.ExtKeyUsageClientAuth, "a"+PeerName, PeerName+".example")),
		"a client's certificate, wildcard name": client(withNames(x509.ExtKeyUsageClientAuth, "*.plimsoll.internal")),
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tlstest.Get(t, url, config)).To(MatchError(ContainSubstring("remote error: tls")))
		})
	}
}

func TestAReplicaDoesNotTakeTheWebhookOrAStrangerForAPeer(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	// Somebody configured the peers' own names as names of the webhook.
	url := serve(t, ca.ServerTLS([]string{"hub.example", PeerName, "Peer.Plimsoll.Internal.", "*.plimsoll.internal"}, nil))
	g.Expect(tlstest.Get(t, url, ca.PeerClientTLS())).To(MatchError(ContainSubstring("not " + PeerName)))
	g.Expect(tlstest.Get(t, serve(t, newCA(t).PeerServerTLS()), ca.PeerClientTLS())).To(MatchError(ContainSubstring("unknown authority")))
}
