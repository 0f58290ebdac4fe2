package page

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	webpage "github.com/plimsoll-dev/plimsoll/hub/page"
)

// Site is a running API with its page.
type Site struct {
	*World
	*People
	// URL is where the page is; GRPC where the same API answers gRPC, with the certificate in Certificate.
	URL, GRPC   string
	Certificate *x509.Certificate

	stop  context.CancelFunc
	ended chan error
}

// Serve starts the API in front of a world. Rights and tokens of watches are looked at all the time, so that no test has to wait for
// that. people nil takes everybody for an administrator. rest is where REST listens; "": any port of loopback.
func Serve(world *World, people *People, log *slog.Logger, rest string) (*Site, error) {
	certificate, parsed, err := selfSigned()
	if err != nil {
		return nil, err
	}
	page, err := webpage.New()
	if err != nil {
		return nil, err
	}
	options := api.Options{
		Backend: api.Backend{Members: world, Workloads: lists{world}, Objects: world, Ownership: world, Events: world.Journal}, Peers: world,
		RecheckEvery: 200 * time.Millisecond, Log: log, Page: page, Unauthenticated: people == nil,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
	}
	if !world.NoFleet {
		options.Fleet = placing{world}
	}
	if people != nil {
		options.Authenticator, options.Authorizer = people, people
	}
	server, err := api.New(options)
	if err != nil {
		return nil, err
	}
	if rest == "" {
		rest = "127.0.0.1:0"
	}
	listeners := make([]net.Listener, 2)
	for i, address := range []string{"127.0.0.1:0", rest} {
		if listeners[i], err = net.Listen("tcp", address); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Site{
		World: world, People: people, GRPC: listeners[0].Addr().String(), Certificate: parsed,
		URL: "https://" + listeners[1].Addr().String() + webpage.Path, stop: stop, ended: make(chan error, 1),
	}
	go func() { s.ended <- server.Run(ctx, listeners[0], listeners[1]) }()
	return s, nil
}

// Close ends the API. It may be called once.
func (s *Site) Close() error {
	s.stop()
	return <-s.ended
}

// selfSigned makes a certificate for loopback.
func selfSigned() (tls.Certificate, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed, err
}
