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

// A Balancer passes TCP connections on to the backends in turn, skipping those that refuse, as a Service does. It does
// not look into them.
type Balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string
	next     int
	open     map[net.Conn]struct{}
	closed   bool
}

// NewBalancer starts one without backends, on a loopback port.
func NewBalancer() (*Balancer, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a balancer: %w", err)
	}
	b := &Balancer{listener: listener, open: map[net.Conn]struct{}{}}
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

// Close ends it with all its connections.
func (b *Balancer) Close() {
	_ = b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
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
	backend := b.dial()
	if backend == nil {
		_ = conn.Close()
		return
	}
	if !b.track(conn, backend) {
		return
	}
	defer b.untrack(conn, backend)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, backend}, {backend, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either end may go at any time
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// dial connects to the next backend that takes the connection; nil when none does.
func (b *Balancer) dial() net.Conn {
	b.mu.Lock()
	b.next++
	turn := b.next
	backends := slices.Clone(b.backends)
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for i := range backends {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", backends[(turn+i)%len(backends)])
		if err == nil {
			return conn
		}
	}
	return nil
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
