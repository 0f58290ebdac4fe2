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

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/hubapi"
)

const (
	// localAPI is where a hub on this machine answers, or one to which a port was forwarded by hand.
	localAPI = "127.0.0.1:9090"
	// maxAnswer is the largest answer that the hub gives.
	maxAnswer = 16 << 20
)

// connection is how the hub's API is reached.
type connection struct {
	env        Environment
	server     string
	caFile     string
	serverName string
	plaintext  bool
	timeout    time.Duration
	hub        hubFlags
	namespace  string // of the hub
	token      tokenSource
}

// flags adds those of a connection to a command.
func (c *connection) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&c.server, "server", "s", "", "host:port of the hub's gRPC API (PLIMSOLL_API; default: found through the kubeconfig of the hub cluster)")
	flags.StringVar(&c.caFile, "ca-file", "", "PEM file with the CA of the API's certificate (PLIMSOLL_CA_FILE; default: what the hub publishes, else those the system trusts)")
	flags.StringVar(&c.serverName, "tls-server-name", "", "name in the API's certificate, if it is reached under another one")
	flags.BoolVar(&c.plaintext, "insecure-plaintext", false, "connect without TLS; to this machine only")
	flags.DurationVar(&c.timeout, "timeout", 15*time.Second, "how long an answer may take")
	flags.StringVar(&c.namespace, "hub-namespace", enroll.DefaultNamespace, "namespace of the hub in the hub cluster")
	c.hub.flags(command)
	c.token.flags(flags)
}

// caller is a connection that is open.
type caller struct {
	*grpc.ClientConn
	token   string
	timeout time.Duration
	at      hubapi.Endpoint
}

// open finds the API and a token for it, and connects before the first call.
func (c *connection) open(ctx context.Context) (*caller, error) {
	token, err := c.token.read(ctx, c.env, c.hub)
	if err != nil {
		return nil, err
	}
	at, hub, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	if token == "" && hub != nil {
		token, err = c.ownToken(ctx, hub)
	}
	var conn *grpc.ClientConn
	if err == nil {
		conn, err = c.connect(at)
	}
	if err != nil {
		at.Close()
		return nil, err
	}
	return &caller{ClientConn: conn, token: token, timeout: c.timeout, at: at}, nil
}

// find returns where the API is: where flags and environment say, else where the hub cluster does. hub is nil when that was not asked.
func (c *connection) find(ctx context.Context) (hubapi.Endpoint, *hubapi.Cluster, error) {
	c.server = orElse(c.server, c.env.Getenv("PLIMSOLL_API"))
	c.caFile = orElse(c.caFile, c.env.Getenv("PLIMSOLL_CA_FILE"))
	if c.server == "" && (c.plaintext || c.caFile != "") { // which say how a known address is reached
		c.server = localAPI
	}
	if c.server != "" {
		return hubapi.Endpoint{Address: c.server}, nil, nil
	}
	hub, err := c.hub.load(c.env)
	if err != nil {
		return hubapi.Endpoint{}, nil, &hinted{err, hintNoHub}
	}
	cluster, err := hubapi.Connect(hub, c.namespace)
	if err != nil {
		return hubapi.Endpoint{}, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	at, err := cluster.Find(ctx)
	if err != nil {
		return hubapi.Endpoint{}, nil, &hinted{err, hintNoHub}
	}
	return at, cluster, nil
}

const hintNoHub = "name the hub cluster with --context (PLIMSOLL_HUB_CONTEXT) and the hub's namespace there with --hub-namespace, or the API with --server"

// ownToken requests a token in the hub cluster.
func (c *connection) ownToken(ctx context.Context, hub *hubapi.Cluster) (string, error) {
	token, err := hub.Token(ctx, c.token.audience)
	if err != nil {
		return "", &hinted{err, "ask for the right to create serviceaccounts/token of plimsoll-viewer or plimsoll-operator there, name an account with --service-account, or give a token with --token-file"}
	}
	return token, nil
}

// connect makes a connection, and does not dial yet.
func (c *connection) connect(at hubapi.Endpoint) (*grpc.ClientConn, error) {
	host, _, err := net.SplitHostPort(at.Address)
	if err != nil {
		return nil, fmt.Errorf("--server %q: must be host:port", at.Address)
	}
	security, err := c.security(host, at)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(at.Address, grpc.WithTransportCredentials(security), grpc.WithUserAgent("plimsoll-cli"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("--server %q: %w", at.Address, err)
	}
	return conn, nil
}

func (c *connection) security(host string, at hubapi.Endpoint) (credentials.TransportCredentials, error) {
	if c.plaintext {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("--insecure-plaintext: %s is not on this machine, and a token would travel for all to read", host)
		}
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: orElse(c.serverName, at.ServerName)}
	switch {
	case c.caFile != "":
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("--ca-file: it holds no PEM certificate")
		}
	case len(at.CA) > 0: // a load balancer in front of the hub may have a certificate that everybody trusts
		config.RootCAs = systemRoots()
		if !config.RootCAs.AppendCertsFromPEM(at.CA) {
			return nil, fmt.Errorf("configmap/%s/%s: %s holds no PEM certificate", c.namespace, hubapi.ConfigMap, hubapi.CAKey)
		}
	}
	return credentials.NewTLS(config), nil
}

func systemRoots() *x509.CertPool {
	if roots, err := x509.SystemCertPool(); err == nil {
		return roots
	}
	return x509.NewCertPool()
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

func (c *caller) close() {
	_ = c.Close() // the calls have ended: nothing can be done about it
	c.at.Close()
}
