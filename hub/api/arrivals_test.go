package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// dialFrom connects from an address of this machine.
func dialFrom(address string) func(ctx context.Context, network, to string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
}

// from is a connection of its own, from an address of this machine.
func (s *served) from(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	config := s.http.Transport.(*http.Transport).TLSClientConfig
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialFrom(address)(ctx, "tcp", to) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// refusedUnarrived is how many calls were refused before they had arrived.
func refusedUnarrived(g Gomega, registry *prometheus.Registry) (refused float64) {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "plimsoll_api_requests_total" && label.GetName() == "method" && label.GetValue() == "" {
					refused += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return refused
}

// No interceptor runs before a call's message is complete, so no token is asked for.
func TestCallsThatDoNotArriveLeaveRoomForOthersAndEnd(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	s := serve(t, shop(t), func(o *Options) { o.Registerer = registry })
	const stranger, other = "127.0.0.1", "127.0.0.2"
	get := func(conn *grpc.ClientConn) codes.Code {
		_, err := plimsollv1.NewClusterServiceClient(conn).GetCluster(as(t, "admin"), &plimsollv1.GetClusterRequest{Cluster: "prod"})
		return status.Code(err)
	}
	// More callers than may arrive from an address, each of whom begins again when its call has ended: on a busy machine the first
	// calls end before the last ones have begun.
	flooding, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan codes.Code, maxArriving)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer end()
	for range maxArriving * 3 / 4 / maxConcurrent {
		conn := s.from(t, stranger)
		for range maxConcurrent {
			callers.Go(func() {
				for flooding.Err() == nil {
					stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, plimsollv1.ClusterService_GetCluster_FullMethodName)
					if err == nil {
						err = stream.RecvMsg(new(plimsollv1.Cluster))
					}
					if code := status.Code(err); code != codes.ResourceExhausted {
						select {
						case ended <- code:
						default:
						}
						continue
					}
					select { // as a caller does who is refused
					case <-time.After(time.Second):
					case <-flooding.Done():
					}
				}
			})
		}
	}
	same, another := s.from(t, stranger), s.from(t, other)
	g.Eventually(func() codes.Code { return get(same) }).WithTimeout(time.Minute).Should(Equal(codes.ResourceExhausted))
	g.Expect(get(another)).To(Equal(codes.OK))
	g.Expect(refusedUnarrived(g, registry)).To(BeNumerically(">=", 1))
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(Equal(codes.Canceled)), "it ends though its caller waits")
	end()
	callers.Wait()
	close(ended)
	for code := range ended {
		g.Expect(code).To(Equal(codes.Canceled), "so does each of the others")
	}
	g.Eventually(func() codes.Code { return get(same) }).WithTimeout(time.Minute).Should(Equal(codes.OK))
}

// Whoever shows a token waits while the hub cluster reviews it, which may take seconds.
func TestCallsWhoseTokensAreBeingReviewedLeaveRoomForOthers(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, shop(t), nil)
	get := func(ctx context.Context, conn *grpc.ClientConn) string {
		_, err := plimsollv1.NewClusterServiceClient(conn).GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: "prod"})
		return status.Convert(err).Message()
	}
	noPlace := ContainSubstring("too many calls have begun")
	same, another := s.from(t, "127.0.0.1"), s.from(t, "127.0.0.2")
	g.Expect(get(as(t, "admin"), another)).To(BeEmpty())
	slow := make(chan struct{})
	answer := sync.OnceFunc(func() { close(slow) })
	s.mu.Lock()
	s.slow = slow
	s.mu.Unlock()
	flooding, end := context.WithCancel(as(t, "admin"))
	defer end()
	var callers sync.WaitGroup
	defer callers.Wait()
	defer answer()
	defer end()
	for range maxArriving * 3 / 4 / maxConcurrent { // more than may arrive, who begin again
		conn := s.from(t, "127.0.0.1")
		for i := range maxConcurrent {
			pause := time.Second/2 + time.Duration(i)*time.Second/2/maxConcurrent // not all at once: the call below would find the same place again and again
			callers.Go(func() {
				for flooding.Err() == nil {
					if !strings.Contains(get(flooding, conn), "too many") {
						continue
					}
					select { // as a caller does who is refused
					case <-time.After(pause):
					case <-flooding.Done():
					}
				}
			})
		}
	}
	briefly := func(conn *grpc.ClientConn) string { // it waits if it finds a place
		ctx, end := context.WithTimeout(as(t, "admin"), time.Second)
		defer end()
		return get(ctx, conn)
	}
	g.Eventually(func() string { return briefly(same) }).WithTimeout(time.Minute).Should(noPlace)
	g.Expect(briefly(another)).NotTo(noPlace)
	end()
	answer()
	callers.Wait()
	g.Eventually(func() string { return get(as(t, "admin"), same) }).WithTimeout(time.Minute).Should(BeEmpty(), "they have given their places back")
}

func TestBodiesThatDoNotArriveLeaveRoomForOthers(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, shop(t), nil)
	config := s.http.Transport.(*http.Transport).TLSClientConfig
	call := func(ctx context.Context, through *http.Transport, body io.Reader) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.rest+"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", body)
		if err != nil {
			return 0, err
		}
		response, err := through.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	from := func(address string) *http.Transport {
		transport := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true, DialContext: dialFrom(address)}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	slow, end := context.WithCancel(t.Context())
	defer end()
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer end()
	for range maxArriving * 3 / 4 / 128 { // more than may arrive, who begin again
		transport := from("127.0.0.1")
		for range 128 {
			strangers.Go(func() {
				for slow.Err() == nil {
					body, unsent := io.Pipe()
					code, _ := call(slow, transport, body)
					_ = unsent.Close()
					if code != http.StatusTooManyRequests {
						continue
					}
					select {
					case <-time.After(time.Second):
					case <-slow.Done():
					}
				}
			})
		}
	}
	same, another := from("127.0.0.1"), from("127.0.0.2")
	empty := func(through *http.Transport) (int, error) { return call(t.Context(), through, http.NoBody) }
	short := func(through *http.Transport) (int, error) {
		return call(t.Context(), through, io.MultiReader(http.NoBody)) // of unknown length
	}
	g.Eventually(func() (int, error) { return short(same) }).WithTimeout(time.Minute).Should(Equal(http.StatusTooManyRequests))
	g.Expect(short(another)).To(Equal(http.StatusUnauthorized))
	g.Expect(empty(same)).To(Equal(http.StatusUnauthorized), "what has no body has arrived")
	end()
	strangers.Wait()
	g.Eventually(func() (int, error) { return short(same) }).WithTimeout(time.Minute).Should(Equal(http.StatusUnauthorized))
}
