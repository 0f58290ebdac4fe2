package webhook

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// Wherever a call is refused, its refusal counts; that of a call that is in order does not, nor one that the others' calls leave no room
// for.
func TestEveryRefusalOfAPodCounts(t *testing.T) {
	pods := newHub(t, toSpot)
	pods.refusals = calls.NewRefusals()
	crowded := func() *httptest.ResponseRecorder {
		pods.options.Metrics.reading.Add(maxPodBytes)
		defer pods.options.Metrics.reading.Add(-maxPodBytes)
		return pods.call(pods.path(), reviewOf("1", ""))
	}
	for name, call := range map[string]struct {
		send   func() *httptest.ResponseRecorder
		status int
		counts float64
	}{
		"a pod":              {func() *httptest.ResponseRecorder { return pods.call(pods.path(), reviewOf("1", "")) }, http.StatusOK, 0},
		"others' pods":       {crowded, http.StatusTooManyRequests, 0},
		"no pod":             {func() *httptest.ResponseRecorder { return pods.call(pods.path(), []byte("[")) }, http.StatusBadRequest, 1},
		"a pod, wrong token": {func() *httptest.ResponseRecorder { return pods.call("/webhook/v1/members/eu/1/pods", nil) }, http.StatusNotFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pace := pods.refusals.Pace("eu")
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			g.Expect(call.send().Code).To(Equal(call.status))
			g.Expect(before - pace.Tokens()).To(Equal(call.counts))
		})
	}
}

func TestRefusalsOfWhatIsNoCallCountForTheirAddress(t *testing.T) {
	pods := newHub(t, toSpot)
	pods.refusals = calls.NewRefusals()
	for name, call := range map[string]struct {
		method, path string
		status       int
	}{
		"another path":   {http.MethodPost, "/", http.StatusNotFound},
		"part of a path": {http.MethodPost, "/webhook/v1/members/eu/", http.StatusNotFound},
		"another method": {http.MethodGet, pods.path(), http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			const address = "192.0.2.1" // of all that package httptest makes
			pace := pods.refusals.Pace(address)
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			g.Expect(pods.do(call.method, call.path, "application/json", nil).Code).To(Equal(call.status))
			g.Expect(before - pace.Tokens()).To(Equal(1.0))
		})
	}
}

