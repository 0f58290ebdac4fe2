package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A Balancer passes TCP connections on to the backends in turn, skipping those that refuse. It does not look into them.
type Balancer struct {
	listener net.Listener
	strict   bool

	mu       sync.Mutex
	backends []string
	held     map[string]chan struct{} // backends that get nothing; closed when they do again
	next     int
	open     map[net.Conn]struct{}
	closed   bool
}

// NewBalancer starts one without backends, on a loopback port.
func NewBalancer() (*Balancer, error) { return newBalancer(loopback, false) }

// NewService starts a balancer that does as a Service: a connection goes to a backend that it has, and is refused when that one
// refuses it. It has an address of this machine that is not loopback, if there is one: with loopback API servers speak HTTP/2,
// and HTTP/1.1 with everything else, which has more connections and loses calls on those that are closed.
func NewService() (*Balancer, error) { return newBalancer(ownAddress(), true) }

const loopback = "127.0.0.1"

// ownAddress is an IPv4 address of this machine, loopback if it has no other.
func ownAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return loopback
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return loopback
}

func newBalancer(host string, strict bool) (*Balancer, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("start a balancer: %w", err)
	}
	b := &Balancer{listener: listener, strict: strict, held: map[string]chan struct{}{}, open: map[net.Conn]struct{}{}}
	go b.accept()
	return b, nil
}

// Address is its host and port.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Add puts a backend into the rotation.
func (b *Balancer) Add(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.backends, backend) {
		b.backends = append(b.backends, backend)
	}
}

// Remove takes a backend out of it; connections that are open stay.
func (b *Balancer) Remove(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(other string) bool { return other == backend })
}

// Cut takes a backend out of the rotation and ends the connections to it.
func (b *Balancer) Cut(backend string) {
	b.Remove(backend)
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		if conn.RemoteAddr().String() == backend {
			_ = conn.Close()
		}
	}
}

// Hold keeps back what clients send to a backend, on connections that are open and on new ones, until Release. What the
// backend sends still arrives.
func (b *Balancer) Hold(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[backend] == nil {
		b.held[backend] = make(chan struct{})
	}
}

// Release lets through what was kept back.
func (b *Balancer) Release(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(backend)
}

// release is Release for callers that hold mu.
func (b *Balancer) release(backend string) {
	if held := b.held[backend]; held != nil {
		close(held)
		delete(b.held, backend)
	}
}

// Close ends it with all its connections.
func (b *Balancer) Close() {
	_ = b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for backend := range b.held {
		b.release(backend)
	}
	for conn := range b.open {
		_ = conn.Close()
	}
}

func (b *Balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.serve(conn)
	}
}

func (b *Balancer) serve(conn net.Conn) {
	backend, address := b.dial(sourceOf(conn))
	if backend == nil {
		_ = conn.Close()
		return
	}
	if !b.track(conn, backend) {
		return
	}
	defer b.untrack(conn, backend)
	var both sync.WaitGroup
	pass := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // either end may go at any time
		_ = conn.Close()
		_ = backend.Close()
	}
	both.Go(func() { pass(conn, backend) })
	both.Go(func() { pass(&heldWriter{Conn: backend, balancer: b, address: address}, conn) })
	both.Wait()
}

// A heldWriter writes to a backend when it is not held.
type heldWriter struct {
	net.Conn
	balancer *Balancer
	address  string
}

// Write waits for as long as the backend is held.
func (w *heldWriter) Write(content []byte) (int, error) {
	for {
		w.balancer.mu.Lock()
		held := w.balancer.held[w.address]
		w.balancer.mu.Unlock()
		if held == nil {
			return w.Conn.Write(content)
		}
		<-held
	}
}

// sourceOf is the address that a backend is to see: the caller's, as behind a load balancer that keeps it.
func sourceOf(conn net.Conn) net.Addr {
	if caller, ok := conn.RemoteAddr().(*net.TCPAddr); ok && caller.IP.IsLoopback() {
		return &net.TCPAddr{IP: caller.IP}
	}
	return nil
}

// dial connects from an address to the next backend that takes the connection, and says which; nil when none does.
func (b *Balancer) dial(from net.Addr) (net.Conn, string) {
	b.mu.Lock()
	b.next++
	turn := b.next
	backends := slices.Clone(b.backends)
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for i := range backends {
		backend := backends[(turn+i)%len(backends)]
		conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp4", backend)
		if err == nil {
			return conn, backend
		}
		if b.strict {
			break
		}
	}
	return nil, ""
}

// track notes open connections, or closes them when the balancer is closed.
func (b *Balancer) track(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		if b.closed {
			_ = conn.Close()
			continue
		}
		b.open[conn] = struct{}{}
	}
	return !b.closed
}

func (b *Balancer) untrack(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		delete(b.open, conn)
	}
}
