package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// leafLifetime is how long an issued certificate is valid; it is renewed after two thirds of that.
const leafLifetime = 30 * 24 * time.Hour

// ServerTLS serves the webhook under the given names and addresses, to clients that trust [CA.Bundle]. The certificate
// lives in memory only and is renewed by the handshake that finds it old, so a hub that runs for years needs no restart.
// A name that would also represent a peer replica is left out.
func (ca *CA) ServerTLS(dnsNames []string, ips []net.IP) *tls.Config {
	own := &leaf{ca: ca, template: x509.Certificate{
		Subject:     pkix.Name{CommonName: "plimsoll-hub-webhook"},
		DNSNames:    withoutPeerName(dnsNames),
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.current(time.Now()) },
	}
}

// A leaf is a certificate of the CA that renews itself when it is asked for.
type leaf struct {
	ca       *CA
	template x509.Certificate // what does not change from one renewal to the next

	mu      sync.Mutex
	issued  *tls.Certificate
	renewAt time.Time
}

// current returns a certificate that is valid now. One that should be renewed and cannot be is used to its end.
func (l *leaf) current(now time.Time) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.issued != nil && now.Before(l.renewAt) {
		return l.issued, nil
	}
	issued, err := l.ca.issue(l.template, now)
	if err != nil {
		if l.issued != nil && now.Before(l.issued.Leaf.NotAfter) {
			return l.issued, nil
		}
		return nil, fmt.Errorf("issue certificate %s: %w", l.template.Subject.CommonName, err)
	}
	l.issued, l.renewAt = issued, now.Add(issued.Leaf.NotAfter.Sub(now)*2/3)
	return issued, nil
}

// issue signs a certificate for a fresh key. It is never valid for longer than the CA itself.
func (ca *CA) issue(template x509.Certificate, now time.Time) (*tls.Certificate, error) {
	if now.After(ca.cert.NotAfter) {
		return nil, errors.New("the certificate authority has expired")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(leafLifetime)
	if template.NotAfter.After(ca.cert.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}, nil
}
