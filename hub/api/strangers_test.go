package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// Reading a call and refusing it costs the hub as much as sending it costs the caller.
func TestNoMoreIsReadOfWhoHasNoGoodTokenThanItsRateAllows(t *testing.T) {
	const calls, padding = 20, 3000 // bytes in the headers of each call
	few := shares.StrangerLimits{Free: 8000, Rate: 1, Burst: 1000, Refused: 1, Wait: time.Second}
	strangers := func(ended *atomic.Int64) net.Listener {
		return shares.NewStrangers(few, func(netip.Addr) { ended.Add(1) }).Listener(listen(t))
	}
	var endedGRPC, endedREST atomic.Int64
	s := serveOn(t, strangers(&endedGRPC), strangers(&endedREST), shop(t), nil)
	padded := func(i int) string { return fmt.Sprint(i) + strings.Repeat("~", padding) }
	overGRPC := func(token string, i int) codes.Code {
		ctx := metadata.AppendToOutgoingContext(as(t, token), "x-padding", padded(i))
		_, err := s.clusters().GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: "prod"})
		return status.Code(err)
	}
	overREST := func(token string, i int) codes.Code {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+s.rest+"/v1/clusters/prod", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Padding", padded(i))
		response, err := s.http.Do(request)
		if err != nil {
			return codes.Unavailable
		}
		_ = response.Body.Close()
		return map[int]codes.Code{http.StatusOK: codes.OK, http.StatusUnauthorized: codes.Unauthenticated}[response.StatusCode]
	}
	for name, over := range map[string]struct {
		call  func(token string, i int) codes.Code
		ended *atomic.Int64
	}{"gRPC": {overGRPC, &endedGRPC}, "REST": {overREST, &endedREST}} {
		t.Run(name, func(t *testing.T) {
			g, call, ended := NewWithT(t), over.call, over.ended
			for i := range calls {
				g.Expect(call("admin", i)).To(Equal(codes.OK))
			}
			g.Expect(ended.Load()).To(BeZero(), "who shows a good token is read without limit")
			for i := range calls {
				g.Expect(call("impostor", i)).To(Or(Equal(codes.Unauthenticated), Equal(codes.Unavailable)))
			}
			g.Eventually(ended.Load).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
			g.Eventually(func() codes.Code { return call("admin", 0) }).WithTimeout(time.Minute).Should(Equal(codes.OK), "on a connection of its own")
		})
	}
}

// documents is what a client without a token asks for, raw.
type documents struct {
	*served
	transport *http.Transport
}

// documents returns a client that keeps one connection over HTTP/2 while it can.
func (s *served) documents(t *testing.T) documents {
	transport := &http.Transport{TLSClientConfig: s.http.Transport.(*http.Transport).TLSClientConfig.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return documents{s, transport}
}

// get returns the answer and its whole body.
func (d documents) get(ctx context.Context, path string, header http.Header) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.rest+path, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(request.Header, header)
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

// flood asks for a path over and over, many times at once, until a call fails or all are answered. It returns how many bytes were sent.
func (d documents) flood(t *testing.T, path string) (sent int64) {
	const asked, atOnce = 150, 20
	var received, calls atomic.Int64
	flooding, end := context.WithCancel(t.Context())
	defer end()
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for flooding.Err() == nil && calls.Add(1) <= asked {
				_, body, err := d.get(flooding, path, nil)
				received.Add(int64(len(body)))
				if err != nil {
					end()
				}
			}
		})
	}
	callers.Wait()
	return received.Load()
}

// No token is asked for, so no call is refused: what is sent is what counts.
func TestAStrangerIsSentNoMoreDocumentsThanItsRateAllows(t *testing.T) {
	few := shares.StrangerLimits{Free: 20 << 10, Rate: 1, Burst: 1 << 20, Call: 1 << 10, Refused: 8 << 10, Wait: time.Second}
	for _, path := range []string{"/openapi.json", "/openapi.v3.json", "/ui/large"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			var ended atomic.Int64
			listener := shares.NewStrangers(few, func(netip.Addr) { ended.Add(1) }).Listener(listen(t))
			s := serveOn(t, listen(t), listener, shop(t), func(o *Options) { o.Page = frontPage{} })
			stranger := s.documents(t)
			_, first, err := stranger.get(t.Context(), path, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(first)).To(BeNumerically(">", 100_000))
			g.Expect(stranger.flood(t, path)).To(BeNumerically("<=", few.Burst+few.Free-len(first)))
			g.Expect(ended.Load()).To(BeNumerically(">", 0))
			known := s.documents(t)
			response, _, err := known.get(t.Context(), "/v1/clusters", bearing("admin"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(http.StatusOK))
			before := ended.Load()
			g.Expect(known.flood(t, path)).To(BeNumerically(">", 10*few.Burst), "the connection of whoever has shown a token")
			g.Expect(ended.Load()).To(Equal(before))
		})
	}
}

// A newcomer asks with curl, a browser, or a program that makes a client of it.
func TestTheFirstDocumentsOfAStrangerAreSentAtOnceAndNoneThatItHas(t *testing.T) {
	g := NewWithT(t)
	never := shares.StrangerLimits{Free: 20 << 10, Rate: 1, Burst: 1 << 20, Call: 1 << 10, Refused: 8 << 10, Answer: 4 << 10} // who would wait is ended
	var ended atomic.Int64
	listener := shares.NewStrangers(never, func(netip.Addr) { ended.Add(1) }).Listener(listen(t))
	d := serveOn(t, listen(t), listener, shop(t), nil).documents(t)
	for path, want := range map[string][]byte{"/openapi.json": plimsollv1.OpenAPI, "/openapi.v3.json": plimsollv1.OpenAPIv3} {
		for _, coding := range []string{"", "gzip"} {
			asks := http.Header{"Accept-Encoding": {coding}}
			response, body, err := d.get(t.Context(), path, asks)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(http.StatusOK))
			g.Expect(response.Header.Get("Content-Encoding")).To(Equal(coding))
			g.Expect(response.Header.Get("Content-Type")).To(Equal("application/json"))
			g.Expect(response.Header.Get("Cache-Control")).To(Equal("no-cache"))
			if coding == "gzip" {
				g.Expect(len(body)).To(BeNumerically("<", len(want)/5))
				unzipped, err := gzip.NewReader(bytes.NewReader(body))
				g.Expect(err).NotTo(HaveOccurred())
				body, err = io.ReadAll(unzipped)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(bytes.Equal(body, want)).To(BeTrue(), "%s, coding %q", path, coding)
			asks.Set("If-None-Match", response.Header.Get("Etag"))
			for range 20 {
				response, body, err = d.get(t.Context(), path, asks)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(response.StatusCode).To(Equal(http.StatusNotModified))
				g.Expect(body).To(BeEmpty())
			}
		}
	}
	g.Expect(ended.Load()).To(BeZero())
}
