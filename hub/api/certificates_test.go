package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// issuer is an authority for client certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newIssuer(t *testing.T, name string) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{certificate, key}
}

// issue signs a certificate for a client.
func (i issuer) issue(t *testing.T, subject pkix.Name, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, &key.PublicKey, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (i issuer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.certificate)
	return pool
}

// known is an authorizer that keeps who it was asked about.
type known struct {
	*people
	mu   sync.Mutex
	last auth.Identity
}

func (k *known) Allowed(ctx context.Context, who auth.Identity, access auth.Access) (bool, error) {
	k.mu.Lock()
	k.last = who
	k.mu.Unlock()
	return k.people.Allowed(ctx, who, access)
}

// showing connects with a client certificate; nil: none.
func (s *served) showing(t *testing.T, certificate *tls.Certificate) *served {
	t.Helper()
	config := s.http.Transport.(*http.Transport).TLSClientConfig.Clone()
	if config.GetClientCertificate = nil; certificate != nil { // also where the server does not name its authority
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	shows := *s
	shows.http = &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}}
	var err error
	if shows.conn, err = grpc.NewClient(s.grpc, grpc.WithTransportCredentials(credentials.NewTLS(config.Clone()))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shows.conn.Close()
		shows.http.CloseIdleConnections()
	})
	return &shows
}

func TestAClientCertificateSaysWhoCalls(t *testing.T) {
	ours, theirs := newIssuer(t, "ours"), newIssuer(t, "theirs")
	pool, authorizer := ours.pool(), &known{}
	s := serve(t, shop(t), func(o *Options) {
		authorizer.people = o.Authorizer.(*people)
		o.Authorizer, o.ClientCAs = authorizer, func() *x509.CertPool { return pool }
	})
	s.give("alice", auth.Access{Verb: verbGet, Resource: resourceClusters, Member: "prod"})
	alice := pkix.Name{CommonName: "alice", Organization: []string{"team-eu", "operators"}}
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		token       string
		want        codes.Code
	}{
		"one who may":                     {ours.issue(t, alice, nil), "", codes.OK},
		"one who may not":                 {ours.issue(t, pkix.Name{CommonName: "mallory"}, nil), "", codes.PermissionDenied},
		"neither certificate nor token":   {nil, "", codes.Unauthenticated},
		"a token and no certificate":      {nil, "admin", codes.OK},
		"a token beside it decides":       {ours.issue(t, alice, nil), "mallory", codes.PermissionDenied},
		"a bad token beside it":           {ours.issue(t, alice, nil), "impostor", codes.Unauthenticated},
		"no name":                         {ours.issue(t, pkix.Name{Organization: []string{"system:masters"}}, nil), "", codes.Unauthenticated},
		"of another authority":            {theirs.issue(t, alice, nil), "", codes.Unavailable},
		"expired":                         {ours.issue(t, alice, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "", codes.Unavailable},
		"of a server":                     {ours.issue(t, alice, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "", codes.Unavailable},
		"of another authority, and token": {theirs.issue(t, alice, nil), "admin", codes.Unavailable},
	} {
		shows := s.showing(t, c.certificate)
		ctx, header := t.Context(), http.Header{}
		if c.token != "" {
			ctx, header = as(t, c.token), bearing(c.token)
		}
		if _, err := shows.clusters().GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: "prod"}); status.Code(err) != c.want {
			t.Errorf("%s: gRPC: %v, want %s", name, err, c.want)
		}
		want := map[codes.Code]int{codes.OK: 200, codes.PermissionDenied: 403, codes.Unauthenticated: 401}[c.want]
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.rest+"/v1/clusters/prod", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		response, err := shows.http.Do(request)
		switch {
		case want == 0 && err == nil:
			t.Errorf("%s: REST: HTTP %d, want no connection", name, response.StatusCode)
		case want != 0 && (err != nil || response.StatusCode != want):
			t.Errorf("%s: REST: %v, %v, want HTTP %d", name, response, err, want)
		}
		if err == nil {
			_ = response.Body.Close()
		}
		if name == "one who may" {
			authorizer.mu.Lock()
			if want := []string{"team-eu", "operators", "system:authenticated"}; authorizer.last.User != "alice" || !slices.Equal(authorizer.last.Groups, want) {
				t.Errorf("it was asked about %+v, want alice of %v", authorizer.last, want)
			}
			// An audit of the hub cluster can tell which of a user's certificates it was.
			id := []string{fmt.Sprintf("X509SHA256=%x", sha256.Sum256(c.certificate.Certificate[0]))}
			if got := authorizer.last.Extra["authentication.kubernetes.io/credential-id"]; !slices.Equal(got, id) {
				t.Errorf("it was asked about the credential %v, want %v", got, id)
			}
			authorizer.mu.Unlock()
		}
	}
}

