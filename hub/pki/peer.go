package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PeerName is the name in the certificates with which replicas know each other. No DNS server has it: replicas dial the
// address that the Lease names, and check for this name.
const PeerName = "peer.plimsoll.internal"

// PeerServerTLS serves other replicas of this hub, and nobody else: a client must show a certificate of this CA that is
// meant for clients and carries [PeerName]. The webhook's own certificate is not.
func (ca *CA) PeerServerTLS() *tls.Config {
	own := ca.newPeerLeaf()
	return &tls.Config{
		MinVersion:       tls.VersionTLS13,
		ClientAuth:       tls.RequireAndVerifyClientCert,
		ClientCAs:        ca.pool,
		GetCertificate:   func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.current(time.Now()) },
		VerifyConnection: verifyPeer, // crypto/tls checks the chain and the usage, and no name of a client
	}
}

// PeerClientTLS calls another replica of this hub, at whatever address.
func (ca *CA) PeerClientTLS() *tls.Config {
	own := ca.newPeerLeaf()
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		ServerName:           PeerName,
		RootCAs:              ca.pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.current(time.Now()) },
	}
}

func (ca *CA) newPeerLeaf() *leaf {
	return &leaf{ca: ca, template: x509.Certificate{
		Subject:     pkix.Name{CommonName: "plimsoll-hub-peer"},
		DNSNames:    []string{PeerName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}}
}

func verifyPeer(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("peer: no certificate")
	}
	if !slices.Contains(state.PeerCertificates[0].DNSNames, PeerName) {
		return fmt.Errorf("peer: the certificate is not for %s", PeerName)
	}
	return nil
}

// withoutPeerName drops the names under which a certificate could pass for a peer's.
func withoutPeerName(names []string) []string {
	_, parent, _ := strings.Cut(PeerName, ".")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		return name == PeerName || name == "*."+parent
	})
}
