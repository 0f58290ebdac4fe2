package shares

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
)

// Limits are how many calls an HTTP server serves at a time.
type Limits struct {
	// OfConnection is of one connection of HTTP/2. All calls of a connection may be read, and take memory, before the first of them is
	// refused. Clients of Go open another connection for more.
	OfConnection int
	// InFlight is of all connections, shared by the addresses of their callers as [Places] are.
	InFlight int
}

// Bound has server keep within limits. Over HTTP/2 one connection has hundreds of calls by default, and each takes up to 50 KB, also while
// its caller does not read the answer. A call that finds no place ends its connection and all calls of it: an answer could be left unread
// as well. Ended is called once for each such connection, with the address of its caller; it may be nil.
//
// Bound wraps the server's handler and its ConnContext. Call it once, before the server serves.
func Bound(server *http.Server, limits Limits, ended func(from netip.Addr)) {
	if server.HTTP2 == nil {
		server.HTTP2 = &http.HTTP2Config{}
	}
	server.HTTP2.MaxConcurrentStreams = limits.OfConnection
	places, next, connContext := NewPlaces(limits.InFlight), server.Handler, server.ConnContext
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, conn)
		}
		return context.WithValue(ctx, connKey{}, newCaller(conn))
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, ok := r.Context().Value(connKey{}).(*caller)
		if !ok { // the handler was called by no server
			next.ServeHTTP(w, r)
			return
		}
		Begun(from.remote)
		if !places.Enter(from.address) {
			if from.hangUp() && ended != nil {
				ended(from.ip)
			}
			panic(http.ErrAbortHandler) // no answer, and nothing in the log
		}
		defer places.Leave(from.address)
		if from.ended.Load() { // the call was read before that, and has the place of one that ended with the connection
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
		if r.ProtoMajor == 2 { // the server would write a small answer after this, and wait for a caller who does not read it
			_ = http.NewResponseController(w).Flush()
		}
	})
}

type connKey struct{}

// caller is who is at the other end of a connection.
type caller struct {
	conn    net.Conn // below TLS
	ip      netip.Addr
	address string // ip as a text
	remote  net.Addr
	ended   atomic.Bool
}

func newCaller(conn net.Conn) *caller {
	remote := conn.RemoteAddr()
	ip := Address(remote.String())
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return &caller{conn: conn, ip: ip, address: ip.String(), remote: remote}
}

// hangUp ends the connection at once, and returns whether nobody has reported its end yet, neither this nor [Strangers]. The Close of TLS
// would first say goodbye, for which a caller who does not read leaves no room.
func (c *caller) hangUp() (first bool) {
	if c.ended.Swap(true) {
		return false
	}
	of, ok := c.remote.(strangerAddr)
	first = !ok || !of.conn.ended.Swap(true)
	_ = c.conn.Close()
	return first
}
