package shares

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// strangersSite is a server that reads so much of strangers: who may read more is ended at once instead of waiting.
type strangersSite struct {
	site

	strangers *Strangers
	ended     atomic.Int64
	sent      atomic.Int64 // bytes, of answers that may be sent
}

// fewBytes let a usual call pass that has no body, and the TLS handshake before it.
var fewBytes = StrangerLimits{Free: 4000, Rate: 1, Burst: 1000, Refused: 1000, Wait: time.Second}

// serveStrangers serves a handler that reads the body of a call, and knows or refuses the callers of the paths /known and /refused. It sends
// as many bytes as the path below /send/ says, if it may.
func serveStrangers(t *testing.T, limits StrangerLimits) *strangersSite {
	t.Helper()
	s := &strangersSite{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := Caller(r.Context())
		s.begun.Add(1)
		if strings.HasPrefix(r.URL.Path, "/known") {
			Known(from)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if strings.HasPrefix(r.URL.Path, "/refused") {
			Refused(from)
		}
		if asked, ok := strings.CutPrefix(r.URL.Path, "/send/"); ok {
			n, err := strconv.Atoi(asked)
			if err != nil || !MaySend(from, n) {
				return
			}
			s.sent.Add(int64(n))
		}
		_, _ = io.WriteString(w, "answer")
	}))
	s.EnableHTTP2 = true
	Bound(s.Config, Limits{OfConnection: 100, InFlight: 100}, nil)
	s.strangers = NewStrangers(limits, func(netip.Addr) { s.ended.Add(1) })
	s.Listener = s.strangers.Listener(s.Listener)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// post sends a body of so many bytes.
func (s *strangersSite) post(ctx context.Context, client *http.Client, path string, bytes int) (string, error) {
	return send(ctx, client, http.MethodPost, s.URL+path, strings.NewReader(strings.Repeat("a", bytes)))
}

// postAndCountEnded posts a body, whatever the answer, and returns how many connections have been ended, each time that it is called.
func (s *strangersSite) postAndCountEnded(ctx context.Context, client *http.Client, path string, bytes int) func() int64 {
	return func() int64 {
		_, _ = s.post(ctx, client, path, bytes)
		return s.ended.Load()
	}
}

func TestNoMoreIsReadOfAStrangerThanItsRateAllows(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, fewBytes)
	client := s.from(t, "127.0.0.1")
	g.Expect(s.post(t.Context(), client, "/", 10)).To(Equal("answer"), "a small call")
	_, err := s.post(t.Context(), client, "/", 100_000)
	g.Expect(err).To(HaveOccurred())
	g.Eventually(s.ended.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
	g.Expect(s.post(t.Context(), client, "/", 10)).To(Equal("answer"), "on a new connection, what is free")
}

// Reading a small call costs more than its bytes.
func TestCallsOfStrangersCountAsMoreThanTheirBytes(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, StrangerLimits{Free: 8000, Rate: 1, Burst: 20_000, Call: 5000, Wait: time.Second})
	client := s.from(t, "127.0.0.1")
	g.Eventually(s.postAndCountEnded(t.Context(), client, "/", 500)).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
	g.Expect(s.begun.Load()).To(BeNumerically("<", 40), "20,000 bytes would be as many calls")
}

func TestWhoIsKnownIsReadWithoutLimit(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, fewBytes)
	client := s.from(t, "127.0.0.1")
	g.Expect(s.post(t.Context(), client, "/known", 10)).To(Equal("answer"))
	g.Expect(s.post(t.Context(), client, "/", 1_000_000)).To(Equal("answer"), "the connection is known, not the call")
	g.Expect(s.ended.Load()).To(BeZero())
}

func TestWhoIsRefusedIsAStrangerAgain(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, fewBytes)
	client := s.from(t, "127.0.0.1")
	g.Expect(s.post(t.Context(), client, "/known", 10)).To(Equal("answer"))
	g.Expect(s.post(t.Context(), client, "/refused", 10)).To(Equal("answer"))
	_, err := s.post(t.Context(), client, "/", 100_000)
	g.Expect(err).To(HaveOccurred())
	g.Eventually(s.ended.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
}

// The neighbor of a stranger that has used up all of its address still has what is free.
func TestStrangersOfAnotherAddressAreNotPaced(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, StrangerLimits{Free: 4000, Rate: 1, Burst: 200_000, Refused: 1000, Wait: time.Second})
	for range 3 {
		_, _ = s.post(t.Context(), s.from(t, "127.0.0.1"), "/", 150_000)
	}
	g.Eventually(s.ended.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
	g.Expect(s.post(t.Context(), s.from(t, "127.0.0.1"), "/", 10)).To(Equal("answer"))
	other := netip.MustParseAddr("127.0.0.2")
	for s.strangers.paces.Of(other) == s.strangers.paces.Of(netip.MustParseAddr("127.0.0.1")) { // some share one, by chance
		other = other.Next()
	}
	g.Expect(s.post(t.Context(), s.from(t, other.String()), "/", 150_000)).To(Equal("answer"))
}

