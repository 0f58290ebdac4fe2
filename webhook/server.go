package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

const (
	readHeaderTimeout = 5 * time.Second
	callTimeout       = 10 * time.Second // to read a call, and to write its answer; API servers give up after 2 s
	idleTimeout       = 3 * time.Minute  // longer than API servers keep idle connections, so that they close first
	maxHeaderBytes    = 8 << 10          // API servers send less than 1 KiB, and up to 4 where they have tokens
	shutdownTimeout   = 5 * time.Second
	// connectionBuffer and streamBuffer are how many bytes the server keeps of the calls of a connection over HTTP/2, and of one of them,
	// that their handlers have not read. An API server has one connection for all of its calls: up to three that wait for their turns leave
	// room for the others.
	connectionBuffer, streamBuffer = 256 << 10, 64 << 10
	// callsOfConnection is how many calls of a connection of HTTP/2 are served at a time. API servers open another connection for more.
	callsOfConnection = 32
	// handshakesOfEnded is how many handshakes a connection counts as that is ended because of its calls, or given up: reading what it had sent
	// cost more.
	handshakesOfEnded = 100
	// maxCalls is how many calls of all callers are in flight, those that wait to be refused included; an address has half of them at most.
	// Each may take 50 KB. An answer takes milliseconds, so 512 in flight are more than an address has.
	maxCalls = 1024
)

// strangers bounds how fast connections are read on which no call has been accepted. A usual first call is within what is free: a handshake
// with the API server's certificate takes 3 KB, a review of a pod 10.
var strangers = shares.StrangerLimits{Free: 16 << 10, Rate: 1 << 20, Burst: 1 << 20, Call: 1 << 10, Refused: 8 << 10, Wait: 3 * time.Second}

// Server serves HTTPS, HTTP/2 and HTTP/1.1, over kept connections. It serves members' calls with [CA.ServerTLS], and other
// replicas' with [CA.PeerServerTLS].
type Server struct {
	name     string
	listener *handshakeListener
	server   *http.Server
	leaving  atomic.Bool
	serving  atomic.Bool
	log      *slog.Logger
}

// Listen takes the address at once, so that a port in use stops the start; calls are answered from [Server.Start] on.
// name is for errors and logs. Metrics count the connections that are ended because of what they send.
func Listen(name, address string, config *tls.Config, handler http.Handler, metrics *Metrics, log *slog.Logger) (*Server, error) {
	return listenTo(strangers, name, address, config, handler, metrics, log)
}

func listenTo(strangers shares.StrangerLimits, name, address string, config *tls.Config, handler http.Handler, metrics *Metrics, log *slog.Logger) (*Server, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s server: %w", name, err)
	}
	s := &Server{name: name, log: log.With("server", name)}
	capped := Capped(listener, maxConnectionsOfAddress, maxConnections)
	var callers *shares.Strangers
	ended := func(from netip.Addr) {
		metrics.rejected.WithLabelValues("too_many").Inc() // no series before the first
		s.listener.charge(from, handshakesOfEnded, callers.Knows(from))
	}
	callers = shares.NewStrangers(strangers, ended)
	s.listener = newHandshakeListener(callers.Listener(turnsListener{capped, yield}), config, handshakesOfMembers, s.log)
	s.server = &http.Server{
		Handler:           s.partingFrom(handler),
		TLSConfig:         config,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       callTimeout,
		WriteTimeout:      callTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxReceiveBufferPerConnection: connectionBuffer, MaxReceiveBufferPerStream: streamBuffer},
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	shares.Bound(s.server, shares.Limits{OfConnection: callsOfConnection, InFlight: maxCalls}, ended)
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serving returns an error while no call would be answered: before [Server.Start], and after it.
func (s *Server) Serving() error {
	if !s.serving.Load() {
		return fmt.Errorf("the %s server does not listen at %s", s.name, s.Addr())
	}
	return nil
}

// Leave makes each answer from now on the last one of its connection, so that who calls takes another connection for the next
// call. New connections are still served. Call it some time before ctx of [Server.Start] ends: a client that sends a call while an
// idle connection is being closed cannot know whether the call was answered, and API servers do not send calls twice. It may be
// called at any time, and again.
func (s *Server) Leave() { s.leaving.Store(true) }

var lastAnswer = []string{"close"}

// partingFrom adds to the answers of handler, once the server leaves, that the connection ends: HTTP/2 says so by GOAWAY.
func (s *Server) partingFrom(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header()["Connection"] = lastAnswer
		}
		handler.ServeHTTP(w, r)
	})
}

// Start serves until ctx is done, then lets the calls under way end, for at most 5 s. It is called once.
func (s *Server) Start(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		// ctx is done; what is left to do gets time of its own.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err := s.server.Shutdown(grace)
		if err != nil {
			err = errors.Join(err, s.server.Close())
		}
		stopped <- err
	})
	s.serving.Store(true)
	defer s.serving.Store(false)
	err := s.server.Serve(s.listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s server: %w", s.name, err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("%s server: stop: %w", s.name, err)
	}
	return nil
}

// NeedLeaderElection asks controller-runtime's manager to start the server on every replica.
func (s *Server) NeedLeaderElection() bool { return false }
