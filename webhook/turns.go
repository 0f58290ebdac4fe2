package webhook

import "net"

// turnLength is how many writes, an answer each unless it is a long one, a connection makes before its thread lets others
// have the processor.
const turnLength = 4

// A turnsListener serves connections that let other threads have their turn between calls.
//
// When all processors are busy, the kernel stops a thread wherever it is once its time is over, and lets it go on when
// others had theirs: at 250 ticks a second that is 4 ms, which a call in the middle of being answered waits. A thread that
// gives the processor up right after an answer keeps nobody waiting. With nobody else to run it costs a system call that
// returns at once. docs/decisions/0009 has the figures.
type turnsListener struct {
	net.Listener
	yield func() // lets other threads have the processor
}

func (l turnsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &turnsConn{Conn: conn, yield: l.yield}, nil
}

// A turnsConn is written to by one goroutine at a time, as TLS does.
type turnsConn struct {
	net.Conn
	yield   func()
	written int
}

func (c *turnsConn) Write(answer []byte) (int, error) {
	n, err := c.Conn.Write(answer)
	if c.written++; c.written == turnLength {
		c.written = 0
		c.yield()
	}
	return n, err
}
