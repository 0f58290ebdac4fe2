package webhook

import (
	"hash/maphash"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
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

// addressOf is where a connection comes from. Somebody who has one IPv6 address has all of its network of 64 bits, which
// counts as one.
func addressOf(conn net.Conn) netip.Addr { return addressIn(conn.RemoteAddr().String()) }

// addressIn is addressOf for the text of an address with its port.
func addressIn(text string) netip.Addr {
	remote, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	address := remote.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // fails for more than 128 bits only
		address = network.Addr()
	}
	return address
}

// Capped returns a listener that closes connections that are too many, of one address and of all. Before anything is read of a
// connection it has taken memory.
func Capped(of net.Listener, ofAddress, ofAll int) net.Listener {
	return &cappedListener{of, newPlaces(ofAddress, ofAll)}
}

// Paced returns a listener that closes connections of an address that begins more than so many a second, after a burst. A connection
// that nobody uses costs a TLS handshake, half a millisecond of a processor, before it is known whose it is.
func Paced(of net.Listener, perSecond, burst int) net.Listener {
	return &pacedListener{of, newAddressPaces(pacesOfListener, perSecond, burst)}
}

// pacesOfListener is how many rates there are for all addresses: some share one, by chance.
const pacesOfListener = 1024

// pacedListener closes connections that come too fast.
type pacedListener struct {
	net.Listener
	paces *addressPaces
}

// Accept returns the next connection that does not come too fast.
func (l *pacedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.paces.of(addressOf(conn)).Allow() {
			return conn, err
		}
		_ = conn.Close()
	}
}

// addressPaces are rates of addresses, some of which share one.
type addressPaces struct {
	seed  maphash.Seed
	paces []*rate.Limiter
}

func newAddressPaces(paces, perSecond, burst int) *addressPaces {
	p := &addressPaces{maphash.MakeSeed(), make([]*rate.Limiter, paces)}
	for i := range p.paces {
		p.paces[i] = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	return p
}

func (p *addressPaces) of(address netip.Addr) *rate.Limiter {
	return p.paces[maphash.Comparable(p.seed, address)%uint64(len(p.paces))]
}

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
