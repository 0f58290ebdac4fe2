package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
)

// start serves until stop, which waits for the end; the test's end stops, too.
func start(t testing.TB, server *Server) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	stop = func() {
		cancel()
		if err, running := <-ended; running {
			close(ended)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}
	}
	t.Cleanup(stop)
	return "https://" + server.Addr().String(), stop
}

func listen(t testing.TB, ca *pki.CA, handler http.Handler) *Server {
	t.Helper()
	server, err := Listen("webhook", "127.0.0.1:0", ca.ServerTLS([]string{"hub.example"}, []net.IP{net.IPv4(127, 0, 0, 1)}), handler, anyMetrics(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestTheServerSpeaksBothVersionsOfHTTPAndKeepsConnections(t *testing.T) {
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			ca := newCA(t)
			from := map[string]bool{}
			url, _ := start(t, listen(t, ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from[r.RemoteAddr+" "+r.Proto] = true
				w.WriteHeader(http.StatusNoContent)
			})))
			transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: http2}
			defer transport.CloseIdleConnections()
			for range 3 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				g.Expect(err).NotTo(HaveOccurred())
				response, err := transport.RoundTrip(request)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(response.Proto).To(Equal(version))
				_, err = drain(response)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(from).To(HaveLen(1))
		})
	}
}

// A client that reads in an answer that its connection ends sends its next call on another one. One that finds its idle
// connection closed may just have sent a call on it, which is lost: net/http, and so API servers, do not send a POST again.
func TestAServerThatLeavesEndsConnectionsWithAnswersAndStillTakesNewOnes(t *testing.T) {
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			ca := newCA(t)
			server := listen(t, ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.RemoteAddr)
			}))
			url, _ := start(t, server)
			transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: http2}
			defer transport.CloseIdleConnections()
			call := func() (from string) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
				g.Expect(err).NotTo(HaveOccurred())
				response, err := transport.RoundTrip(request)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(response.Proto).To(Equal(version))
				body, err := drain(response)
				g.Expect(err).NotTo(HaveOccurred())
				return body
			}
			kept := call()
			g.Expect(call()).To(Equal(kept))
			server.Leave()
			server.Leave()
			g.Expect(call()).To(Equal(kept), "the last call on the connection is answered")
			last := kept
			for range 3 {
				next := call()
				g.Expect(next).NotTo(Equal(last), "the next one takes a new connection")
				last = next
			}
		})
	}
}

// Over HTTP/2 one connection has many calls, so the number of connections does not bound them.
func TestCallsOfOneAddressThatAreTooManyEndTheirConnections(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	var inFlight, most atomic.Int64
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	metrics := anyMetrics(t)
	server, err := Listen("webhook", "127.0.0.1:0", ca.ServerTLS(nil, []net.IP{net.IPv4(127, 0, 0, 1)}), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/held" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		now := inFlight.Add(1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		<-held
		inFlight.Add(-1)
	}), metrics, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	url, _ := start(t, server)
	from := func(address string) *http.Transport {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: true, DialContext: dialer.DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	call := func(through *http.Transport, path string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, nil)
		if err != nil {
			return err
		}
		answer, err := through.RoundTrip(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	var callers sync.WaitGroup
	defer callers.Wait()
	defer release()
	greedy := make([]*http.Transport, maxCalls/2/callsOfConnection+1)
	for i := range greedy { // a connection each
		greedy[i] = from("127.0.0.1")
		g.Expect(call(greedy[i], "/")).To(Succeed())
	}
	for _, greedy := range greedy {
		for range callsOfConnection {
			callers.Go(func() { _ = call(greedy, "/held") })
		}
	}
	tooMany := metrics.rejected.WithLabelValues("too_many")
	g.Eventually(func() float64 { return testutil.ToFloat64(tooMany) }).Should(BeNumerically(">", 0))
	g.Eventually(func() int64 { // a call that has just taken a place gives it back if its connection ends then
		another := from("127.0.0.1")
		callers.Go(func() { _ = call(another, "/held") })
		return inFlight.Load()
	}).WithPolling(time.Second).Should(Equal(int64(maxCalls / 2)))
	g.Expect(call(from("127.0.0.2"), "/")).To(Succeed())
	release()
	callers.Wait()
	g.Expect(most.Load()).To(Equal(int64(maxCalls / 2)))
	g.Eventually(func() error { return call(from("127.0.0.1"), "/") }).Should(Succeed())
}

func TestACallUnderWayEndsBeforeTheServerDoes(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	url, stop := start(t, listen(t, ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-goOn
		w.WriteHeader(http.StatusNoContent)
	})))
	answer := make(chan error, 1)
	go func() { answer <- tlstest.Get(t, url, tlstest.Trusting(ca.Bundle())) }()
	<-arrived
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	g.Eventually(func() error { return tlstest.Get(t, url, tlstest.Trusting(ca.Bundle())) }).ShouldNot(Succeed(), "it takes no new calls")
	g.Expect(stopped).NotTo(BeClosed())
	close(goOn)
	g.Expect(<-answer).To(Succeed())
	<-stopped
}

