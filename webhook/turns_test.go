package webhook

import (
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEachConnectionLetsOthersHaveTheProcessorAfterEveryFewAnswers(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer inner.Close()
	yielded := 0
	listener := turnsListener{inner, func() { yielded++ }}
	for range 2 {
		caller, err := net.Dial("tcp", inner.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		defer caller.Close()
		conn, err := listener.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		yielded = 0
		for range 2*turnLength + 1 {
			n, err := conn.Write([]byte("answer"))
			g.Expect(n, err).To(Equal(len("answer")))
		}
		g.Expect(yielded).To(Equal(2))
		g.Expect(conn.Close()).To(Succeed())
		g.Expect(io.ReadAll(caller)).To(HaveLen((2*turnLength + 1) * len("answer")))
	}
}

func TestAListenerThatIsClosedSaysSo(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(inner.Close()).To(Succeed())
	_, err = turnsListener{inner, yield}.Accept()
	g.Expect(err).To(MatchError(net.ErrClosed))
}
