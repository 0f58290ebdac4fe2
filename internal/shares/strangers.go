package shares

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// StrangerLimits are how fast a server reads what connections send of which it does not know whose they are, and sends them large answers.
type StrangerLimits struct {
	// Free is how many bytes of each connection pass without a wait: the TLS handshake and a usual first call.
	Free int
	// Rate and Burst are how many bytes of all such connections of one address pass a second, and at once. The free ones count too.
	Rate, Burst int
	// Call is how many bytes a call counts as, beside its own, and Refused how many more one that is refused. At most Burst.
	Call, Refused int
	// Answer is how many bytes of each answer do not count. The others of those that [MaySend] is asked about count like those that are read.
	Answer int
	// Wait is how long a connection waits at most before more passes. One that would have to wait longer is ended.
	Wait time.Duration
}

// Strangers pace what a server reads of connections until a call on them is accepted, see [Known] and [Refused]: reading a call and
// refusing it costs the server as much as sending it costs the caller, and no limit of calls in flight bounds how many there are. The same
// pace bounds what is sent to whoever asks, see [MaySend]. Safe for concurrent use.
type Strangers struct {
	limits StrangerLimits
	paces  *Paces
	ended  func(from netip.Addr)

	mu    sync.Mutex
	known map[netip.Addr]int // open connections that have been known
}

// NewStrangers are all strangers of a server. Ended is called once for each connection that is ended because it would have to wait too long,
// and for each that its caller gives up after more than the free bytes were read of it, unless it has been known or [Excused], or its address
// is [Strangers.Knows]; it may be nil.
func NewStrangers(limits StrangerLimits, ended func(from netip.Addr)) *Strangers {
	return &Strangers{limits: limits, paces: NewPaces(limits.Rate, limits.Burst), ended: ended, known: map[netip.Addr]int{}}
}

// Knows returns whether an address has an open connection that has been known. Then others than a flood may be behind the address, and would
// wait with it.
func (s *Strangers) Knows(address netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[address] > 0
}

// meet counts a connection that is known, unless it has ended or is counted already.
func (s *Strangers) meet(c *strangerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.gone && !c.met.Swap(true) {
		s.known[c.address]++
	}
}

// forget stops counting a connection that ends.
func (s *Strangers) forget(c *strangerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.gone = true
	if !c.met.Load() {
		return
	}
	if s.known[c.address]--; s.known[c.address] == 0 {
		delete(s.known, c.address)
	}
}

// Listener returns a listener whose connections are of strangers. Give it to a server without wrapping its connections again, other than by
// [crypto/tls].
func (s *Strangers) Listener(of net.Listener) net.Listener { return &strangersListener{of, s} }

type strangersListener struct {
	net.Listener
	strangers *Strangers
}

// Accept implements [net.Listener].
func (l *strangersListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &strangerConn{Conn: conn, strangers: l.strangers, address: Address(conn.RemoteAddr().String()), closed: make(chan struct{})}
	c.free.Store(int64(l.strangers.limits.Free))
	return c, nil
}

type strangerConn struct {
	net.Conn
	strangers *Strangers
	address   netip.Addr
	free      atomic.Int64 // bytes that are left
	known     atomic.Bool  // or [HasRoom]: it is read without waits
	met       atomic.Bool  // it has been known; set under the lock of the strangers
	excused   atomic.Bool
	unknown   atomic.Int64 // bytes that were read while it was not known
	close     sync.Once
	closed    chan struct{}
	ended     atomic.Bool // and this has been reported
	gone      bool        // under the lock of the strangers: closed
}

var errStranger = errors.New("the connection sends more than is read of strangers")

// Read waits, once it has read something, until the address may send that.
func (c *strangerConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 && !c.known.Load() {
		c.unknown.Add(int64(n))
		if !c.pace(n) {
			return 0, errStranger
		}
	}
	return n, err
}

// pace waits until n bytes may pass that were read or are to be sent, or ends the connection and returns false.
func (c *strangerConn) pace(n int) bool {
	limits := &c.strangers.limits
	if c.free.Add(-int64(n)) >= 0 {
		c.charge(n)
		return true
	}
	due := c.strangers.paces.Of(c.address).ReserveN(time.Now(), min(n, limits.Burst))
	delay := due.Delay()
	if delay > limits.Wait {
		due.Cancel()
		c.end()
		return false
	}
	select {
	case <-time.After(delay):
		return true
	case <-c.closed:
		return false
	}
}

