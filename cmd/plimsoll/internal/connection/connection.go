package connection

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/plimsoll-dev/plimsoll/client"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/hubapi"
)

const (
	// localAPI is where a hub on this machine answers, or one to which a port was forwarded by hand.
	localAPI = "127.0.0.1:9090"
	// maxAnswer is the largest answer that the hub gives.
	maxAnswer = 16 << 20
)

// Options say how the hub's API is reached. They are filled by flags, or stay as [New] makes them. Not for concurrent use.
type Options struct {
	// Hub is the hub cluster, which is asked for what neither flags nor the environment say.
	Hub HubFlags

	getenv     func(string) string
	server     string
	caFile     string
	serverName string
	plaintext  bool
	timeout    time.Duration // of each call
	namespace  string        // of the hub
	token      tokenSource
	own        certificateSource
}

// New creates options with their defaults: 15 seconds for each call, the namespace in which the hub is installed, and the audience of its API.
// getenv reads the environment; it may be nil for options that are never opened.
func New(getenv func(string) string) *Options {
	return &Options{getenv: getenv, timeout: 15 * time.Second, namespace: enroll.DefaultNamespace, token: tokenSource{audience: "plimsoll"}}
}

// AddFlags adds the flags of a connection to a command, those of the hub cluster among them.
func (c *Options) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&c.server, "server", "s", "", "host:port of the hub's gRPC API (PLIMSOLL_API; default: found through the kubeconfig of the hub cluster)")
	flags.StringVar(&c.caFile, "ca-file", "", "PEM file with the CA of the API's certificate, also --certificate-authority (PLIMSOLL_CA_FILE; default: what the hub publishes, else those the system trusts)")
	flags.StringVar(&c.serverName, "tls-server-name", "", "name in the API's certificate, if it is reached under another one")
	flags.BoolVar(&c.plaintext, "insecure-plaintext", false, "connect without TLS; to this machine only")
	flags.DurationVar(&c.timeout, "timeout", c.timeout, "timeout of each call, also --request-timeout; 0: none")
	c.AddNamespaceFlag(flags)
	c.Hub.AddFlags(command)
	c.token.flags(flags)
	c.own.flags(flags)
}

// AddNamespaceFlag adds the flag that names the hub's namespace alone, for commands in which the other flags of a connection mean something else.
func (c *Options) AddNamespaceFlag(flags *pflag.FlagSet) {
	flags.StringVar(&c.namespace, "hub-namespace", c.namespace, "namespace of the hub in the hub cluster")
}

// Namespace is that of the hub in the hub cluster.
func (c *Options) Namespace() string { return c.namespace }

// Client is an open connection: the generated clients take it for their calls. It does not add the token to them; the contexts of
// [Client.CallContext] and [Client.WithToken] do. Safe for concurrent use.
type Client struct {
	*grpc.ClientConn
	token   string
	timeout time.Duration
	at      hubapi.Endpoint
}

// Open finds the API and a token for it, where no certificate says who calls. It forwards a port where the hub publishes no address, and
// otherwise dials with the first call only. Where the hub cluster does not say what is missing, the error is a [HintedError]. The client has to
// be closed.
func (c *Options) Open(ctx context.Context) (*Client, error) {
	certificate, err := c.own.read(c.getenv)
	if err != nil {
		return nil, err
	}
	var token string
	if !c.own.given() || c.token.given() { // a certificate that a flag names says who calls, whatever token the environment has
		if token, err = c.token.read(ctx, c.getenv, c.Hub); err != nil {
			return nil, err
		}
	}
	at, hub, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	if token == "" && certificate == nil && hub != nil {
		token, err = c.ownToken(ctx, hub)
	}
	var conn *grpc.ClientConn
	if err == nil {
		conn, err = c.connect(at, certificate)
	}
	if err != nil {
		at.Close()
		return nil, err
	}
	return &Client{ClientConn: conn, token: token, timeout: c.timeout, at: at}, nil
}

// find returns where the API is: where flags and environment say, else where the hub cluster does. hub is nil when that was not asked.
func (c *Options) find(ctx context.Context) (hubapi.Endpoint, *hubapi.Cluster, error) {
	c.server = cmp.Or(c.server, c.getenv("PLIMSOLL_API"))
	c.caFile = cmp.Or(c.caFile, c.getenv("PLIMSOLL_CA_FILE"))
	if c.server == "" && (c.plaintext || c.caFile != "") { // which say how a known address is reached
		c.server = localAPI
	}
	if c.server != "" {
		return hubapi.Endpoint{Address: c.server}, nil, nil
	}
	hub, err := c.Hub.Load(c.getenv)
	if err != nil {
		return hubapi.Endpoint{}, nil, &HintedError{err, hintNoHub}
	}
	cluster, err := hubapi.Connect(hub, c.namespace)
	if err != nil {
		return hubapi.Endpoint{}, nil, err
	}
	ctx, cancel := within(ctx, c.timeout, 0)
	defer cancel()
	at, err := cluster.Find(ctx)
	if err != nil {
		return hubapi.Endpoint{}, nil, &HintedError{err, hintNoHub}
	}
	return at, cluster, nil
}

