package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// ProxyOptions say how a proxy shows itself.
type ProxyOptions struct {
	// Name of the proxy, for its certificate. Default: the cluster's name.
	Name string

	// ClusterUID, when given, is answered as the UID of the kube-system namespace when that object is read (not when
	// namespaces are listed or watched). By that UID a cluster is distinguished from others, so proxies that are to pass for
	// members of their own in front of one API server need one each.
	ClusterUID string

	// Intercept, when given, wraps what answers requests, for faults of a test's own.
	Intercept func(next http.Handler) http.Handler

	// Handshake, when given, is called in each TLS handshake, which waits until it returns. The context ends with the
	// connection.
	Handshake func(ctx context.Context)

	// ConnContext, when given, adds to the context of all requests of a connection, before the first of them is read; see
	// [http.Server].
	ConnContext func(ctx context.Context, conn net.Conn) context.Context
}

// A Proxy stands in front of one API server, at an address and with a certificate authority of its own, and can be made
// to misbehave. It passes on bearer tokens, and no client certificates. Its methods may be called from several
// goroutines at once.
type Proxy struct {
	name     string
	port     *heldPort
	ca       *authority
	tls      *tls.Config
	handler  http.Handler
	context  func(context.Context, net.Conn) context.Context
	upstream *http.Transport
	faults   *faults

	mu       sync.Mutex // guards what follows, and is held while the server is replaced
	server   *http.Server
	listener *trackingListener
	closed   bool
}

// NewProxy starts a proxy in front of a cluster's API server. Close it when it is no longer needed; stopping the
// cluster does not.
func NewProxy(c *Cluster, opts ProxyOptions) (*Proxy, error) {
	if opts.Name == "" {
		opts.Name = c.name
	}
	p := &Proxy{name: opts.Name, faults: newFaults()}
	if err := p.prepare(c, opts); err != nil {
		return nil, fmt.Errorf("proxy %s: %w", opts.Name, err)
	}
	if err := p.listen(); err != nil {
		p.port.release()
		return nil, fmt.Errorf("proxy %s: %w", opts.Name, err)
	}
	return p, nil
}

// prepare makes the proxy's certificate, its way to the API server, and its port.
func (p *Proxy) prepare(c *Cluster, opts ProxyOptions) (err error) {
	if p.ca, err = newAuthority("plimsoll-proxy-" + opts.Name); err != nil {
		return err
	}
	certPEM, keyPEM, err := p.ca.serving()
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	p.tls = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	if opts.Handshake != nil {
		p.tls.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			opts.Handshake(hello.Context())
			return nil, nil
		}
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CAData())
	p.upstream = &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   time.Minute,
	}
	target, err := url.Parse(c.URL())
	if err != nil {
		return err
	}
	p.handler, p.context = p.handle(target, opts), opts.ConnContext
	p.port, err = holdPort()
	return err
}

// handle is what answers requests: faults first, then the test's own, then the API server.
func (p *Proxy) handle(target *url.URL, opts ProxyOptions) http.Handler {
	identity := identity(opts.ClusterUID)
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			identity.ask(r.Out)
		},
		Transport:     p.upstream,
		FlushInterval: -1, // at once, or a watch would be late without anybody wanting it
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			if isWatch(r.Request) {
				r.Body = newLateBody(r.Body, r.Request, p.faults)
			}
			return identity.answer(r)
		},
		// Nothing that looks like an answer: a client has to see a broken connection, as without the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	if opts.Intercept != nil {
		handler = opts.Intercept(handler)
	}
	return p.faults.hold(handler)
}

// listen starts to accept connections. The caller holds mu, or is the only one that knows the proxy.
func (p *Proxy) listen() error {
	inner, err := p.port.listen(context.Background())
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.listener = &trackingListener{Listener: inner, open: map[net.Conn]struct{}{}}
	p.server = &http.Server{
		Handler: p.handler, TLSConfig: p.tls,
		ErrorLog:          log.New(io.Discard, "", 0), // broken connections are what it is for
		ReadHeaderTimeout: time.Minute,
		ConnContext:       p.context,
	}
	server, listener := p.server, p.listener
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return nil
}

// URL is the proxy's address.
func (p *Proxy) URL() string { return "https://" + p.port.address() }

// CAData is the certificate, in PEM, that the proxy's own was issued by.
func (p *Proxy) CAData() []byte { return append([]byte(nil), p.ca.pem...) }

// Kubeconfig is base with the proxy's address and certificate authority in each of its clusters: the same credentials
// by another way. It is nil when base is no kubeconfig.
func (p *Proxy) Kubeconfig(base []byte) []byte {
	config, err := clientcmd.Load(base)
	if err != nil {
		return nil
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.URL(), p.CAData()
		cluster.CertificateAuthority, cluster.TLSServerName = "", ""
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil
	}
	return content
}

// DelayWatches makes everything that watches say arrive later by d, in its order; other requests are not touched. It
// holds for watches that are open too, and 0 lets through at once what was held back.
func (p *Proxy) DelayWatches(d time.Duration) { p.faults.delayWatches(d) }

// Hang leaves requests that match without an answer, until Restore or until the client gives up; match nil means all.
// Watches that are open and match fall silent and keep what they would have said. A second call replaces the match.
func (p *Proxy) Hang(match func(*http.Request) bool) {
	if match == nil {
		match = func(*http.Request) bool { return true }
	}
	p.faults.hang(match)
}

// Cut breaks every open connection. Clients may connect again at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.cut()
}

// Refuse breaks every open connection and refuses new ones until Restore.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut()
}

// Restore ends every fault: what hung goes on, what was delayed comes, what was refused is accepted.
func (p *Proxy) Restore() error {
	p.faults.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.server != nil {
		return nil
	}
	if err := p.listen(); err != nil {
		return fmt.Errorf("proxy %s: %w", p.name, err)
	}
	return nil
}

// Close ends the proxy and gives its port back. It may be called again.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.shut()
	p.faults.clear()
	p.upstream.CloseIdleConnections()
	p.port.release()
}

// shut ends the server with everything that is open. The caller holds mu.
func (p *Proxy) shut() {
	if p.server == nil {
		return
	}
	p.listener.cut()
	_ = p.server.Close() // what it could not close is closed already
	p.server = nil
}
