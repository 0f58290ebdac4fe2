package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// pair writes a certificate, which signs itself, and its key.
func pair(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// secureHub serves the API over TLS and asks for client certificates. who returns who called last: token and common name.
func secureHub(t *testing.T, certificate, key string) (address string, who func() string) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var last string
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
	})), grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		last = strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",") + " "
		if from, ok := peer.FromContext(ctx); ok {
			if secured, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(secured.State.PeerCertificates) > 0 {
				last += secured.State.PeerCertificates[0].Subject.CommonName
			}
		}
		return next(ctx, request)
	}))
	plimsollv1.RegisterClusterServiceServer(server, &hub{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

func TestAClientCertificateSaysWhoCalls(t *testing.T) {
	ca, caKey := pair(t, "hub")
	address, who := secureHub(t, ca, caKey)
	certificate, key := pair(t, "alice")
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want        string
	}{
		"flags":                            {nil, []string{"--client-certificate", certificate, "--client-key", key}, " alice"},
		"environment":                      {map[string]string{"PLIMSOLL_CLIENT_CERTIFICATE": certificate, "PLIMSOLL_CLIENT_KEY": key}, nil, " alice"},
		"flags before a token outside":     {map[string]string{"PLIMSOLL_TOKEN": canary}, []string{"--client-certificate", certificate, "--client-key", key}, " alice"},
		"a token that a flag gives":        {nil, []string{"--client-certificate", certificate, "--client-key", key, "--token", canary}, "Bearer " + canary + " alice"},
		"a token beside a pair outside":    {map[string]string{"PLIMSOLL_CLIENT_CERTIFICATE": certificate, "PLIMSOLL_CLIENT_KEY": key, "PLIMSOLL_TOKEN": canary}, nil, "Bearer " + canary + " alice"},
		"neither":                          {nil, nil, " "},
		"kubectl's name for the authority": {nil, []string{"--certificate-authority", ca, "--client-certificate", certificate, "--client-key", key}, " alice"},
	} {
		args := append([]string{"get", "clusters", "--server", address}, c.args...)
		if !slices.Contains(args, "--certificate-authority") {
			args = append(args, "--ca-file", ca)
		}
		if got := plimsoll(t, c.environment, args...); got.code != exitOK || who() != c.want {
			t.Errorf("%s: %+v, called by %q, want %q", name, got, who(), c.want)
		}
	}
}

func TestAClientCertificateThatCannotBeShownIsRefused(t *testing.T) {
	certificate, key := pair(t, "alice")
	_, other := pair(t, "bob")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no key":         {[]string{"--client-certificate", certificate}, "give both or none"},
		"no certificate": {[]string{"--client-key", key}, "give both or none"},
		"no such file":   {[]string{"--client-certificate", "/nonexistent/crt", "--client-key", key}, "--client-certificate /nonexistent/crt"},
		"another's key":  {[]string{"--client-certificate", certificate, "--client-key", other}, "private key does not match"},
		"in plain text":  {[]string{"--client-certificate", certificate, "--client-key", key, "--insecure-plaintext"}, "over TLS only"},
	} {
		if got := plimsoll(t, nil, append([]string{"get", "clusters"}, c.args...)...); got.code != exitFailed || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: %+v, want exit code %d and %q", name, got, exitFailed, c.want)
		}
	}
}