// end ends the connection because it would have to wait too long.
func (c *strangerConn) end() {
	_ = c.Close()
	c.report()
}

// report reports that the connection has ended. It does so once: several answers may wait on one.
func (c *strangerConn) report() {
	if !c.ended.Swap(true) && c.strangers.ended != nil {
		c.strangers.ended(c.address)
	}
}

func (c *strangerConn) charge(n int) { c.strangers.paces.Charge(c.address, n, c.strangers.limits.Wait) }

// Close implements [net.Conn]. It ends all waits. A caller who gives up a connection of which more was read than is free is reported like
// one whose connection is ended: on a new one as much would be read at once.
func (c *strangerConn) Close() error {
	c.close.Do(func() {
		close(c.closed)
		c.strangers.forget(c)
		if !c.met.Load() && !c.excused.Load() && c.unknown.Load() > int64(c.strangers.limits.Free) && !c.strangers.Knows(c.address) {
			c.report()
		}
	})
	return c.Conn.Close()
}

// RemoteAddr implements [net.Conn]. Of the address one gets back to the connection, see [Known].
func (c *strangerConn) RemoteAddr() net.Addr { return strangerAddr{c.Conn.RemoteAddr(), c} }

type strangerAddr struct {
	net.Addr
	conn *strangerConn
}

// HasRoom says that there is room for the call of a member that a connection sends, which bounds it, although nobody knows yet whether the call
// is in order: from now on the connection is read without waits. From is as for [Known].
func HasRoom(from net.Addr) {
	if of, ok := from.(strangerAddr); ok && !of.conn.known.Load() {
		of.conn.known.Store(true)
	}
}

// Known says that the caller at the other end of a connection has shown who it is, by a call that is in order: from now on the connection is
// read without waits. From is the address that the connection says it comes from. If [Strangers] have no part in it, nothing happens.
func Known(from net.Addr) {
	of, ok := from.(strangerAddr)
	if !ok {
		return
	}
	HasRoom(from)
	if !of.conn.met.Load() { // no lock for each call
		of.conn.strangers.meet(of.conn)
	}
}

// Excused says that a connection may end without being reported, unless it would have to wait too long: something else paces its caller. It
// is read as before. From is as for [Known].
func Excused(from net.Addr) {
	if of, ok := from.(strangerAddr); ok && !of.conn.excused.Load() {
		of.conn.excused.Store(true)
	}
}

// Begun says that a call has begun; those of a server that is [Bound] are counted by that. From is as for [Known].
func Begun(from net.Addr) {
	if of, ok := from.(strangerAddr); ok && !of.conn.known.Load() {
		of.conn.charge(of.conn.strangers.limits.Call)
	}
}

// Refused says that a call was refused for what its caller did: its connection is a stranger's (again). From is as for [Known]. It returns
// false if [Strangers] have no part in it, so that nothing paces the caller.
func Refused(from net.Addr) (paced bool) {
	of, ok := from.(strangerAddr)
	if ok {
		of.conn.known.Store(false)
		of.conn.free.Store(0)
		of.conn.charge(of.conn.strangers.limits.Refused)
	}
	return ok
}

// MaySend waits until an answer of so many bytes may be sent to a caller of whom nobody asks who it is. It returns false if that would take
// too long; the connection has been ended then. From is as for [Known]; if [Strangers] have no part in it, every answer may be sent.
func MaySend(from net.Addr, bytes int) bool {
	of, ok := from.(strangerAddr)
	if !ok || of.conn.known.Load() {
		return true
	}
	counted := bytes - of.conn.strangers.limits.Answer
	return counted <= 0 || of.conn.pace(counted)
}

// Caller is where a call of a server that is [Bound] comes from, for [Known], [Refused] and [MaySend]. Ctx is the call's; nil: it is of no such server.
func Caller(ctx context.Context) net.Addr {
	if from, ok := ctx.Value(connKey{}).(*caller); ok {
		return from.remote
	}
	return nil
}
