package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const (
	// maxPeerAnswer fits the API's largest answer.
	maxPeerAnswer = 16 << 20
	// farewell is how long calls to a replica that is no longer the owner may still take; the API's longest call fits in.
	farewell = time.Minute
)

// peers connects to the other replicas, with mutual authentication. A connection is kept per address, and closed some
// time after the address has ceased to be that of an owner of any member. Safe for concurrent use.
type peers struct {
	tls *tls.Config
	log *slog.Logger

	mu      sync.Mutex
	closed  bool
	conns   map[string]*grpc.ClientConn
	leaving map[string]*time.Timer // of addresses in conns
}

func newPeers(config *tls.Config, log *slog.Logger) *peers {
	return &peers{tls: config, log: log, conns: map[string]*grpc.ClientConn{}, leaving: map[string]*time.Timer{}}
}

// Dial implements api.Peers.
func (p *peers) Dial(address string) (grpc.ClientConnInterface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("connect to replica %s: this replica stops", address)
	}
	if conn := p.conns[address]; conn != nil {
		return conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(p.tls.Clone())),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxPeerAnswer)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to replica %s: %w", address, err)
	}
	p.conns[address] = conn
	return conn, nil
}

// keep releases the connections to all addresses but these owners'.
func (p *peers) keep(owners map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address := range p.conns {
		timer := p.leaving[address]
		switch {
		case owners[address] && timer != nil:
			timer.Stop()
			delete(p.leaving, address)
		case !owners[address] && timer == nil:
			p.leaving[address] = time.AfterFunc(farewell, func() { p.drop(address) })
		}
	}
}

func (p *peers) drop(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.leaving[address] == nil {
		return // all are closed, or it is an owner's again
	}
	delete(p.leaving, address)
	p.disconnect(address)
}

// disconnect closes a connection; the caller holds mu.
func (p *peers) disconnect(address string) {
	if err := p.conns[address].Close(); err != nil {
		p.log.Debug("close the connection to a replica", "address", address, "error", err)
	}
	delete(p.conns, address)
}

// close ends all connections, and lets no new ones be made.
func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, timer := range p.leaving {
		timer.Stop()
	}
	clear(p.leaving)
	for address := range p.conns {
		p.disconnect(address)
	}
}

// peerHandler serves both kinds of calls that replicas make of each other on one port. Neither is ever passed on further:
// the services behind it are those that answer here or not at all.
func peerHandler(api, webhook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			api.ServeHTTP(w, r)
			return
		}
		webhook.ServeHTTP(w, r)
	})
}

// routes reports who answers for a member: it is how webhook and API see the Ownership.
type routes struct {
	ownership Ownership
	self      string // the address at which others reach us
}

// Route implements webhook.Router. An owner that could not renew its Lease does not answer for itself any more, and asks
// nobody either; nor is it asked, for it could not place anything.
func (r routes) Route(member string) (local bool, owner string) {
	if r.Acts(member) {
		return true, ""
	}
	owner, until := r.ownership.Owner(member)
	if owner == r.self || !time.Now().Before(until) {
		return false, ""
	}
	return false, owner
}

// Owner implements api.Ownership.
func (r routes) Owner(member string) string {
	owner, _ := r.ownership.Owner(member)
	return owner
}

// Mine implements api.Ownership: the last owner keeps answering questions until there is another.
func (r routes) Mine(member string) bool { return r.Acts(member) || r.Owner(member) == r.self }

// Acts implements api.Ownership.
func (r routes) Acts(member string) bool {
	_, mine := r.ownership.Mine(member)
	return mine
}

// serveHTTP serves until ctx ends, then lets the calls under way end for a while.
func serveHTTP(ctx context.Context, server *http.Server, serve func() error) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverGrace)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			_ = server.Close() // what is left is cut off
		}
	})
	err := serve()
	if stop() {
		return err // it ended by itself
	}
	<-stopped
	return nil
}
