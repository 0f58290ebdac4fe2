package webhook

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// Connections that are open, of one address and of all. Members' API servers keep a few each, and many members may come
// through one address.
const maxConnectionsOfAddress, maxConnections = 1024, 4096

// places are taken by connections, some by each address. Safe for concurrent use.
type places struct {
	ofAddress, ofAll int

	mu    sync.Mutex
	taken map[netip.Addr]int
	all   int
}

func newPlaces(ofAddress, ofAll int) *places {
	return &places{ofAddress: ofAddress, ofAll: ofAll, taken: map[netip.Addr]int{}}
}

// take takes a place, which the caller gives back once; false: there is none.
func (p *places) take(address netip.Addr) (giveBack func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.ofAll || p.taken[address] >= p.ofAddress {
		return nil, false
	}
	p.all++
	p.taken[address]++
	return sync.OnceFunc(func() { p.free(address) }), true
}

func (p *places) free(address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.taken[address]--; p.taken[address] == 0 {
		delete(p.taken, address)
	}
}

// addressOf is where a connection comes from.
func addressOf(conn net.Conn) netip.Addr { return shares.Address(conn.RemoteAddr().String()) }

// Capped returns a listener that closes connections that are too many, of one address and of all. Before anything is read of a
// connection it has taken memory.
func Capped(of net.Listener, ofAddress, ofAll int) net.Listener {
	return &cappedListener{of, newPlaces(ofAddress, ofAll)}
}

// Paced returns a listener that closes connections of an address that begins more than so many a second, after a burst. A connection
// that nobody uses costs a TLS handshake, half a millisecond of a processor, before it is known whose it is.
func Paced(of net.Listener, perSecond, burst int) *PacedListener {
	return &PacedListener{of, shares.NewPaces(perSecond, burst)}
}

// longestDebt is for how long [PacedListener.Charge] has connections of an address closed at most.
const longestDebt = 3 * time.Second

// PacedListener closes connections that come too fast, see [Paced]. Safe for concurrent use.
type PacedListener struct {
	net.Listener
	paces *shares.Paces
}

// Accept returns the next connection that does not come too fast.
func (l *PacedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.paces.Of(addressOf(conn)).Allow() {
			return conn, err
		}
		_ = conn.Close()
	}
}

// Charge counts n more connections of an address.
func (l *PacedListener) Charge(from netip.Addr, n int) { l.paces.Charge(from, n, longestDebt) }

// cappedListener closes connections that are too many.
type cappedListener struct {
	net.Listener
	places *places
}

// Accept returns the next connection that is not too many.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if giveBack, ok := l.places.take(addressOf(conn)); ok {
			return &cappedConn{Conn: conn, gone: giveBack}, nil
		}
		_ = conn.Close()
	}
}

type cappedConn struct {
	net.Conn
	gone func()
}

// Close closes the connection and makes room for another.
func (c *cappedConn) Close() error {
	defer c.gone()
	return c.Conn.Close()
}