// sends are limits under which a connection has its handshake and some calls free, and its address 100,000 bytes.
var sends = StrangerLimits{Free: 10_000, Rate: 1, Burst: 100_000, Answer: 1000, Wait: time.Second}

func TestNoMoreIsSentToAStrangerThanItsRateAllows(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, sends)
	client := s.from(t, "127.0.0.1")
	g.Eventually(s.postAndCountEnded(t.Context(), client, "/send/21000", 0)).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
	g.Expect(s.sent.Load()).To(And(BeNumerically(">", 0), BeNumerically("<=", 6*21_000)), "five of them are its burst")
	g.Expect(s.post(t.Context(), s.from(t, "127.0.0.1"), "/", 0)).To(Equal("answer"), "on a new connection, what is free")
}

// More connections do not help.
func TestWhatIsSentToStrangersOfOneAddressIsCountedTogether(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, sends)
	for range 20 {
		_, _ = s.post(t.Context(), s.from(t, "127.0.0.1"), "/send/21000", 0)
	}
	g.Expect(s.ended.Load()).To(BeNumerically(">", 0))
	g.Expect(s.sent.Load()).To(BeNumerically("<=", 6*21_000))
}

func TestLittleIsSentToStrangersHoweverMuchWasSent(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, StrangerLimits{Free: 100_000, Rate: 1, Burst: 100_000, Answer: 1000, Wait: time.Second})
	client := s.from(t, "127.0.0.1")
	for range 200 {
		g.Expect(s.post(t.Context(), client, "/send/1000", 0)).To(Equal("answer"))
	}
	g.Expect(s.ended.Load()).To(BeZero())
}

func TestWhoIsKnownIsSentWhatItAsksFor(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, sends)
	client := s.from(t, "127.0.0.1")
	g.Expect(s.post(t.Context(), client, "/known", 0)).To(Equal("answer"))
	for range 20 {
		g.Expect(s.post(t.Context(), client, "/send/100000", 0)).To(Equal("answer"))
	}
	g.Expect(s.ended.Load()).To(BeZero())
}

// Answers on one connection wait at the same time; how its end counts for its address does not depend on how many do.
func TestAConnectionIsEndedOnceHoweverManyAnswersWait(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	var ended atomic.Int64
	listener = NewStrangers(StrangerLimits{Rate: 1, Burst: 1000, Wait: time.Second}, func(netip.Addr) { ended.Add(1) }).Listener(listener)
	t.Cleanup(func() { _ = listener.Close() })
	client, err := net.Dial("tcp", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	conn, err := listener.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	var answers sync.WaitGroup
	var may atomic.Int64
	for range 20 {
		answers.Go(func() {
			if MaySend(conn.RemoteAddr(), 10_000) {
				may.Add(1)
			}
		})
	}
	answers.Wait()
	g.Expect(may.Load()).To(Equal(int64(1)), "one takes all that there is")
	g.Expect(ended.Load()).To(Equal(int64(1)))
}

// Who gives a connection up before the hub ends it has as much read of the next one at once.
func TestAConnectionThatIsGivenUpAfterMoreThanIsFreeCountsAsEnded(t *testing.T) {
	const free = 4000
	for name, connection := range map[string]struct {
		first         int // bytes that are read before the caller shows who it is
		shows         func(net.Addr)
		read          int // bytes that are read then
		countsAsEnded int64
	}{
		"more than is free":                 {read: free + 1, countsAsEnded: 1},
		"what is free":                      {read: free},
		"nothing":                           {},
		"little, and a refusal":             {first: 1, shows: func(from net.Addr) { Refused(from) }, read: free - 1},
		"more, and a refusal":               {first: 1, shows: func(from net.Addr) { Refused(from) }, read: free, countsAsEnded: 1},
		"more, before it was known":         {first: free + 1, shows: Known},
		"more, when it was known":           {first: 1, shows: Known, read: 2 * free},
		"more, then bounded":                {first: free + 1, shows: HasRoom, countsAsEnded: 1},
		"more, when it was bounded":         {first: 1, shows: HasRoom, read: 2 * free},
		"more, but excused":                 {first: free + 1, shows: Excused, read: free},
		"more, refused after it was known":  {first: 1, shows: func(from net.Addr) { Known(from); Refused(from) }, read: 2 * free},
		"more, refused when it was unknown": {first: free + 1, shows: func(from net.Addr) { Refused(from) }, countsAsEnded: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			g.Expect(err).NotTo(HaveOccurred())
			var ended atomic.Int64
			limits := StrangerLimits{Free: free, Rate: 1 << 20, Burst: 1 << 20, Wait: time.Minute}
			listener = NewStrangers(limits, func(netip.Addr) { ended.Add(1) }).Listener(listener)
			t.Cleanup(func() { _ = listener.Close() })
			client, err := net.Dial("tcp", listener.Addr().String())
			g.Expect(err).NotTo(HaveOccurred())
			conn, err := listener.Accept()
			g.Expect(err).NotTo(HaveOccurred())
			pass := func(bytes int) {
				t.Helper()
				_, err := client.Write(make([]byte, bytes))
				g.Expect(err).NotTo(HaveOccurred())
				_, err = io.ReadFull(conn, make([]byte, bytes))
				g.Expect(err).NotTo(HaveOccurred())
			}
			pass(connection.first)
			if connection.shows != nil {
				connection.shows(conn.RemoteAddr())
			}
			pass(connection.read)
			g.Expect(client.Close()).To(Succeed())
			_, err = conn.Read(make([]byte, 1))
			g.Expect(err).To(MatchError(io.EOF))
			g.Expect(ended.Load()).To(BeZero(), "nothing is ended yet")
			_ = conn.Close()
			_ = conn.Close()
			g.Expect(ended.Load()).To(Equal(connection.countsAsEnded))
		})
	}
}

