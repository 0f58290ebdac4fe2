package kubeconfig

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"
)

const (
	// A connection on which nothing came for sendPing is pinged, and given up when the answer takes longer than
	// awaitPong: watches of a member that hangs end after 15 s instead of never.
	sendPing  = 10 * time.Second
	awaitPong = 5 * time.Second

	// streamBuffer is how many bytes a member may have sent on one stream that nobody has read yet. The default of 4 MiB lets a
	// member with a dozen watches take 50 MB. A stream carries 5 MiB a second where the way there and back takes 100 ms.
	streamBuffer = 512 << 10
	// maxHeader is how many bytes the headers of an answer may have. API servers send some hundreds, and warnings of at most 4 KiB. Go's
	// default of 10 MiB takes hundreds of MB for each answer in memory, outside of every budget.
	maxHeader = 64 << 10

	// UserAgent is what the hub calls itself in requests to members.
	UserAgent = "plimsoll-hub"
)

// Host is the URL of the server, without credentials.
func (v *Vetted) Host() string { return v.config.Host }

// Compresses says whether the server may be asked for compressed answers.
func (v *Vetted) Compresses() bool { return !v.config.DisableCompression }

// Transport builds the way to the server, which holds credentials and connections, and a function that closes idle ones. It
// asks for no compression ([Vetted.Compresses]). Data that the server's side does not acknowledge for unacked ends its
// connection; 0 leaves that to the operating system. Every error is a [*RefusedError].
func (v *Vetted) Transport(unacked time.Duration) (http.RoundTripper, func(), error) {
	config := rest.CopyConfig(v.config)
	config.Dial = dialer(v.rules, unacked)
	config.UserAgent = UserAgent
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.server: must be a URL")
	}
	// client-go caches transports forever by their configuration, and pings every 30 s only; so only the credentials
	// are left to it, and the transport is our own.
	credentials, err := config.TransportConfig()
	if err != nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "users[].user.exec: is not valid")
	}
	tlsConfig, err := clienttransport.TLSConfigFor(credentials)
	if err != nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "the certificate authority or the client certificate cannot be used")
	}
	connections := &http.Transport{
		Proxy:               config.Proxy,
		DialContext:         credentials.DialHolder.Dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: DialTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: sendPing, PingTimeout: awaitPong,
			MaxReceiveBufferPerStream: streamBuffer,
		},
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true, // it would hide how much came
	}
	authenticated, err := clienttransport.HTTPWrappersForConfig(credentials, connections)
	if err != nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "users[].user: the credentials cannot be used")
	}
	return pinned(server, authenticated), connections.CloseIdleConnections, nil
}

// pinned refuses requests to any other host than the member's server, so that nothing (a redirect, a URL that a member
// made up) can carry the member's credentials elsewhere.
func pinned(server *url.URL, next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Scheme != server.Scheme || req.URL.Host != server.Host {
			return nil, errors.New("request to another host than the member's server refused")
		}
		return next.RoundTrip(req)
	})
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