// Who has a token, and calls that are refused, could keep the hub busy like somebody without one.
func TestACallThatIsRefusedMakesItsConnectionAStrangers(t *testing.T) {
	g := NewWithT(t)
	ca, pods, metrics := newCA(t), newHub(t, toSpot), anyMetrics(t)
	few := shares.StrangerLimits{Free: 12_000, Rate: 1, Burst: 1000, Refused: 1000, Wait: time.Second} // a handshake and a small call
	server, err := listenTo(few, "webhook", "127.0.0.1:0", ca.ServerTLS(nil, []net.IP{net.IPv4(127, 0, 0, 1)}), pods, metrics, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	url, _ := start(t, server)
	transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	call := func(path string, body []byte, padding int) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Padding", strings.Repeat("~", padding))
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	large := append(reviewOf("1", ""), bytes.Repeat([]byte(" "), 30_000)...)
	ended := func() float64 { return testutil.ToFloat64(metrics.rejected.WithLabelValues("too_many")) }
	g.Expect(call(pods.path(), reviewOf("1", ""), 0)).To(Equal(http.StatusOK))
	for range 10 {
		g.Expect(call(pods.path(), large, 0)).To(Equal(http.StatusOK))
	}
	g.Expect(ended()).To(BeZero(), "what a member sends is not paced")
	g.Expect(call(pods.path(), []byte("["), 0)).To(Equal(http.StatusBadRequest))
	_, err = call("/", nil, 5000)
	g.Expect(err).To(HaveOccurred())
	g.Eventually(ended).WithTimeout(time.Minute).Should(Equal(1.0))
	g.Expect(call(pods.path(), reviewOf("1", ""), 0)).To(Equal(http.StatusOK), "on a new connection")
}

// On the next one as much would be read at once. What is paced by other means does not count: refusals over HTTP/1 wait, and a member whose
// call finds no room has done nothing wrong. Nor do addresses count at which somebody is known: others would wait with the flood.
func TestAConnectionOfHTTP2ThatIsGivenUpCountsAsManyHandshakes(t *testing.T) {
	g := NewWithT(t)
	ca, pods, metrics := newCA(t), newHub(t, toSpot), anyMetrics(t)
	pods.refusals = calls.NewRefusals()
	limits := shares.StrangerLimits{Free: 12_000, Rate: 1 << 20, Burst: 1 << 20, Wait: time.Minute}
	server, err := listenTo(limits, "webhook", "127.0.0.1:0", ca.ServerTLS(nil, []net.IP{net.IPv4(127, 0, 0, 1)}), pods, metrics, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	var closed atomic.Int64
	server.server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed.Add(1)
		}
	}
	pace := server.listener.paces.Of(netip.MustParseAddr("127.0.0.1"))
	pace.SetLimit(0) // nothing comes back meanwhile
	start(t, server)
	connect := func(protocol string, use func(net.Conn)) {
		t.Helper()
		config := tlstest.Trusting(ca.Bundle())
		config.NextProtos = []string{protocol}
		dialer, before := &tls.Dialer{Config: config}, closed.Load()
		conn, err := dialer.DialContext(t.Context(), "tcp", server.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		use(conn)
		_ = conn.Close()
		g.Eventually(closed.Load).Should(Equal(before + 1))
	}
	// The refusal of an unread body ends the connection, perhaps before all of it is sent.
	post := func(path string, bytes int) {
		t.Helper()
		connect("http/1.1", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(bytes)+"\r\n\r\n"+strings.Repeat(" ", bytes))
			_, _ = io.Copy(io.Discard, conn)
		})
	}
	speak := func(use func(*http2.Framer)) {
		t.Helper()
		connect("h2", func(conn net.Conn) {
			framer := http2.NewFramer(conn, conn)
			_, err := io.WriteString(conn, http2.ClientPreface)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(framer.WriteSettings()).To(Succeed())
			use(framer)
		})
	}
	pings := func(frames int) {
		t.Helper()
		speak(func(framer *http2.Framer) {
			for range frames {
				g.Expect(framer.WritePing(false, [8]byte{})).To(Succeed())
			}
			for answered := 0; answered < frames; { // so all have been read
				frame, err := framer.ReadFrame()
				g.Expect(err).NotTo(HaveOccurred())
				if _, is := frame.(*http2.PingFrame); is {
					answered++
				}
			}
		})
	}
	empty := func(sent int) {
		t.Helper()
		speak(func(framer *http2.Framer) {
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for i := range sent {
				block.Reset()
				for _, field := range []hpack.HeaderField{
					{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "hub"}, {Name: ":path", Value: pods.path()},
					{Name: "content-length", Value: "0"}, {Name: "cookie", Value: strings.Repeat("~", 3000), Sensitive: true}, // sent each time
				} {
					g.Expect(encoder.WriteField(field)).To(Succeed())
				}
				g.Expect(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(1 + 2*i), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})).To(Succeed())
				for answered := false; !answered; {
					frame, err := framer.ReadFrame()
					g.Expect(err).NotTo(HaveOccurred())
					_, answered = frame.(*http2.HeadersFrame)
				}
			}
		})
	}
	ended := func() float64 { return testutil.ToFloat64(metrics.rejected.WithLabelValues("too_many")) }
	before := pace.Tokens()
	pods.options.Metrics.reading.Add(maxPodBytes)
	post(pods.path(), 20_000)
	pods.options.Metrics.reading.Add(-maxPodBytes)
	post("/", 20_000)
	pings(10)
	g.Expect(ended()).To(BeZero())
	pings(1000)
	g.Expect(ended()).To(Equal(1.0))
	empty(5)
	g.Expect(ended()).To(Equal(2.0), "of which none is in order")
	g.Expect(pace.Tokens()).To(Equal(before - 5 - 2*handshakesOfEnded))
	transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle())}
	t.Cleanup(transport.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server.Addr().String()+pods.path(), bytes.NewReader(reviewOf("1", "")))
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.StatusCode).To(Equal(http.StatusOK))
	_, _ = io.Copy(io.Discard, answer.Body)
	g.Expect(answer.Body.Close()).To(Succeed())
	pings(1000)
	g.Expect(ended()).To(Equal(2.0), "a member is known there")
}
