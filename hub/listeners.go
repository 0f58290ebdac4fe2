package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// Connections that are open on each address, of one caller's address and of all: strangers need no token for one, and it takes up to
// 100 KiB. Many callers may come through one address.
const maxConnectionsOfAddress, maxConnections = 512, 1024

// Connections that one caller's address may begin a second, and at once. Each takes a TLS handshake before it is known whose it is, half
// a millisecond of a processor.
const connectionRate, connectionBurst = 200, 1024

// connectionsOfEnded is how many connections one counts as that is ended for what it sends: reading that cost more than its handshake.
const connectionsOfEnded = 100

// listeners are the addresses that a replica has taken.
type listeners struct {
	grpc, rest, peer, metrics, probes net.Listener
	webhook                           *webhook.Server
}

// wantedAddress is an address that the configuration asks for, and the key that does.
type wantedAddress struct {
	key, address string
	strangers    bool // callers say who they are in what is read; those of the others say it before that, or never
}

// wantedAddresses are all but the webhook's.
func wantedAddresses(config *config.Config) []wantedAddress {
	return []wantedAddress{
		{"api.grpcAddress", config.API.GRPCAddress, true}, {"api.restAddress", config.API.RESTAddress, true}, {"peer.address", config.Peer.Address, false},
		{"metrics.address", config.Metrics.Address, true}, {"probes.address", config.Probes.Address, false},
	}
}

func webhookAddress(config *config.Config) string {
	return net.JoinHostPort(config.Webhook.BindAddress, strconv.Itoa(config.Webhook.Port))
}

// listen takes all addresses but the webhook's.
func listen(config *config.Config) (*listeners, error) {
	l := &listeners{}
	into := []*net.Listener{&l.grpc, &l.rest, &l.peer, &l.metrics, &l.probes}
	for i, wanted := range wantedAddresses(config) {
		listener, err := net.Listen("tcp", wanted.address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("%s: %w", wanted.key, err)
		}
		paced := webhook.Paced(listener, connectionRate, connectionBurst)
		*into[i] = webhook.Capped(paced, maxConnectionsOfAddress, maxConnections)
		if wanted.strangers {
			*into[i] = strangersTo(paced).Listener(*into[i])
		}
	}
	return l, nil
}

// strangerLimits hold for callers who have not shown whose token they have. A usual call is within what is free: a handshake takes 1 KB, a
// token up to 16. So is the first description of the API that somebody asks for, of which 18 KB are sent.
var strangerLimits = shares.StrangerLimits{
	Free: 20 << 10, Rate: 1 << 20, Burst: 1 << 20, Call: 1 << 10, Refused: 8 << 10, Answer: 4 << 10, Wait: 3 * time.Second,
}

func strangersTo(listener *webhook.PacedListener) *shares.Strangers {
	return shares.NewStrangers(strangerLimits, func(from netip.Addr) { listener.Charge(from, connectionsOfEnded) })
}

// close gives the addresses back; for a hub that was never run.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.grpc, l.rest, l.peer, l.metrics, l.probes} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	if l.webhook != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.webhook.Start(ended)
	}
}

// Addresses are where a hub listens, as host and port; ports that the configuration left open are filled in.
type Addresses struct{ Webhook, GRPC, REST, Peer, Metrics, Probes string }

// Addresses returns where the hub listens.
func (h *Hub) Addresses() Addresses {
	l := h.listeners
	return Addresses{
		Webhook: l.webhook.Addr().String(), GRPC: l.grpc.Addr().String(), REST: l.rest.Addr().String(),
		Peer: l.peer.Addr().String(), Metrics: l.metrics.Addr().String(), Probes: l.probes.Addr().String(),
	}
}

// announce logs one line per server.
func (h *Hub) announce() {
	a := h.Addresses()
	for _, server := range []struct{ name, address string }{
		{"webhook", a.Webhook}, {"grpc", a.GRPC}, {"rest", a.REST}, {"peer", a.Peer}, {"metrics", a.Metrics}, {"probes", a.Probes},
	} {
		h.log.Info("listening", slog.String("server", server.name), slog.String("address", server.address))
	}
}

// advertised is the host and port at which other replicas reach this one.
func advertised(conf *config.Config, environ []string, bound net.Addr) string {
	if conf.Peer.Advertise != "" {
		return conf.Peer.Advertise
	}
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return bound.String()
	}
	if ip := config.Lookup(environ, "POD_IP"); ip != "" {
		host = ip
	} else if parsed, err := netip.ParseAddr(host); err == nil && parsed.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// webhookURL is where the members' API servers find the admission endpoint, which is bound to an address.
func webhookURL(config *config.Config, bound net.Addr) (*url.URL, error) {
	switch {
	case config.Webhook.URL != "":
		return webhook.ParseBaseURL(config.Webhook.URL)
	case config.Webhook.BindAddress != "":
		return webhook.ParseBaseURL("https://" + bound.String())
	}
	return webhook.ParseBaseURL("https://" + serviceNames(config)[0] + ":443")
}

// serviceNames are the DNS names under which the hub is reached in its own cluster; the webhook's is first.
func serviceNames(config *config.Config) []string {
	var names []string
	for _, service := range []string{"plimsoll-webhook", "plimsoll-api", "plimsoll-hub", "plimsoll-metrics"} {
		name := service + "." + config.Hub.Namespace + ".svc"
		names = append(names, name, name+".cluster.local")
	}
	return names
}

// certificateNames are what a certificate that the hub makes for itself is good for.
func certificateNames(config *config.Config) (names []string, ips []net.IP) {
	names = append(append(serviceNames(config), "localhost"), config.Webhook.DNSNames...)
	hosts := []string{"127.0.0.1", "::1", config.Webhook.BindAddress}
	if base, err := url.Parse(config.Webhook.URL); err == nil {
		hosts = append(hosts, base.Hostname())
	}
	for _, ip := range config.Webhook.IPs {
		hosts = append(hosts, ip.String())
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else if host != "" {
			names = append(names, host)
		}
	}
	return names, ips
}

// certificates are what a server shows, and what its clients have to trust.
type certificates interface {
	ServerTLS() *tls.Config
	Bundle() []byte
}

// ownCertificates come from the hub's authority.
type ownCertificates struct {
	ca     *pki.CA
	config *config.Config
}

func (c ownCertificates) ServerTLS() *tls.Config {
	names, ips := certificateNames(c.config)
	return c.ca.ServerTLS(names, ips)
}

func (c ownCertificates) Bundle() []byte { return c.ca.Bundle() }

// newCertificates takes them from a folder, or from the hub's authority if none is named.
func newCertificates(dir string, ca *pki.CA, config *config.Config) (certificates, error) {
	if dir == "" {
		if ca == nil {
			return nil, errors.New("there is no certificate authority")
		}
		return ownCertificates{ca, config}, nil
	}
	return pki.DirTLS(dir)
}