// Connections last, so what was good at the handshake is looked at again.
func TestAnAuthorityThatIsTakenOutEndsWhatItsCertificatesHaveBegun(t *testing.T) {
	before, after := newIssuer(t, "before"), newIssuer(t, "after")
	var pool atomic.Pointer[x509.CertPool]
	pool.Store(before.pool())
	s := serve(t, shop(t), func(o *Options) { o.ClientCAs, o.RecheckEvery = pool.Load, 20*time.Millisecond })
	s.give("alice", auth.Access{Verb: verbList, Resource: resourceObjects}, auth.Access{Verb: verbGet, Resource: resourceClusters})
	shows := s.showing(t, before.issue(t, pkix.Name{CommonName: "alice"}, nil))
	get := func() error {
		_, err := shows.clusters().GetCluster(t.Context(), &plimsollv1.GetClusterRequest{Cluster: "prod"})
		return err
	}
	events, _, ended := shows.watch(t.Context(), t, &plimsollv1.WatchObjectsRequest{})
	expect(t, events, "PUT prod/cart", "SYNCED")
	if err := get(); err != nil {
		t.Fatal(err)
	}
	pool.Store(after.pool())
	if err := get(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call on the same connection: %v", err)
	}
	select {
	case err := <-ended:
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the watch goes on")
	}
	if _, err := s.showing(t, after.issue(t, pkix.Name{CommonName: "alice"}, nil)).clusters().GetCluster(t.Context(), &plimsollv1.GetClusterRequest{Cluster: "prod"}); err != nil {
		t.Errorf("a certificate of the authority that came: %v", err)
	}
}

func TestACertificateThatExpiresMeanwhileIsRefused(t *testing.T) {
	ours := newIssuer(t, "ours")
	pool := ours.pool()
	certificates := auth.NewCertificates(func() *x509.CertPool { return pool })
	leaf, err := x509.ParseCertificate(ours.issue(t, pkix.Name{CommonName: "alice"}, nil).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Duration
		want codes.Code
	}{{0, codes.OK}, {59 * time.Minute, codes.OK}, {61 * time.Minute, codes.Unauthenticated}} { // by then it is remembered as good
		if _, err := certificates.Identify([]*x509.Certificate{leaf}, time.Now().Add(c.at)); status.Code(err) != c.want {
			t.Errorf("after %s: %v, want %s", c.at, err, c.want)
		}
	}
}

// A browser adds its certificate to whatever a web page asks it for; it says where the page is from.
func TestAWebPageFromElsewhereOrdersNothingWithABrowsersCertificate(t *testing.T) {
	ours := newIssuer(t, "ours")
	pool := ours.pool()
	r := shop(t)
	s := serve(t, r, func(o *Options) { o.ClientCAs = func() *x509.CertPool { return pool } })
	shows := s.showing(t, ours.issue(t, pkix.Name{CommonName: "admin"}, nil))
	const path = "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue"
	for name, c := range map[string]struct {
		header http.Header
		status int
	}{
		"a page of another site":        {http.Header{"Origin": {"https://evil.example"}}, 403},
		"one that hides where it is":    {http.Header{"Origin": {"null"}}, 403},
		"as newer browsers say it":      {http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"a page of a name beside ours":  {http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"our own page":                  {http.Header{"Origin": {"https://" + s.rest}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		"no browser, and no page of it": {http.Header{}, 200},
	} {
		before := len(r.orders())
		response, body := shows.call(t, http.MethodPost, path, "", c.header)
		if response.StatusCode != c.status || (c.status == 200) != (len(r.orders()) > before) {
			t.Errorf("%s: HTTP %d, %d orders: %s", name, response.StatusCode, len(r.orders())-before, body)
		}
		if c.status == 403 && !strings.Contains(body, "another origin") {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestClientCertificatesNeedTLSAndAuthorization(t *testing.T) {
	pool := func() *x509.CertPool { return x509.NewCertPool() }
	o := options(t)
	o.ClientCAs = pool
	if _, err := New(o); err == nil {
		t.Error("without TLS it was made")
	}
	o.TLS, o.Authenticator, o.Authorizer, o.Unauthenticated = &tls.Config{MinVersion: tls.VersionTLS13}, nil, nil, true
	if _, err := New(o); err == nil {
		t.Error("without authentication it was made")
	}
}
