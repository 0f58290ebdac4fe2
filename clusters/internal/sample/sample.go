package sample

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"
)

// Canary represents every secret value; it must not appear in anything that is shown.
const Canary = "c4n4ry-s3cr3t"

// KubeconfigOf writes a kubeconfig from the lines of its cluster and its user.
func KubeconfigOf(cluster, user string) []byte {
	indent := func(lines string) string {
		return "    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ")
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: member, user: hub}
clusters:
- name: member
  cluster:
%s
users:
- name: hub
  user:
%s
`, indent(cluster), indent(user))
}

// What every rule allows.
const (
	GoodServer = "server: https://member.example:6443"
	GoodUser   = "token: " + Canary
)

// Networks parses prefixes.
func Networks(prefixes ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, prefix := range prefixes {
		parsed = append(parsed, netip.MustParsePrefix(prefix))
	}
	return parsed
}

// KeyPair makes a self-signed certificate and its key, in PEM.
func KeyPair() (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
