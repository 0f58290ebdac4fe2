package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// ClientAuthority knows the members' API servers by the client certificates that they show, beside the tokens in their URLs. The file
// is read again within ten seconds when it changes; one that cannot be used is ignored until it can. It may be used concurrently.
type ClientAuthority struct {
	file string

	mu      sync.Mutex
	checked time.Time
	text    []byte
	pool    *x509.CertPool
}

// ClientAuthorityOf reads the certificates of authorities in PEM from a file; what it cannot read is an error.
func ClientAuthorityOf(file string) (*ClientAuthority, error) {
	a := &ClientAuthority{file: file}
	if err := a.reload(); err != nil {
		return nil, err
	}
	a.checked = time.Now()
	return a, nil
}

func (a *ClientAuthority) reload() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("client authority: %w", err) // names the file
	}
	if bytes.Equal(text, a.text) {
		return nil
	}
	certs, err := parseCertificates(text)
	if err != nil {
		return fmt.Errorf("client authority %s: %w", a.file, err)
	}
	a.text, a.pool = text, x509.NewCertPool()
	for _, cert := range certs {
		a.pool.AddCert(cert)
	}
	return nil
}

// Pool is the certificates of the authorities as they are now: the same pool until the file changes.
func (a *ClientAuthority) Pool() *x509.CertPool { return a.current(time.Now()) }

func (a *ClientAuthority) current(now time.Time) *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.checked) >= dirCheckEvery {
		a.checked = now
		_ = a.reload() // the certificates of before stay in use
	}
	return a.pool
}

// Asking is a server's configuration that asks clients for a certificate. One that is shown must be good; whether one is needed
// the handler says, so that a client without any gets an answer that it can log.
func (a *ClientAuthority) Asking(config *tls.Config) *tls.Config {
	asking := config.Clone()
	asking.NextProtos = []string{"h2", "http/1.1"}
	asking.ClientAuth = tls.VerifyClientCertIfGiven
	asking.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := asking.Clone()
		now.GetConfigForClient, now.ClientCAs = nil, a.current(time.Now())
		return now, nil
	}
	return asking
}
