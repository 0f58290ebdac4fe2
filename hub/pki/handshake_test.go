package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
)

// authority is that of a hub with a hub cluster of its own.
func authority(t *testing.T) *pki.CA {
	t.Helper()
	ca, err := pki.EnsureCA(t.Context(), fake.NewClientBuilder().Build(), "plimsoll-system", "plimsoll-hub-ca")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// talk has a client greeted by a server over TLS, and returns what each of them says of it. TLS 1.3 lets a client know that it was refused
// when it reads.
func talk(t *testing.T, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = io.WriteString(conn, "welcome")
			_ = conn.Close()
		}
		served <- err
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len("welcome")))
		_ = conn.Close()
	}
	return <-served, err
}

func TestReplicasKnowEachOtherAndNobodyElse(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	members := x509.NewCertPool()
	members.AppendCertsFromPEM(ours.Bundle())
	for name, test := range map[string]struct {
		server, client *tls.Config
		ok             bool
	}{
		"two replicas of a hub":               {ours.PeerServerTLS(), ours.PeerClientTLS(), true},
		"a replica of another hub calls":      {ours.PeerServerTLS(), theirs.PeerClientTLS(), false},
		"a replica of another hub is called":  {theirs.PeerServerTLS(), ours.PeerClientTLS(), false},
		"nobody in particular calls":          {ours.PeerServerTLS(), &tls.Config{RootCAs: members, ServerName: pki.PeerName, MinVersion: tls.VersionTLS13}, false},
		"a webhook stands where a replica is": {ours.ServerTLS([]string{"hub.example", pki.PeerName}, nil), ours.PeerClientTLS(), false},
		"a member calls the webhook":          {ours.ServerTLS([]string{"hub.example"}, nil), &tls.Config{RootCAs: members, ServerName: "hub.example", MinVersion: tls.VersionTLS13}, true},
		"the webhook under another name":      {ours.ServerTLS([]string{"hub.example"}, nil), &tls.Config{RootCAs: members, ServerName: "other.example", MinVersion: tls.VersionTLS13}, false},
	} {
		atServer, atClient := talk(t, test.server, test.client)
		if failed := errors.Join(atServer, atClient); (failed == nil) != test.ok {
			t.Errorf("%s: server %v, client %v", name, atServer, atClient)
		}
	}
}

func TestFilesThatAreNoCertificatesAreRefused(t *testing.T) {
	if _, err := pki.DirTLS(t.TempDir()); err == nil {
		t.Error("an empty folder serves TLS")
	}
	if _, err := pki.ClientAuthorityOf(t.TempDir() + "/ca.crt"); err == nil {
		t.Error("a file that is not there is an authority")
	}
}