// Others may be behind the same address.
func TestAnAddressIsKnownWhileAConnectionOfItIs(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	var ended atomic.Int64
	strangers := NewStrangers(StrangerLimits{Free: 100, Rate: 1 << 20, Burst: 1 << 20, Wait: time.Minute}, func(netip.Addr) { ended.Add(1) })
	listener = strangers.Listener(listener)
	t.Cleanup(func() { _ = listener.Close() })
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = client.Close() })
		server, err = listener.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		return client, server
	}
	giveUp := func() {
		t.Helper()
		client, server := connect()
		_, err := client.Write(make([]byte, 200))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadFull(server, make([]byte, 200))
		g.Expect(err).NotTo(HaveOccurred())
		_ = server.Close()
	}
	address := netip.MustParseAddr("127.0.0.1")
	g.Expect(strangers.Knows(address)).To(BeFalse())
	_, first := connect()
	_, second := connect()
	for range 2 {
		Known(first.RemoteAddr())
		Known(second.RemoteAddr())
	}
	Refused(second.RemoteAddr())
	Known(second.RemoteAddr())
	g.Expect(strangers.Knows(address)).To(BeTrue())
	g.Expect(strangers.Knows(address.Next())).To(BeFalse())
	giveUp()
	g.Expect(first.Close()).To(Succeed())
	_ = first.Close()
	g.Expect(strangers.Knows(address)).To(BeTrue())
	giveUp()
	g.Expect(ended.Load()).To(BeZero())
	g.Expect(second.Close()).To(Succeed())
	Refused(second.RemoteAddr())
	Known(second.RemoteAddr()) // by a call that is still answered
	g.Expect(strangers.Knows(address)).To(BeFalse())
	giveUp()
	g.Expect(ended.Load()).To(Equal(int64(1)))
}

// Its calls are too many, and so is what was read of it.
func TestAConnectionOfTooManyCallsCountsOnceAsEnded(t *testing.T) {
	g := NewWithT(t)
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }))
	s.EnableHTTP2 = true
	var ofCalls, ofBytes atomic.Int64
	Bound(s.Config, Limits{OfConnection: 100, InFlight: 20}, func(netip.Addr) { ofCalls.Add(1) })
	s.Listener = NewStrangers(StrangerLimits{Free: 1000, Rate: 1 << 20, Burst: 1 << 20, Wait: time.Minute}, func(netip.Addr) { ofBytes.Add(1) }).Listener(s.Listener)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.flood(t, "127.0.0.1", 100)
	g.Eventually(ofCalls.Load).WithTimeout(time.Minute).Should(Equal(int64(1)))
	g.Expect(ofBytes.Load()).To(BeZero(), "it was closed before that")
}

// What the rate allows later is read later, and not refused; nor does the wait keep a server from closing.
func TestAStrangerWaitsForItsRate(t *testing.T) {
	g := NewWithT(t)
	s := serveStrangers(t, StrangerLimits{Free: 4000, Rate: 100_000, Burst: 20_000, Refused: 1, Wait: time.Minute})
	g.Expect(s.post(t.Context(), s.from(t, "127.0.0.1"), "/", 100_000)).To(Equal("answer"))
	g.Expect(s.ended.Load()).To(BeZero())
}

func TestClosingAStrangersConnectionEndsItsWait(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	listener = NewStrangers(StrangerLimits{Rate: 1, Burst: 1000, Wait: time.Hour}, nil).Listener(listener)
	t.Cleanup(func() { _ = listener.Close() })
	client, err := net.Dial("tcp", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	conn, err := listener.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.Write(make([]byte, 1500))
	g.Expect(err).NotTo(HaveOccurred())
	read := make(chan error, 1)
	go func() {
		into := make([]byte, 1000)
		for {
			if _, err := conn.Read(into); err != nil {
				read <- err
				return
			}
		}
	}()
	g.Consistently(read, "100ms").ShouldNot(Receive())
	g.Expect(conn.Close()).To(Succeed())
	g.Eventually(read).WithTimeout(time.Minute).Should(Receive(MatchError(errStranger)))
}

func TestAnAddressThatIsOfNoStrangerIsIgnored(t *testing.T) {
	Known(nil)
	HasRoom(nil)
	Excused(nil)
	Refused(&net.TCPAddr{})
	if !MaySend(nil, 1<<30) {
		t.Error("nothing may be sent")
	}
	Known(Caller(context.Background()))
}
