package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// handshakeLimits bound the TLS handshakes of connections, before which nobody knows whose they are.
type handshakeLimits struct {
	ofAddress, ofAll int           // that are under way
	rate, burst      int           // that an address begins a second, and at once; further ones wait
	timeout          time.Duration // of one, waiting included
	// debt is how long an address has its connections closed at most, because of those that were ended or given up, while nobody is known
	// there. Otherwise it is timeout, so that others behind the address may wait for their handshakes.
	debt time.Duration
}

// handshakesOfMembers: API servers shake hands once for each of the few connections that they keep, and have no use for an
// answer after 2 s. When the hub comes back, those of hundreds of members may come at once, through one address. A handshake
// costs half a millisecond.
var handshakesOfMembers = handshakeLimits{ofAddress: 256, ofAll: 1024, rate: 100, burst: 1024, timeout: 3 * time.Second, debt: 10 * time.Second}

// handshakeListener has connections whose TLS handshake is over.
type handshakeListener struct {
	net.Listener
	config *tls.Config
	limits handshakeLimits
	log    *slog.Logger
	places *places
	paces  *shares.Paces

	accept  sync.Once
	running sync.WaitGroup
	done    chan accepted   // unbuffered
	closed  context.Context // its end ends all handshakes
	end     func()
}

type accepted struct {
	conn net.Conn
	err  error
}

// newHandshakeListener shakes hands on the connections of listener by a configuration that is not changed any more.
func newHandshakeListener(listener net.Listener, config *tls.Config, limits handshakeLimits, log *slog.Logger) *handshakeListener {
	l := &handshakeListener{
		Listener: listener, config: config, limits: limits, log: log, places: newPlaces(limits.ofAddress, limits.ofAll),
		paces: shares.NewPaces(limits.rate, limits.burst), done: make(chan accepted),
	}
	l.closed, l.end = context.WithCancel(context.Background())
	return l
}

// Accept returns the next connection whose handshake is over. Those whose handshake fails or takes too long, and those that are
// too many, are closed.
func (l *handshakeListener) Accept() (net.Conn, error) {
	l.accept.Do(func() { l.running.Go(l.acceptAll) })
	select {
	case next := <-l.done:
		return next.conn, next.err
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close ends Accept and the handshakes that are under way, and waits for these.
func (l *handshakeListener) Close() error {
	l.end()
	err := l.Listener.Close()
	l.accept.Do(func() {}) // what has not begun does not begin any more, beside the wait
	l.running.Wait()
	return err
}

func (l *handshakeListener) acceptAll() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.pass(accepted{err: err})
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // Accept's caller waits before it asks again
		}
		address := addressOf(conn)
		giveBack, ok := l.places.take(address)
		if !ok {
			_ = conn.Close()
			continue
		}
		l.running.Go(func() {
			shaken := l.shake(address, conn)
			giveBack()
			if shaken != nil {
				l.pass(accepted{conn: shaken})
			}
		})
	}
}

// shake returns the connection when its handshake is over, or closes it and returns nil.
func (l *handshakeListener) shake(address netip.Addr, conn net.Conn) net.Conn {
	ctx, cancel := context.WithTimeout(l.closed, l.limits.timeout)
	defer cancel()
	if err := l.paces.Of(address).Wait(ctx); err != nil {
		_ = conn.Close()
		return nil
	}
	shaken := tls.Server(conn, l.config)
	if err := shaken.HandshakeContext(ctx); err != nil {
		l.log.Debug("TLS handshake error", "remote", address, "error", err) // those of strangers are no news
		_ = conn.Close()
		return nil
	}
	return shaken
}

// charge counts n more handshakes of an address. Known: somebody there is known.
func (l *handshakeListener) charge(address netip.Addr, n int, known bool) {
	longest := l.limits.debt
	if known {
		longest = l.limits.timeout
	}
	l.paces.Charge(address, n, longest)
}

// pass gives a connection or an error to Accept, or closes the connection when there is no Accept any more.
func (l *handshakeListener) pass(next accepted) {
	select {
	case l.done <- next:
	case <-l.closed.Done():
		if next.conn != nil {
			_ = next.conn.Close()
		}
	}
}
