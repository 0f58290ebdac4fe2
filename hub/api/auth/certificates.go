package auth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

const (
	// verifiedFor is how long a certificate that was good is treated as good, while the authorities are the same.
	verifiedFor = 10 * time.Second
	// maxVerified bounds memory.
	maxVerified = 4096

	// everybodyKnown is the group that Kubernetes gives everybody whom it has authenticated.
	everybodyKnown = "system:authenticated"
	// credentialID says, in what Kubernetes adds to an identity, which certificate it comes from.
	credentialID = "authentication.kubernetes.io/credential-id"
)

// AskingFor is a server's configuration that asks for client certificates, and refuses those that the authorities of this moment did not
// sign. A caller without one needs a token.
func AskingFor(config *tls.Config, authorities func() *x509.CertPool, protocols ...string) *tls.Config {
	asks := config.Clone()
	asks.NextProtos = protocols
	asks.ClientAuth = tls.VerifyClientCertIfGiven
	asks.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := asks.Clone()
		now.GetConfigForClient, now.ClientCAs = nil, authorities()
		return now, nil
	}
	return asks
}

// Certificates finds out who calls from the client certificate of their connection, as Kubernetes does: the common name is the user, the
// organizations are the groups. Safe for concurrent use.
type Certificates struct {
	authorities func() *x509.CertPool
	verified    *cache.Cache[[sha256.Size]byte, *x509.CertPool] // by certificate: the authorities that it is good for
}

// NewCertificates takes the certificates for good that the authorities of the moment have signed.
func NewCertificates(authorities func() *x509.CertPool) *Certificates {
	return &Certificates{authorities: authorities, verified: cache.New[[sha256.Size]byte, *x509.CertPool](maxVerified)}
}

// OrBearer takes a certificate for who calls where there is no Authorization header: one that has expired must not turn its sender
// into somebody else.
func (c *Certificates) OrBearer(token Identifier) Identifier {
	return func(ctx context.Context) (Identity, error) {
		if len(metadata.ValueFromIncomingContext(ctx, "authorization")) > 0 {
			return token(ctx)
		}
		shown := shownBy(ctx)
		if len(shown) == 0 {
			return Identity{}, status.Error(codes.Unauthenticated, "a bearer token is needed, in an Authorization header, or a client certificate")
		}
		return c.Identify(shown, time.Now())
	}
}

// shownBy is the chain of client certificates of a call's connection, that of the client first; none: it has shown none.
func shownBy(ctx context.Context) []*x509.Certificate {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	secured, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return secured.State.PeerCertificates
}

// Identify verifies certificates again, because connections last: until then one may have expired, or its authority have been taken out.
func (c *Certificates) Identify(shown []*x509.Certificate, now time.Time) (Identity, error) {
	own := shown[0]
	authorities, key := c.authorities(), sha256.Sum256(own.Raw)
	if goodFor, ok := c.verified.Get(key); !ok || goodFor != authorities || now.After(own.NotAfter) {
		between := x509.NewCertPool()
		for _, other := range shown[1:] {
			between.AddCert(other)
		}
		if _, err := own.Verify(x509.VerifyOptions{
			Roots: authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}); err != nil {
			c.verified.Drop(key)
			return Identity{}, status.Error(codes.Unauthenticated, "the client certificate was not accepted: it must be valid now, for client authentication, and signed by one of the hub's api.clientCA")
		}
		c.verified.Put(key, authorities, verifiedFor)
	}
	if own.Subject.CommonName == "" {
		return Identity{}, status.Error(codes.Unauthenticated, "the client certificate was not accepted: its common name, which is the user, is empty")
	}
	groups := slices.Clone(own.Subject.Organization)
	if !slices.Contains(groups, everybodyKnown) {
		groups = append(groups, everybodyKnown)
	}
	return Identity{
		User: own.Subject.CommonName, Groups: groups, Extra: map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(key[:])}},
	}, nil
}