func TestAPortInUseStopsTheStart(t *testing.T) {
	g := NewWithT(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = taken.Close() }()
	_, err = Listen("webhook", taken.Addr().String(), newCA(t).ServerTLS(nil, nil), nil, anyMetrics(t), slog.New(slog.DiscardHandler))
	g.Expect(err).To(MatchError(And(HavePrefix("webhook server: "), ContainSubstring(taken.Addr().String()))))
}

func TestAServerTellsWhetherItServes(t *testing.T) {
	g := NewWithT(t)
	server := listen(t, newCA(t), http.NotFoundHandler())
	g.Expect(server.Serving()).To(MatchError("the webhook server does not listen at " + server.Addr().String()))
	_, stop := start(t, server)
	g.Eventually(server.Serving).Should(Succeed())
	stop()
	g.Expect(server.Serving()).NotTo(Succeed())
}

// Handshakes have limits of their own, which connections whose handshake is over do not count for any more.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	url, _ := start(t, listen(t, ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
	ask := func(transport *http.Transport) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		_, err = drain(response)
		return err
	}
	connect := func() *http.Transport {
		transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle())}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	var open []*http.Transport
	for range maxConnectionsOfAddress {
		transport := connect()
		g.Expect(ask(transport)).To(Succeed())
		open = append(open, transport)
	}
	g.Expect(ask(connect())).NotTo(Succeed(), "there are too many")
	g.Expect(ask(open[1])).To(Succeed(), "those that are there stay")
	open[0].CloseIdleConnections()
	g.Eventually(func() error { return ask(connect()) }).WithTimeout(time.Minute).Should(Succeed(), "there is room for another")
}

func TestLittleIsKeptOfCallsThatAreNotRead(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	url, _ := start(t, listen(t, ca, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-goOn
	})))
	var sent atomic.Int64
	transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: true, MaxConnsPerHost: 1}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, &sent}, err
	}
	defer transport.CloseIdleConnections()
	const calls = 10
	var ended sync.WaitGroup
	for range calls {
		ended.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, zeros{})
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := transport.RoundTrip(request); err == nil { // the answer comes before the body is sent
				_, _ = drain(response)
			}
		})
	}
	for range calls {
		<-arrived
	}
	g.Eventually(sent.Load).Should(BeNumerically(">=", connectionBuffer))
	g.Consistently(sent.Load).Should(BeNumerically("<=", connectionBuffer+64<<10), "headers and handshake included")
	close(goOn)
	ended.Wait()
}

// An API server sends its calls over one connection, and a large conversion may wait for seconds.
func TestACallThatIsNotReadLeavesItsConnectionToOthers(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	url, _ := start(t, listen(t, ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			close(arrived)
			<-goOn
		}
		_, _ = io.Copy(w, r.Body)
	})))
	transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), ForceAttemptHTTP2: true, MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call := func(path, body string) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		return drain(response)
	}
	large := strings.Repeat("large ", 1<<20)
	answered := make(chan error, 1)
	go func() {
		answer, err := call("/waits", large)
		if err == nil && answer != large {
			err = errors.New("another answer")
		}
		answered <- err
	}()
	<-arrived
	for range 20 { // the first ones may be sent before all of the large one that has room
		g.Expect(call("/", "small")).To(Equal("small"))
	}
	close(goOn)
	g.Expect(<-answered).To(Succeed())
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// countedConn counts the bytes that are written.
type countedConn struct {
	net.Conn
	written *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}
