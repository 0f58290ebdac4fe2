package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/client"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// hub is a hub of two pages of failing keys.
type hub struct {
	plimsollv1.UnimplementedClusterServiceServer
	plimsollv1.UnimplementedObjectServiceServer
}

func (hub) ListObjects(ctx context.Context, request *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	if from, ok := peer.FromContext(ctx); ok {
		if secured, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(secured.State.PeerCertificates) > 0 && len(metadata.ValueFromIncomingContext(ctx, "authorization")) == 0 {
			return &plimsollv1.ListObjectsResponse{NextPageToken: secured.State.PeerCertificates[0].Subject.CommonName}, nil
		}
	}
	if got := metadata.ValueFromIncomingContext(ctx, "authorization"); len(got) != 1 || got[0] != "Bearer secret" {
		return nil, status.Error(codes.Unauthenticated, "the bearer token was not accepted")
	}
	name, next := "cart", "more"
	if request.GetPageToken() != "" {
		name, next = "web", ""
	}
	key := &plimsollv1.ObjectKey{Cluster: "prod-eu", Controller: "deployment-spot", Namespace: "shop", Name: name}
	return &plimsollv1.ListObjectsResponse{Objects: []*plimsollv1.ObjectState{{Key: key, LastError: "conflict"}}, NextPageToken: next}, nil
}

// ListClusters answers with as much as a hub may.
func (hub) ListClusters(context.Context, *plimsollv1.ListClustersRequest) (*plimsollv1.ListClustersResponse, error) {
	return &plimsollv1.ListClustersResponse{Clusters: []*plimsollv1.Cluster{{Message: strings.Repeat("x", 15<<20)}}}, nil
}

func (hub) RequeueObject(context.Context, *plimsollv1.RequeueObjectRequest) (*plimsollv1.RequeueObjectResponse, error) {
	refused, err := status.New(codes.FailedPrecondition, "the member does not answer").WithDetails(
		&errdetails.ErrorInfo{Reason: "MEMBER_NOT_ANSWERING"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(10 * time.Second)})
	if err != nil {
		return nil, err
	}
	return nil, refused.Err()
}

// serve runs the hub, and returns its address and authority.
func serve() (address string, ca []byte, stop func()) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert,
	})))
	plimsollv1.RegisterClusterServiceServer(server, hub{})
	plimsollv1.RegisterObjectServiceServer(server, hub{})
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), server.Stop
}

func secret(context.Context) (string, error) { return "secret", nil }

// What is failing, in all members and over all pages.
func Example() {
	address, ca, stop := serve() // a hub
	defer stop()

	hub, err := client.New(client.Options{Address: address, CA: ca, Token: secret})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hub.Close() }()

	request := &plimsollv1.ListObjectsRequest{Filter: `object.last_outcome == "ERROR"`, OrderBy: "attempts desc"}
	for {
		page, err := hub.Objects.ListObjects(context.Background(), request)
		if err != nil {
			fmt.Println(client.ReasonOf(err), err)
			return
		}
		for _, object := range page.GetObjects() {
			fmt.Println(object.GetKey().GetCluster(), object.GetKey().GetName(), object.GetLastError())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return
		}
	}
	// Output:
	// prod-eu cart conflict
	// prod-eu web conflict
}

// connected is a client of a hub that serves until the test ends.
func connected(t *testing.T) *client.Client {
	t.Helper()
	address, ca, stop := serve()
	t.Cleanup(stop)
	hub, err := client.New(client.Options{Address: address, CA: ca, Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	return hub
}

func TestErrorsSayWhyAndWhenToTryAgain(t *testing.T) {
	hub := connected(t)
	_, err := hub.Objects.RequeueObject(t.Context(), &plimsollv1.RequeueObjectRequest{})
	if delay, ok := client.RetryAfter(err); client.ReasonOf(err) != "MEMBER_NOT_ANSWERING" || !ok || delay != 10*time.Second {
		t.Errorf("%v: %q, %s", err, client.ReasonOf(err), delay)
	}
	if _, ok := client.RetryAfter(errors.New("another")); ok || client.ReasonOf(nil) != "" {
		t.Error("errors that say nothing are made to say something")
	}
}

func TestTheLargestAnswerOfAHubIsTaken(t *testing.T) {
	hub := connected(t)
	if _, err := hub.Clusters.ListClusters(t.Context(), &plimsollv1.ListClustersRequest{}); err != nil {
		t.Error(err)
	}
}

func TestATokenFileIsReadAgainAtEachCall(t *testing.T) {
	address, ca, stop := serve()
	defer stop()
	path := filepath.Join(t.TempDir(), "token")
	hub, err := client.New(client.Options{Address: address, CA: ca, Token: client.TokenFile(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hub.Close() }()
	for content, want := range map[string]codes.Code{"expired": codes.Unauthenticated, "secret\n": codes.OK} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := hub.Objects.ListObjects(t.Context(), &plimsollv1.ListObjectsRequest{}); status.Code(err) != want {
			t.Errorf("with %q: %v, want %s", content, err, want)
		}
	}
}

// Not even an option that turns TLS off sends a token in plain text.
func TestATokenIsSentOverTLSOnly(t *testing.T) {
	hub, err := client.New(client.Options{
		Address: "127.0.0.1:1", Token: secret, Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	if err == nil {
		_, err = hub.Clusters.ListClusters(t.Context(), &plimsollv1.ListClustersRequest{})
		_ = hub.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "require transport level security") {
		t.Errorf("a token in plain text: %v", err)
	}
}

func TestACertificateSaysWhoCallsWhereThereIsNoToken(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "alice"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	address, ca, stop := serve()
	defer stop()
	hub, err := client.New(client.Options{Address: address, CA: ca, Certificate: func() (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hub.Close() }()
	if answer, err := hub.Objects.ListObjects(t.Context(), &plimsollv1.ListObjectsRequest{}); err != nil || answer.GetNextPageToken() != "alice" {
		t.Errorf("%v, %v, want to be alice", answer, err)
	}
}

func TestAClientThatCannotWorkIsNotMade(t *testing.T) {
	for name, options := range map[string]client.Options{
		"no address": {Token: secret}, "no token": {Address: "hub:9090"}, "no certificate": {Address: "hub:9090", Token: secret, CA: []byte("text")},
	} {
		if _, err := client.New(options); err == nil {
			t.Errorf("%s: it is made", name)
		}
	}
}
