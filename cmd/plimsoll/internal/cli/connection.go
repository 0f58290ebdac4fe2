package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const (
	defaultAPI = "127.0.0.1:9090"
	// maxAnswer is the largest answer that the hub gives.
	maxAnswer = 16 << 20
)

// connection is how the hub's API is reached.
type connection struct {
	env        Environment
	api        string
	caFile     string
	serverName string
	plaintext  bool
	timeout    time.Duration
	token      tokenSource
}

// flags adds those of a connection to a command.
func (c *connection) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.api, "api", "", "host:port of the hub's gRPC API (PLIMSOLL_API; default "+defaultAPI+")")
	flags.StringVar(&c.caFile, "ca-file", "", "PEM file with the CA of the API's certificate (PLIMSOLL_CA_FILE; default: those the system trusts)")
	flags.StringVar(&c.serverName, "tls-server-name", "", "name in the API's certificate, when it is reached under another")
	flags.BoolVar(&c.plaintext, "insecure-plaintext", false, "connect without TLS; to this machine only")
	flags.DurationVar(&c.timeout, "timeout", 15*time.Second, "how long an answer may take")
	c.token.flags(flags)
}

// caller is a connection that is open.
type caller struct {
	*grpc.ClientConn
	token   string
	timeout time.Duration
}

// open connects, and is not done before the first call.
func (c *connection) open(ctx context.Context) (*caller, error) {
	c.api = orElse(orElse(c.api, c.env.Getenv("PLIMSOLL_API")), defaultAPI)
	host, _, err := net.SplitHostPort(c.api)
	if err != nil {
		return nil, fmt.Errorf("--api %q: must be host:port", c.api)
	}
	security, err := c.security(host)
	if err != nil {
		return nil, err
	}
	token, err := c.token.read(ctx, c.env)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(c.api, grpc.WithTransportCredentials(security), grpc.WithUserAgent("plimsoll-cli"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("--api %q: %w", c.api, err)
	}
	return &caller{ClientConn: conn, token: token, timeout: c.timeout}, nil
}

func (c *connection) security(host string) (credentials.TransportCredentials, error) {
	if c.plaintext {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("--insecure-plaintext: %s is not on this machine, and a token would travel for all to read", host)
		}
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName}
	if file := orElse(c.caFile, c.env.Getenv("PLIMSOLL_CA_FILE")); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("--ca-file: it holds no PEM certificate")
		}
	}
	return credentials.NewTLS(config), nil
}

// call bounds one call, and says who makes it. more is time that the server was asked to take.
func (c *caller) call(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.named(ctx), c.timeout+more)
}

// named says who makes a call.
func (c *caller) named(ctx context.Context) context.Context {
	if c.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

func (c *caller) close() { _ = c.Close() } // the calls have ended: nothing can be done about it
