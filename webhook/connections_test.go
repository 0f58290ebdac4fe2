package webhook

import (
	"net"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// Whose a connection is shows after a TLS handshake, and a caller without a token can begin one after the other.
func TestConnectionsOfAnAddressThatComeTooFastAreClosed(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	const burst = 3
	listener := Paced(inner, 0, burst) // nothing comes back meanwhile
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	defer func() {
		_ = inner.Close()
		for conn := range accepted {
			_ = conn.Close()
		}
	}()
	for range burst {
		dialFrom(t, "127.0.0.1", inner.Addr())
		_ = (<-accepted).Close()
	}
	ended(t, dialFrom(t, "127.0.0.1", inner.Addr()))
	paces, other := listener.paces, netip.MustParseAddr("127.0.0.2")
	for paces.Of(other) == paces.Of(netip.MustParseAddr("127.0.0.1")) { // some share one, by chance
		other = other.Next()
	}
	dialFrom(t, other.String(), inner.Addr())
	_ = (<-accepted).Close()
}
