package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
)

// handshaking serves handshakes with limits. Connections that have shaken hands arrive on the channel.
func handshaking(t *testing.T, limits handshakeLimits) (of *handshakeListener, config *tls.Config, shaken <-chan net.Conn) {
	t.Helper()
	g, ca := NewWithT(t), newCA(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	handshakes := newHandshakeListener(listener, ca.ServerTLS([]string{"hub.example"}, []net.IP{net.IPv4(127, 0, 0, 1)}), limits, slog.New(slog.DiscardHandler))
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := handshakes.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	t.Cleanup(func() {
		g.Expect(handshakes.Close()).To(Succeed())
		for conn := range accepted {
			_ = conn.Close()
		}
	})
	return handshakes, tlstest.Trusting(ca.Bundle()), accepted
}

func dialFrom(t *testing.T, from string, to net.Addr) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ended waits until the other side has closed a connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	var patience interface{ Timeout() bool }
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &patience) && patience.Timeout() {
		t.Errorf("the connection was not closed: %v", err)
	}
}

func shakeHands(ctx context.Context, conn net.Conn, config *tls.Config) error {
	config = config.Clone()
	config.ServerName = "hub.example"
	return tls.Client(conn, config).HandshakeContext(ctx)
}

func TestSlowHandshakesEnd(t *testing.T) {
	of, _, _ := handshaking(t, handshakeLimits{ofAddress: 10, ofAll: 10, rate: 1000, burst: 1000, timeout: 50 * time.Millisecond})
	silent, slow := dialFrom(t, "127.0.0.1", of.Addr()), dialFrom(t, "127.0.0.1", of.Addr())
	_, err := slow.Write([]byte{22, 3, 1}) // the beginning of a hello
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ended(t, silent)
	ended(t, slow)
}

func TestHandshakesOfOneAddressAreBoundedAndHoldUpNoOther(t *testing.T) {
	g := NewWithT(t)
	of, config, shaken := handshaking(t, handshakeLimits{ofAddress: 3, ofAll: 4, rate: 1000, burst: 1000, timeout: time.Hour})
	var silent []net.Conn
	for range 3 {
		silent = append(silent, dialFrom(t, "127.0.0.66", of.Addr()))
	}
	ended(t, dialFrom(t, "127.0.0.66", of.Addr()))
	for range 3 { // each makes room for the next
		g.Expect(shakeHands(t.Context(), dialFrom(t, "127.0.0.1", of.Addr()), config)).To(Succeed())
		g.Expect((<-shaken).Close()).To(Succeed())
	}
	g.Expect(silent[0].Close()).To(Succeed())
	g.Eventually(func() error {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.66")}}).DialContext(t.Context(), "tcp", of.Addr().String())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := shakeHands(t.Context(), conn, config); err != nil {
			return err
		}
		return (<-shaken).Close()
	}).Should(Succeed(), "there is room again")
}

func TestAnAddressBeginsSoManyHandshakesASecond(t *testing.T) {
	g := NewWithT(t)
	of, config, shaken := handshaking(t, handshakeLimits{ofAddress: 10, ofAll: 10, rate: 1, burst: 2, timeout: 100 * time.Millisecond})
	for range 2 {
		g.Expect(shakeHands(t.Context(), dialFrom(t, "127.0.0.66", of.Addr()), config)).To(Succeed())
		<-shaken
	}
	ended(t, dialFrom(t, "127.0.0.66", of.Addr())) // its turn comes when its time is over
	other := netip.MustParseAddr("127.0.0.67")
	for of.paces.Of(other) == of.paces.Of(netip.MustParseAddr("127.0.0.66")) { // some share one, by chance
		other = other.Next()
	}
	g.Expect(shakeHands(t.Context(), dialFrom(t, other.String(), of.Addr()), config)).To(Succeed())
	<-shaken
}

// The server as members meet it has these limits.
func TestTheServerEndsSlowHandshakes(t *testing.T) {
	server := listen(t, newCA(t), nil)
	start(t, server)
	ended(t, dialFrom(t, "127.0.0.1", server.Addr()))
}

// countedListener counts how often somebody wants to accept.
type countedListener struct{ asked atomic.Int32 }

func (l *countedListener) Accept() (net.Conn, error) {
	l.asked.Add(1)
	return nil, net.ErrClosed
}

func (*countedListener) Close() error { return nil }

func (*countedListener) Addr() net.Addr { return &net.TCPAddr{} }

// A server may be stopped in the moment in which it begins to accept. What begins then would begin beside the wait for its end.
func TestNothingBeginsOnceAListenerIsClosed(t *testing.T) {
	g, of := NewWithT(t), &countedListener{}
	handshakes := newHandshakeListener(of, &tls.Config{MinVersion: tls.VersionTLS13}, handshakesOfMembers, slog.New(slog.DiscardHandler))
	g.Expect(handshakes.Close()).To(Succeed())
	_, err := handshakes.Accept()
	g.Expect(err).To(MatchError(net.ErrClosed))
	handshakes.running.Wait()
	g.Expect(of.asked.Load()).To(BeZero())
}
