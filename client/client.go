// Package client connects programs to a hub's API: one connection with TLS and a bearer token or a client certificate, and the clients of all services.
//
// The messages are those of github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1; docs/api.md says what they are for. What a call fails
// with is a gRPC status, whose reason [ReasonOf] finds, and [RetryAfter] returns when to try again.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// Options say how a hub is reached.
type Options struct {
	// Address is the host and port of the hub's gRPC side.
	Address string
	// CA are the certificates, in PEM, of the authorities that the hub's is checked against. Empty: the system's.
	CA []byte
	// ServerName is the name in the hub's certificate, where that is not the host of Address.
	ServerName string
	// Token returns the bearer token of each call. It is called concurrently; see [TokenFile]. Needed, unless there is a Certificate.
	Token func(ctx context.Context) (string, error)
	// Certificate returns the client certificate, for hubs that take one (api.clientCA), at each handshake. It says who calls where there is
	// no Token.
	Certificate func() (*tls.Certificate, error)
	// Dial are further options of the connection.
	Dial []grpc.DialOption
}

// maxAnswer is the largest answer that a hub gives, in bytes; gRPC's own limit is lower.
const maxAnswer = 16 << 20

// Client is a connection to a hub. Safe for concurrent use.
type Client struct {
	Clusters  plimsollv1.ClusterServiceClient
	Workloads plimsollv1.WorkloadServiceClient
	Objects   plimsollv1.ObjectServiceClient
	Events    plimsollv1.EventServiceClient
	Fleet     plimsollv1.FleetServiceClient

	conn *grpc.ClientConn
}

// New makes a client. It connects with the first call. The caller closes it.
func New(o Options) (*Client, error) {
	if o.Address == "" || o.Token == nil && o.Certificate == nil {
		return nil, errors.New("client: Address and Token or Certificate are needed")
	}
	config := &tls.Config{ServerName: o.ServerName, MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("client: CA has no certificate in PEM")
		}
	}
	if o.Certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.Certificate() }
	}
	dial := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
	if o.Token != nil {
		dial = append(dial, grpc.WithPerRPCCredentials(bearer{o.Token}))
	}
	dial = append(append(dial, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer))), o.Dial...)
	conn, err := grpc.NewClient(o.Address, dial...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Client{
		Clusters: plimsollv1.NewClusterServiceClient(conn), Workloads: plimsollv1.NewWorkloadServiceClient(conn),
		Objects: plimsollv1.NewObjectServiceClient(conn), Events: plimsollv1.NewEventServiceClient(conn),
		Fleet: plimsollv1.NewFleetServiceClient(conn), conn: conn,
	}, nil
}

// Close ends the connection, and the calls that are under way.
func (c *Client) Close() error { return c.conn.Close() }

// bearer sends a token along, over TLS only.
type bearer struct {
	token func(context.Context) (string, error)
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.token(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (bearer) RequireTransportSecurity() bool { return true }

// TokenFile reads the token from a file at each call, as a projected ServiceAccount token wants it: the kubelet renews the file.
func TokenFile(path string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		text, err := os.ReadFile(path)
		return strings.TrimSpace(string(text)), err
	}
}

// ReasonOf is the reason of an error for programs, such as MEMBER_UNAVAILABLE; "": it has none.
func ReasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// RetryAfter is when it may help to call again; false: the error does not say.
func RetryAfter(err error) (time.Duration, bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}
