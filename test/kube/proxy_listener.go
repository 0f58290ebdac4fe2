package kube

import (
	"net"
	"sync"
)

// A trackingListener knows its open connections, so that they can be cut.
type trackingListener struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// Accept waits for the next connection.
func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &trackedConn{Conn: conn, listener: l}
	l.mu.Lock()
	l.open[tracked] = struct{}{}
	l.mu.Unlock()
	return tracked, nil
}

// cut breaks what is open, with a reset rather than a farewell.
func (l *trackingListener) cut() {
	l.mu.Lock()
	open := make([]net.Conn, 0, len(l.open))
	for conn := range l.open {
		open = append(open, conn)
	}
	l.mu.Unlock()
	for _, conn := range open {
		if tcp, ok := conn.(*trackedConn).Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

type trackedConn struct {
	net.Conn
	listener *trackingListener
}

// Close forgets the connection.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
