package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 5 * time.Second
	callTimeout       = 10 * time.Second // to read a call, and to write its answer; API servers give up after 2 s
	idleTimeout       = 3 * time.Minute  // longer than API servers keep idle connections, so that they close first
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = 5 * time.Second
)

// Server serves HTTPS, HTTP/2 and HTTP/1.1, over kept connections. It serves members' calls with [CA.ServerTLS], and other
// replicas' with [CA.PeerServerTLS].
type Server struct {
	name     string
	listener net.Listener
	server   *http.Server
	log      *slog.Logger
}

// Listen takes the address at once, so that a port in use stops the start; calls are answered from [Server.Start] on.
// name is for errors and logs.
func Listen(name, address string, config *tls.Config, handler http.Handler, log *slog.Logger) (*Server, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s server: %w", name, err)
	}
	return &Server{name: name, listener: listener, server: &http.Server{
		Handler:           handler,
		TLSConfig:         config,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       callTimeout,
		WriteTimeout:      callTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.With("server", name).Handler(), slog.LevelDebug),
	}, log: log.With("server", name)}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

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
	capped := &cappedListener{s.listener, newPlaces(maxConnectionsOfAddress, maxConnections)}
	err := s.server.Serve(newHandshakeListener(turnsListener{capped, yield}, s.server.TLSConfig, handshakesOfMembers, s.log))
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s server: %w", s.name, err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("%s server: stop: %w", s.name, err)
	}
	return nil
}

// NeedLeaderElection tells controller-runtime's manager to start the server on every replica.
func (s *Server) NeedLeaderElection() bool { return false }
