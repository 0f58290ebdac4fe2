package api

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// people is a fake of the hub cluster's users: each token is a name, and rights are given to names.
type people struct {
	mu      sync.Mutex
	rights  map[string][]auth.Access // by name; Member "" means all
	broken  error                    // what reviews of tokens fail with
	unsure  error                    // what reviews of access fail with
	reviews int
	slow    <-chan struct{} // until it is closed, no review of a token ends; nil: they end at once
}

func (p *people) Authenticate(ctx context.Context, token string) (auth.Identity, error) {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return auth.Identity{}, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return auth.Identity{}, p.broken
	}
	switch token {
	case "nameless":
		return auth.Identity{}, nil
	case "impostor", canary:
		return auth.Identity{}, auth.ErrBadToken
	}
	return auth.Identity{User: token}, nil
}

func (p *people) Allowed(_ context.Context, who auth.Identity, access auth.Access) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reviews++
	if p.unsure != nil {
		return false, p.unsure
	}
	if who.User == "admin" {
		return true, nil
	}
	for _, right := range p.rights[who.User] {
		if right.Verb == access.Verb && right.Group == access.Group && right.Resource == access.Resource && (right.Name == "" || right.Name == access.Name) &&
			(right.Member == "" || right.Member == access.Member) && (right.Namespace == "" || right.Namespace == access.Namespace) {
			return true, nil
		}
	}
	return false, nil
}

func (p *people) give(name string, rights ...auth.Access) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rights[name] = append(p.rights[name], rights...)
}

// served is a running API.
type served struct {
	*people
	log  *lockedLog
	grpc string // address
	rest string // address
	http *http.Client
	conn *grpc.ClientConn
}

// serve runs the public side of a replica on real listeners with TLS.
func serve(t *testing.T, r *replica, change func(*Options)) *served {
	t.Helper()
	return serveOn(t, listen(t), listen(t), r, change)
}

// serveOn is the same on given listeners.
func serveOn(t *testing.T, grpcListener, restListener net.Listener, r *replica, change func(*Options)) *served {
	t.Helper()
	s := &served{people: &people{rights: map[string][]auth.Access{}}, log: &lockedLog{}}
	certificate, roots := selfSigned(t)
	o := Options{
		Backend: r.backend(), Peers: r.fleet, OwnerTimeout: 100 * time.Millisecond,
		Authenticator: s.people, Authorizer: s.people,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		Log: slog.New(slog.NewJSONHandler(io.MultiWriter(s.log, t.Output()), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc, s.rest = grpcListener.Addr().String(), restListener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.Run(ctx, grpcListener, restListener) }()

	config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13}
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	if s.conn, err = grpc.NewClient(s.grpc, grpc.WithTransportCredentials(credentials.NewTLS(config))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.conn.Close()
		s.http.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// as is a context that calls with a token.
func as(t *testing.T, token string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

func (s *served) clusters() plimsollv1.ClusterServiceClient {
	return plimsollv1.NewClusterServiceClient(s.conn)
}

func (s *served) workloads() plimsollv1.WorkloadServiceClient {
	return plimsollv1.NewWorkloadServiceClient(s.conn)
}

func (s *served) objects() plimsollv1.ObjectServiceClient {
	return plimsollv1.NewObjectServiceClient(s.conn)
}

func (s *served) events() plimsollv1.EventServiceClient {
	return plimsollv1.NewEventServiceClient(s.conn)
}

// call makes a REST call.
func (s *served) call(t *testing.T, method, path, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.rest+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	if host := header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

// bearing is a header with a token.
func bearing(token string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}}
}

// lockedLog is a log that is read while several goroutines write it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// selfSigned makes a certificate for localhost, and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
