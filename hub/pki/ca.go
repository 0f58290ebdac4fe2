package pki

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TokenKeyField is the key of the CA's Secret that holds the key from which the members' tokens are derived.
const TokenKeyField = "token-key"

const (
	caLifetime    = 10 * 365 * 24 * time.Hour
	clockSkew     = 5 * time.Minute // how far behind the clock of a member may be
	tokenKeyBytes = 32
	ensureTries   = 5
)

// CA issues the hub's certificates: the webhook's own, and those with which replicas know each other. All replicas share
// one through a Secret. Its methods may be called concurrently.
type CA struct {
	cert     *x509.Certificate
	key      *ecdsa.PrivateKey
	bundle   []byte
	pool     *x509.CertPool
	tokenKey []byte
}

// EnsureCA reads the CA from a Secret of the hub cluster, and makes the Secret when there is none, or fills it in when it
// is empty. Replicas that start at once end up with the same CA. The client must read live.
//
// The Secret is of type kubernetes.io/tls with tls.crt, tls.key and token-key. tls.crt may hold more certificates after
// the one that belongs to tls.key: they are trusted too, and given to the members, so that a CA can be replaced by hand
// without a gap.
func EnsureCA(ctx context.Context, c client.Client, namespace, secretName string) (*CA, error) {
	key := client.ObjectKey{Namespace: namespace, Name: secretName}
	var err error
	for range ensureTries {
		var secret *corev1.Secret
		if secret, err = ensureCASecret(ctx, c, key); err == nil {
			ca, err := parseCA(secret.Data, time.Now())
			if err != nil {
				return nil, fmt.Errorf("certificate authority: Secret %s: %w", key, err)
			}
			return ca, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break // else another replica was quicker: read what it wrote
		}
	}
	return nil, fmt.Errorf("certificate authority: Secret %s: %w", key, err)
}

// ensureCASecret returns the Secret with content, which it may have written itself.
func ensureCASecret(ctx context.Context, c client.Client, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		data, err := newCAData(time.Now())
		if err != nil {
			return nil, err
		}
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Type:       corev1.SecretTypeTLS,
			Data:       data,
		}
		return secret, c.Create(ctx, secret)
	case err != nil:
		return nil, err
	case isEmptyCA(secret.Data):
		if secret.Data, err = newCAData(time.Now()); err != nil {
			return nil, err
		}
		return secret, c.Update(ctx, secret)
	}
	return secret, nil
}

// isEmptyCA is true for a Secret that somebody made for us to fill; one that holds anything of a CA is never overwritten.
func isEmptyCA(data map[string][]byte) bool {
	return len(data[corev1.TLSCertKey]) == 0 && len(data[corev1.TLSPrivateKeyKey]) == 0 && len(data[TokenKeyField]) == 0
}

// newCAData creates a CA and a token key, as the Secret holds them.
func newCAData(now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "plimsoll-hub-ca"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	tokenKey := make([]byte, tokenKeyBytes)
	if _, err := rand.Read(tokenKey); err != nil {
		return nil, fmt.Errorf("create a token key: %w", err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		TokenKeyField:           tokenKey,
	}, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("create a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

// parseCA checks what a Secret holds. Its errors name the key and the rule, and never quote the content.
func parseCA(data map[string][]byte, now time.Time) (*CA, error) {
	certs, err := parseCertificates(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", corev1.TLSCertKey, err)
	}
	key, err := parseECKey(data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", corev1.TLSPrivateKeyKey, err)
	}
	issuer := certs[0]
	switch {
	case !issuer.IsCA:
		return nil, fmt.Errorf("key %s: the first certificate is not a CA certificate", corev1.TLSCertKey)
	case !key.PublicKey.Equal(issuer.PublicKey):
		return nil, fmt.Errorf("key %s does not belong to the first certificate of %s", corev1.TLSPrivateKeyKey, corev1.TLSCertKey)
	case now.After(issuer.NotAfter):
		return nil, fmt.Errorf("key %s: the certificate expired on %s; delete the Secret, and the hub creates a new one", corev1.TLSCertKey, issuer.NotAfter.Format(time.DateOnly))
	case len(data[TokenKeyField]) < tokenKeyBytes:
		return nil, fmt.Errorf("key %s: %d bytes, and must be at least %d", TokenKeyField, len(data[TokenKeyField]), tokenKeyBytes)
	}
	ca := &CA{cert: issuer, key: key, pool: x509.NewCertPool(), tokenKey: data[TokenKeyField]}
	for _, cert := range certs {
		ca.pool.AddCert(cert)
		ca.bundle = append(ca.bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return ca, nil
}

// parseCertificates reads one or more certificates in PEM.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("not a valid X.509 certificate")
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return certs, nil
}

// parseECKey reads an ECDSA key in PEM, in either of its usual encodings.
func parseECKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no private key in PEM")
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := parsed.(*ecdsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, errors.New("not an ECDSA private key") // the library's error could show about the key
}

// Bundle is what members trust, in PEM; the caller must not change it.
func (ca *CA) Bundle() []byte { return ca.bundle }

// TokenKey is the key beside the CA, from which the members' tokens are derived; the caller must not change it.
func (ca *CA) TokenKey() []byte { return ca.tokenKey }

// Expiry is when the authority's own certificate ends, and with it everything that it has issued.
func (ca *CA) Expiry() time.Time { return ca.cert.NotAfter }
