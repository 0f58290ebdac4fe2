package shares

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// site is a server of HTTP/2 that has at most so many calls in flight.
type site struct {
	*httptest.Server
	begun, refused atomic.Int64
}

func serve(t *testing.T, most int, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.begun.Add(1)
		handler(w, r)
	}))
	s.EnableHTTP2 = true
	Bound(s.Config, Limits{OfConnection: 100, InFlight: most}, func(netip.Addr) { s.refused.Add(1) })
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// from is a client with an address.
func (s *site) from(t *testing.T, address string) *http.Client {
	transport := s.Client().Transport.(*http.Transport).Clone()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport.DialContext = dialer.DialContext
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// flood is a connection of HTTP/2 with calls whose answers nobody reads: it leaves no room for a byte of them. It returns when the server
// has ended the connection.
func (s *site) flood(t *testing.T, address string, calls int) {
	t.Helper()
	g := NewWithT(t)
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}},
		Config:    &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13},
	}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, http2.ClientPreface)
	g.Expect(err).NotTo(HaveOccurred())
	framer := http2.NewFramer(conn, conn)
	g.Expect(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})).To(Succeed())
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range calls {
		block.Reset()
		for _, field := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "example.com"}, {Name: ":path", Value: "/"}} {
			g.Expect(encoder.WriteField(field)).To(Succeed())
		}
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(1 + 2*i), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		if err != nil { // the server ended it already
			return
		}
	}
	g.Expect(conn.SetReadDeadline(time.Now().Add(time.Minute))).To(Succeed())
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server goes on with a connection of too many calls")
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	return send(ctx, client, http.MethodGet, url, http.NoBody)
}

// send makes a call and returns the text of its answer.
func send(ctx context.Context, client *http.Client, method, url string, body io.Reader) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// An answer is written after its handler has returned, and waits there for a caller who does not read it.
func TestCallsWhoseAnswersAreNotReadAreInFlight(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, 20, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
	s.flood(t, "127.0.0.1", 100)
	g.Expect(s.begun.Load()).To(BeNumerically("<=", 10), "half of the places")
	g.Eventually(s.refused.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
	g.Expect(get(t.Context(), s.from(t, "127.0.0.2"), s.URL)).To(Equal("answer"))
	g.Eventually(func() (string, error) { return get(t.Context(), s.from(t, "127.0.0.1"), s.URL) }).WithTimeout(time.Minute).
		Should(Equal("answer"), "what it had has ended with its connection")
}

func TestCallsOfOneAddressLeaveRoomForThoseOfOthers(t *testing.T) {
	g := NewWithT(t)
	held := make(chan struct{})
	s := serve(t, 20, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			<-held // whoever calls has gone meanwhile
		}
		_, _ = io.WriteString(w, "answer")
	})
	g.Eventually(func() int64 { // a call that has just taken a place gives it back if its connection ends then
		s.flood(t, "127.0.0.1", 100)
		return s.begun.Load()
	}).WithTimeout(time.Minute).Should(Equal(int64(10)), "half of the places")
	g.Expect(get(t.Context(), s.from(t, "127.0.0.2"), s.URL+"/other")).To(Equal("answer"))
	_, err := get(t.Context(), s.from(t, "127.0.0.1"), s.URL+"/other")
	g.Expect(err).To(HaveOccurred(), "the handlers of its calls have not returned")
	close(held)
	g.Eventually(func() (string, error) { return get(t.Context(), s.from(t, "127.0.0.1"), s.URL+"/other") }).WithTimeout(time.Minute).
		Should(Equal("answer"))
}

func TestAHandlerThatPanicsGivesItsPlaceBack(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panics" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "answer")
	})
	client := s.from(t, "127.0.0.1")
	for range 3 {
		_, err := get(t.Context(), client, s.URL+"/panics")
		g.Expect(err).To(HaveOccurred())
	}
	g.Expect(get(t.Context(), client, s.URL)).To(Equal("answer"))
	g.Expect(s.refused.Load()).To(BeZero())
}