const hintNoHub = "set --context (PLIMSOLL_HUB_CONTEXT) to the hub cluster and --hub-namespace to the hub's namespace, or --server to the API"

// ownToken requests a token in the hub cluster.
func (c *Options) ownToken(ctx context.Context, hub *hubapi.Cluster) (string, error) {
	token, err := hub.Token(ctx, c.token.audience)
	if err != nil {
		return "", &HintedError{err, "ask for the right to create serviceaccounts/token of plimsoll-viewer or plimsoll-operator there, name an account with --service-account, or set a token with --token-file"}
	}
	return token, nil
}

// connect makes a connection, and does not dial yet. certificate says who calls where no token does; nil: none.
func (c *Options) connect(at hubapi.Endpoint, certificate *tls.Certificate) (*grpc.ClientConn, error) {
	host, _, err := net.SplitHostPort(at.Address)
	if err != nil {
		return nil, fmt.Errorf("--server %q: must be host:port", at.Address)
	}
	security, err := c.security(host, at, certificate)
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

func (c *Options) security(host string, at hubapi.Endpoint, certificate *tls.Certificate) (credentials.TransportCredentials, error) {
	if c.plaintext {
		if c.own.given() { // one that the environment names is not used
			return nil, errors.New("--insecure-plaintext and --client-certificate: certificates are shown over TLS only")
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("--insecure-plaintext: %s is not on this machine, and the token would be sent unencrypted", host)
		}
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(c.serverName, at.ServerName)}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	switch {
	case c.caFile != "":
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("--ca-file: it contains no PEM certificate")
		}
	case len(at.CA) > 0: // a load balancer in front of the hub may have a certificate that everybody trusts
		config.RootCAs = systemRoots()
		if !config.RootCAs.AppendCertsFromPEM(at.CA) {
			return nil, fmt.Errorf("configmap/%s/%s: %s contains no PEM certificate", c.namespace, hubapi.ConfigMap, hubapi.CAKey)
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

// CallContext is the context of one call: with the token, and with the timeout of the flags, to which more is added, the time that the hub
// was asked to wait.
func (c *Client) CallContext(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	return within(c.WithToken(ctx), c.timeout, more)
}

// within is ctx with a timeout, to which more is added; 0: without one, as with kubectl.
func within(ctx context.Context, timeout, more time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout+more)
}

// EachPage calls read for each page of a list, with a [Client.CallContext] of its own and the token of the page, "" for the first. read
// returns the token of the next page, "" after the last. The first error of read ends it, but for a spent filter budget or no place for a list in
// an order: then it waits as long as the hub says, and reads the page again.
func (c *Client) EachPage(ctx context.Context, read func(ctx context.Context, token string) (next string, err error)) error {
	for token := ""; ; {
		next, err := c.page(ctx, token, read)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

const (
	// filterBudget is the reason of a list that costs more than its caller has left for the moment, or whose filter does.
	filterBudget = "FILTER_BUDGET_SPENT"
	// tooManyLists is that of a list in an order for which the hub has no place for the moment.
	tooManyLists = "TOO_MANY_LISTS"
	// mostRetries is how often a page is read again for that, longestRetry how long the hub may want each to wait.
	mostRetries, longestRetry = 3, time.Minute
)

// page reads one page, and waits where the pages before it have spent what lists may cost, since in an order each looks at all items, or where too
// many are made at a time.
func (c *Client) page(ctx context.Context, token string, read func(ctx context.Context, token string) (next string, err error)) (string, error) {
	for retries := 0; ; retries++ {
		call, cancel := c.CallContext(ctx, 0)
		next, err := read(call, token)
		cancel()
		wait, _ := client.RetryAfter(err)
		reason := client.ReasonOf(err)
		if reason != filterBudget && reason != tooManyLists || retries == mostRetries || wait > longestRetry {
			return next, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// WithToken is the context of a call without a timeout of its own, such as a watch: with the token, if there is one.
func (c *Client) WithToken(ctx context.Context) context.Context {
	if c.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

// Token is the bearer token that each call has; "": none.
func (c *Client) Token() string { return c.token }

// Close ends the connection, and the port-forward below it. Call it once, after the calls have ended.
func (c *Client) Close() {
	c.at.Close()             // first, so that client-go does not report what the end of the connection does to the port-forward
	_ = c.ClientConn.Close() // the calls have ended: nothing can be done about it
}
