package webhook

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
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
		of, err := metrics.begin("greedy", calls.LargeCall)
		if err != nil {
			g.Expect(err).To(Equal(errMemberBusy))
			break
		}
		begun = append(begun, of)
	}
	g.Expect(begun).To(HaveLen(maxPodBytesOfMember / calls.LargeCall))
	of, err := metrics.begin("modest", calls.LargeCall)
	g.Expect(err).NotTo(HaveOccurred())
	metrics.end(of, calls.LargeCall)
	for _, of := range begun {
		metrics.end(of, calls.LargeCall)
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
		g.Expect(begin("greedy", calls.LargeCall)).To(BeTrue(), "its usual calls are read")
		g.Expect(begin("modest", calls.MaxBody)).To(BeTrue(), "so are those of others")
		const left = largeBurst % calls.MaxBody
		time.Sleep(time.Second)
		for range (left + largeRate) / calls.MaxBody {
			g.Expect(begin("greedy", calls.MaxBody)).To(BeTrue())
		}
		g.Expect(begin("greedy", calls.MaxBody)).To(BeFalse())
	})
}

// Who connects again at once has the hub read hundreds of calls before it can end the connection.
func TestAConnectionThatIsEndedCountsAsManyHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		limits := handshakesOfMembers
		l := newHandshakeListener(nil, nil, limits, slog.New(slog.DiscardHandler))
		address, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for l.paces.Of(other) == l.paces.Of(address) { // some share one, by chance
			other = other.Next()
		}
		for range limits.burst / handshakesOfEnded {
			l.charge(address, handshakesOfEnded, true)
		}
		g.Expect(l.paces.Of(address).Tokens()).To(BeNumerically("==", limits.burst%handshakesOfEnded))
		for known, longest := range map[bool]time.Duration{true: limits.timeout, false: limits.debt} {
			for range 100 * limits.burst / handshakesOfEnded {
				l.charge(address, handshakesOfEnded, known)
			}
			owes := time.Duration(-l.paces.Of(address).Tokens() * float64(time.Second) / float64(limits.rate))
			g.Expect(owes).To(BeNumerically(">=", longest))
			g.Expect(owes).To(BeNumerically("<=", longest+time.Second*handshakesOfEnded/time.Duration(limits.rate)), "with the last charge")
			g.Expect(l.paces.Of(other).Allow()).To(BeTrue())
			time.Sleep(owes + time.Millisecond) // of the bubble
			g.Expect(l.paces.Of(address).Tokens()).To(BeNumerically(">=", 0))
		}
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

// Two large calls at a time would keep both processors of a small hub from whatever else comes from the network.
func TestALargeCallIsReadAndScannedInPieces(t *testing.T) {
	const tolerations, containers = `,"object":{"metadata":{"name":"a"},"spec":{"tolerations":[%s{}]}}`, `,"object":{"metadata":{"name":"a"},"spec":{"containers":[%s{}]}}`
	long := `{"key":"` + strings.Repeat("a", 600) + `"},`
	for name, c := range map[string]struct {
		pod   string
		item  string
		items int
	}{
		"a large one, of what is skipped": {containers, "{},", 200_000},
		"a large one, of what is read":    {tolerations, long, 1_000},
		"a usual one":                     {containers, "{},", 5_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				began := time.Now()
				calls.Pause()
				pause := time.Since(began)
				body := reviewOf("192a64db", fmt.Sprintf(c.pod, strings.Repeat(c.item, c.items)))
				pieces := 0
				if len(body) > calls.LargeCall {
					pieces = len(body) / calls.Piece
				}

				began = time.Now()
				request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				var into bytes.Buffer
				reason, status := readCall(httptest.NewRecorder(), request, &into)
				g.Expect(status).To(BeZero(), reason)
				g.Expect(into.Bytes()).To(Equal(body))
				g.Expect(time.Since(began)).To(Equal(time.Duration(pieces) * pause))

				began = time.Now()
				var r review
				g.Expect(r.decode(body, nil)).To(Succeed())
				g.Expect(r.pod.Name).To(Equal("a"))
				g.Expect(time.Since(began)).To(And(BeNumerically("<=", time.Duration(pieces)*pause), BeNumerically(">=", time.Duration(pieces-1)*pause)))
			})
		})
	}
}

func TestAReviewOfMoreTolerationsThanAnyPodHasTakesNoMemoryForThem(t *testing.T) {
	g := NewWithT(t)
	pod := func(items int) []byte {
		return reviewOf("192a64db", `,"object":{"metadata":{"name":"a"},"spec":{"tolerations":[`+strings.Repeat("{},", items)+`{}]}}`)
	}
	var r review
	g.Expect(r.decode(pod(9_000), nil)).To(Succeed())
	g.Expect(r.pod.Tolerations).To(HaveLen(9_001))
	g.Expect(r.decode(pod(900_000), nil)).To(MatchError(ContainSubstring("too many fields and items")))
	g.Expect(cap(r.spare)).To(BeNumerically("<", 20_000))
}
