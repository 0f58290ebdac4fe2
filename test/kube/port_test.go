package kube

import (
	"net"
	"syscall"
	"testing"

	"github.com/onsi/gomega"
)

func TestAHeldPortIsNobodyElsesAndCanBeListenedOnAgain(t *testing.T) {
	g := gomega.NewWithT(t)
	numbers := map[int]bool{}
	for range 300 {
		port, err := holdPort()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		t.Cleanup(port.release)
		numbers[port.number] = true
	}
	g.Expect(numbers).To(gomega.HaveLen(300), "the kernel gives no held port away")

	port, err := holdPort()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(port.release)
	_, err = net.Dial("tcp", port.address())
	g.Expect(err).To(gomega.MatchError(syscall.ECONNREFUSED))
	_, err = net.Listen("tcp", port.address())
	g.Expect(err).To(gomega.MatchError(syscall.EADDRINUSE))
	for range 2 {
		listener, err := port.listen(t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		conn, err := net.Dial("tcp", port.address())
		g.Expect(err).NotTo(gomega.HaveOccurred(), "all connections go to the one that listens")
		g.Expect(conn.Close()).To(gomega.Succeed())
		g.Expect(listener.Close()).To(gomega.Succeed())
	}
}
