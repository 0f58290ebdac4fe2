package hub

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// Nobody needs a token to connect.
func TestConnectionsOfOneAddressAreBoundedOnEachListener(t *testing.T) {
	g := NewWithT(t)
	const here = "127.0.0.1:0"
	var conf config.Config
	conf.API.GRPCAddress, conf.API.RESTAddress, conf.Peer.Address, conf.Metrics.Address, conf.Probes.Address = here, here, here, here, here
	l, err := listen(&conf)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.close)
	for name, listener := range map[string]net.Listener{"grpc": l.grpc, "rest": l.rest, "peer": l.peer, "metrics": l.metrics, "probes": l.probes} {
		accepted := make(chan net.Conn, maxConnections)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				accepted <- conn
			}
		}()
		dial := func() net.Conn {
			conn, err := net.Dial("tcp", listener.Addr().String())
			g.Expect(err).NotTo(HaveOccurred(), name)
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		var kept net.Conn
		for range maxConnectionsOfAddress {
			dial()
			kept = <-accepted
		}
		tooMany := dial()
		g.Expect(tooMany.SetReadDeadline(time.Now().Add(time.Minute))).To(Succeed())
		_, err := tooMany.Read(make([]byte, 1))
		var timeout net.Error
		g.Expect(err).To(HaveOccurred())
		g.Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeFalse(), "%s: it is open", name)
		g.Expect(kept.Close()).To(Succeed())
		_, err = io.WriteString(dial(), "x")
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(accepted).Should(Receive(), "%s: there is room for another", name)
	}
}
