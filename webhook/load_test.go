package webhook

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

func TestThePodsOfOneMemberThatAreBeingReadAreBounded(t *testing.T) {
	g := NewWithT(t)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	var begun []*memberMetrics
	for {
		of, err := metrics.begin("greedy", largeCall)
		if err != nil {
			g.Expect(err).To(Equal(errMemberBusy))
			break
		}
		begun = append(begun, of)
	}
	g.Expect(begun).To(HaveLen(maxPodBytesOfMember / largeCall))
	of, err := metrics.begin("modest", largeCall)
	g.Expect(err).NotTo(HaveOccurred())
	metrics.end(of, largeCall)
	for _, of := range begun {
		metrics.end(of, largeCall)
	}
	g.Expect(metrics.reading.Load()).To(BeZero())
	g.Expect(metrics.of("greedy").reading.Load()).To(BeZero())
}

func TestThePodsOfAllMembersThatAreBeingReadAreBounded(t *testing.T) {
	g := NewWithT(t)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	var begun []*memberMetrics
	for i := range maxPodBytes / maxPodBytesOfMember {
		of, err := metrics.begin(fmt.Sprint(i), maxPodBytesOfMember)
		g.Expect(err).NotTo(HaveOccurred())
		begun = append(begun, of)
	}
	_, err = metrics.begin("one more", 1)
	g.Expect(err).To(Equal(errAllBusy))
	g.Expect(metrics.of("one more").reading.Load()).To(BeZero())
	for _, of := range begun {
		metrics.end(of, maxPodBytesOfMember)
	}
	g.Expect(metrics.reading.Load()).To(BeZero())
}

func TestLargeCallsOfOneMemberAreReadAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		metrics, err := NewMetrics(prometheus.NewRegistry())
		g.Expect(err).NotTo(HaveOccurred())
		begin := func(member string, bytes int64) bool {
			of, err := metrics.begin(member, bytes)
			if err == nil {
				metrics.end(of, bytes)
			}
			return err == nil
		}
		read := 0
		for ; begin("greedy", calls.MaxBody); read++ {
		}
		g.Expect(read).To(Equal(largeBurst / calls.MaxBody))
		g.Expect(begin("greedy", largeCall)).To(BeTrue(), "its usual calls are read")
		g.Expect(begin("modest", calls.MaxBody)).To(BeTrue(), "so are those of others")
		const left = largeBurst % calls.MaxBody
		time.Sleep(time.Second)
		for range (left + largeRate) / calls.MaxBody {
			g.Expect(begin("greedy", calls.MaxBody)).To(BeTrue())
		}
		g.Expect(begin("greedy", calls.MaxBody)).To(BeFalse())
	})
}

func TestConnectionsThatAreTooManyAreClosed(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	capped := &cappedListener{listener, newPlaces(2, 3)}
	accepted := make(chan net.Conn, 10)
	go func() {
		defer close(accepted)
		for {
			conn, err := capped.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func(from string) net.Conn {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	refused := func(conn net.Conn) {
		_, err := conn.Read(make([]byte, 1))
		g.Expect(err).To(HaveOccurred(), "it is closed at once")
	}
	dial("127.0.0.1")
	dial("127.0.0.1")
	first := <-accepted
	<-accepted
	refused(dial("127.0.0.1"))
	dial("127.0.0.2")
	<-accepted
	refused(dial("127.0.0.2"))
	g.Expect(first.Close()).To(Succeed())
	g.Expect(first.Close()).NotTo(Succeed(), "and it does not make room twice")
	dial("127.0.0.3")
	<-accepted
	refused(dial("127.0.0.3"))
	g.Expect(listener.Close()).To(Succeed())
	for range accepted {
		t.Error("a connection too many")
	}
}

// A subscriber has a whole network of IPv6, of 64 bits.
func TestConnectionsOfANetworkOfIPv6CountAsOfOneAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[2001:db8::1]:5": "2001:db8::", "[2001:db8::ffff:2]:5": "2001:db8::",
		"[2001:db8:0:1::1]:5": "2001:db8:0:1::", "[fe80::1%eth0]:5": "fe80::",
	} {
		NewWithT(t).Expect(addressIn(text).String()).To(Equal(want), text)
	}
}
